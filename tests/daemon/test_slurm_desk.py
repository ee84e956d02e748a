"""What Slurm's hooks get from the daemon, over a core on paper."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, replace
from typing import Any

import pytest

from daemon.core import PaperCore, PaperWorld
from fsxwarm.client import wire
from fsxwarm.daemon.access import Caller
from fsxwarm.daemon.slurm import SlurmDesk, SlurmRules
from fsxwarm.daemon.slurm_requests import SlurmBegin, SlurmEnd
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.job import Count, Counters, Identity, JobRequest, Phase
from fsxwarm.model.job import Kind as JobKind

SLURM, ALICE, BOB = 990, 1001, 1002
COMMENT = "fsxwarm:preload=/fsx/imagenet"


def _caller(uid: int) -> Caller:
    return Caller(Identity(uid, (uid,)), admin=False)


@dataclass
class Site:
    """A desk, and the calls that hooks make."""

    core: PaperCore
    world: PaperWorld
    desk: SlurmDesk
    asked: list[int]

    def begin(
        self, number: str = "7", text: str | bytes = COMMENT, *, uid: int = ALICE, by: int = SLURM, **more: Any
    ) -> asyncio.Task[wire.SlurmJob]:
        wish = SlurmBegin(slurm_job_id=number, uid=uid, text_b64=_b64(text), **more)
        return asyncio.ensure_future(self.desk.begin(_caller(by), wish))

    async def end(
        self, job: str = "7", text: str | bytes = COMMENT, *, uid: int = ALICE, by: int = SLURM, **more: Any
    ) -> wire.SlurmEnded:
        return await self.desk.end(_caller(by), SlurmEnd(slurm_job_id=job, uid=uid, text_b64=_b64(text), **more))

    @property
    def leased(self) -> list[bytes]:
        return sorted(lease.path for lease in self.core.promises.values())


def _b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


@pytest.fixture
def site() -> Site:
    core, world, asked = PaperCore(), PaperWorld(), list[int]()
    rules = SlurmRules(frozenset({SLURM}))
    return Site(
        core, world, SlurmDesk(core, world, rules, lambda caller, _: asked.append(caller.uid), core.wall), asked
    )


async def test_a_job_is_warmed_as_its_user_and_kept_until_its_end(site: Site) -> None:
    begun = await site.begin(
        text="fsxwarm:preload=/fsx/a preload=s3://bucket/b ready=0.2 deadline=5m exclude=*.tmp fit=yes"
    )

    request = site.core.all[begun["job"]].request
    assert begun["state"] == "warming"
    assert (request.identity, request.slurm_job_id) == (Identity(ALICE, (ALICE,)), "7")
    assert (request.paths, request.exclude) == ((b"/fsx/a", b"/fsx/bucket/b"), ("*.tmp",))
    assert (request.options.ready, request.options.deadline, request.options.fit) == (0.2, 300.0, True)
    assert site.leased == [b"/fsx/a", b"/fsx/bucket/b"]

    ended = await site.end(text=COMMENT)
    assert ended["cancelled"] == [begun["job"]]
    assert site.leased == []


async def test_all_nodes_of_a_job_share_one_warming(site: Site) -> None:
    answers = await asyncio.gather(*(site.begin() for _ in range(16)))

    assert {answer["job"] for answer in answers} == {"j1"}
    assert len(site.core.all) == len(site.core.promises) == 1


async def test_it_answers_when_ready_or_when_the_wait_is_over(site: Site) -> None:
    await site.begin()
    waiting = site.begin(wait=50.0)
    await site.core.finish("j1")

    answer = await waiting
    assert (answer["state"], answer["exit"], answer["coverage"]) == ("ready", 0, 1.0)
    assert "3 files (30 B) resident" in answer["message"]


async def test_the_share_asked_for_is_enough(site: Site) -> None:
    await site.begin(text=f"{COMMENT} ready=0.2")
    job = site.core.all["j1"]
    half = Counters(found=Count(2, 20), restored=Count(1, 10))
    site.core.all["j1"] = replace(job, phase=Phase.RUNNING, ready=True, counters=half)

    answer = await site.begin(text=f"{COMMENT} ready=0.2", wait=50.0)
    assert (answer["state"], answer["message"]) == ("ready", "50% is there, job j1 warms the rest")


async def test_what_was_just_found_warm_is_not_walked_again(site: Site) -> None:
    await site.begin("1")
    await site.core.finish("j1")
    site.core.now += 59

    answer = await site.begin("2")
    assert (answer["state"], answer["job"]) == ("ready", "j1")
    assert answer["message"].endswith("looked at 59s ago by job j1")
    assert site.leased == [b"/fsx/imagenet"] * 2


async def test_what_was_found_warm_longer_ago_is_looked_at_again(site: Site) -> None:
    await site.begin("1")
    await site.core.finish("j1")
    site.core.now += 61

    assert (await site.begin("2"))["job"] == "j2"
    assert (await site.begin("1"))["job"] == "j3"


@pytest.mark.parametrize("text", [f"{COMMENT} exclude=*.tmp", "fsxwarm:preload=/fsx/other"])
async def test_only_the_very_same_files_count_as_warm(site: Site, text: str) -> None:
    await site.begin("1")
    await site.core.finish("j1")

    assert (await site.begin("2", text))["job"] == "j2"


async def test_another_users_look_does_not_count(site: Site) -> None:
    await site.begin("1")
    await site.core.finish("j1")

    assert (await site.begin("2", uid=BOB))["job"] == "j2"


async def test_a_release_ends_what_was_known(site: Site) -> None:
    await site.begin("1")
    await site.core.finish("j1")
    await site.core.submit(JobRequest(JobKind.RELEASE, Identity(BOB, (BOB,)), (b"/fsx",)))

    assert (await site.begin("2"))["state"] == "warming"


async def test_a_failure_says_why(site: Site) -> None:
    await site.begin()
    await site.core.finish("j1")
    counters = Counters(found=Count(3, 30), failed=Count(2, 20), restored=Count(1, 10), reasons={"glacier": 2})
    site.core.all["j1"] = replace(site.core.all["j1"], exit=Exit.INCOMPLETE, counters=counters)

    answer = await site.begin()
    assert (answer["state"], answer["exit"]) == ("failed", 3)
    assert answer["message"] == "2 files did not become resident: glacier (`fsxwarm jobs show j1`)"


async def test_after_a_failure_another_try_is_another_job(site: Site) -> None:
    await site.begin()
    await site.core.finish("j1", Exit.INCOMPLETE)
    site.core.now += 11

    assert (await site.begin())["job"] == "j2"


async def test_who_asks_again_begins_nothing(site: Site) -> None:
    begun = await site.begin()
    await site.end(ran=False)

    assert (await site.begin(job=begun["job"]))["state"] == "failed"
    with pytest.raises(FsxwarmError, match="uid 1002 has no job j1"):
        await site.desk.begin(_caller(SLURM), SlurmBegin(slurm_job_id="7", uid=BOB, job="j1", text_b64=_b64(COMMENT)))
    assert list(site.core.all) == ["j1"]


async def test_a_job_that_was_forgotten_is_begun_anew(site: Site) -> None:
    assert (await site.begin(job="j9"))["job"] == "j1"


async def test_a_job_that_asks_no_more_for_its_data_counts_as_cancelled(site: Site) -> None:
    site.desk.rules = replace(site.desk.rules, patience=0.01)
    script = "#FSXWARM preload=/fsx/a"
    await site.begin(text=script, source="script")
    waiting = site.begin("8", text=script, source="script", wait=50.0)
    async with asyncio.timeout(5):
        await site.core.until(lambda: site.core.all["j1"].phase is Phase.CANCELLED)
    assert site.core.all["j2"].phase is Phase.QUEUED, "who waits asks"

    waiting.cancel()
    async with asyncio.timeout(5):
        await site.core.until(lambda: site.core.all["j2"].phase is Phase.CANCELLED and not site.leased)


async def test_a_job_with_a_comment_runs_while_its_data_comes(site: Site) -> None:
    site.desk.rules = replace(site.desk.rules, patience=0.0)
    await site.begin()
    await asyncio.sleep(0.02)

    assert site.core.all["j1"].phase is Phase.QUEUED


async def test_a_deadline_lets_the_job_go(site: Site) -> None:
    await site.begin(text=f"{COMMENT} deadline=1m")
    await site.core.finish("j1", Exit.DEADLINE)

    assert (await site.begin(text=f"{COMMENT} deadline=1m"))["state"] == "late"


async def test_a_requeued_job_is_warmed_anew(site: Site) -> None:
    await site.begin()
    await site.end(ran=False)

    assert (await site.begin())["job"] == "j2"
    assert site.leased == [b"/fsx/imagenet"]


async def test_lists_are_read_as_the_user_and_their_folders_kept(site: Site) -> None:
    site.world.lists[b"/fsx/epoch"] = [b"/fsx/x/1", b"/fsx/x/2", b"/fsx/y/1"]

    await site.begin(text="fsxwarm:list=/fsx/epoch")
    assert site.core.all["j1"].listed == 3
    assert site.leased == [b"/fsx/x", b"/fsx/y"]


async def test_space_is_given_back_once_and_only_after_a_run(site: Site) -> None:
    text = f"{COMMENT} release=after"
    await site.begin(text=text)
    await site.core.finish("j1")

    ended = [await site.end(text=text), await site.end(text=text)]
    assert [bool(one["release"]) for one in ended] == [True, False]
    release = site.core.all[ended[0]["release"]].request
    assert (release.kind, release.paths, release.identity.uid) == (JobKind.RELEASE, (b"/fsx/imagenet",), ALICE)

    await site.begin("8", text)
    assert (await site.end("8", text, ran=False))["release"] == ""


async def test_the_end_of_one_job_leaves_others_alone(site: Site) -> None:
    await site.begin("1")
    await site.begin("2")
    await site.end("1")

    assert site.core.all["j2"].phase is not Phase.CANCELLED
    assert site.leased == [b"/fsx/imagenet"]


async def test_nobody_else_acts_for_another(site: Site) -> None:
    for by in (BOB, 0):
        with pytest.raises(FsxwarmError, match=f"uid {by} may not act for uid {ALICE}") as caught:
            await site.begin(by=by)
        assert caught.value.kind is Kind.NO_PERMISSION
        with pytest.raises(FsxwarmError):
            await site.end(by=by)


async def test_for_oneself_one_s_own_limits_hold(site: Site) -> None:
    assert (await site.begin(by=ALICE))["state"] == "warming"
    assert site.asked == [ALICE]
    await site.begin("8", "fsxwarm:preload=/fsx", by=ALICE)
    assert site.leased == [b"/fsx/imagenet"], "nobody leases the whole file system"


async def test_a_path_out_of_reach_is_refused_before_anything_is_taken(site: Site) -> None:
    with pytest.raises(FsxwarmError, match="no such path that you can reach"):
        await site.begin(text="fsxwarm:preload=/fsx/secret")
    assert site.core.all == site.core.promises == {}


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("comment", "x fsxwarm:perload=/a", "comment, column 11: unknown key 'perload'"),
        ("script", "#!/bin/sh\n#FSXWARM preload=a\n", "line 2, column 18: preload: 'a' is no absolute path"),
    ],
)
async def test_a_mistake_is_pointed_at(site: Site, source: str, text: str, said: str) -> None:
    with pytest.raises(FsxwarmError) as caught:
        await site.begin(text=text, source=source)
    assert said in caught.value.message


async def test_a_name_that_is_no_utf8_is_kept(site: Site) -> None:
    await site.begin(text=b"fsxwarm:preload=/fsx/\xff")

    assert site.core.all["j1"].request.paths == (b"/fsx/\xff",)


async def test_a_text_about_other_things_asks_for_nothing(site: Site) -> None:
    assert (await site.begin(text="hello"))["state"] == "none"
    assert site.core.all == {}
