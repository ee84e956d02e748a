"""The daemon's core: jobs side by side, cancelled, hurried, followed, resumed."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from pathlib import Path

import pytest

from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.job import Identity, JobView, Phase
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.lease import LeaseRequest
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.units import Amount
from fsxwarm.sim.faults import CallFault, Fault, Faults, files, share_of_calls
from fsxwarm.sim.nodes import Node
from service_stage import ANN, BOB, MB, Stage, ended, play, request


def narrow(files_at_once: int) -> Policy:
    return Policy(WindowPolicy(fixed=files_at_once))


def test_a_job_is_warmed_counted_and_kept(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(500, released=0.7)
        async with stage.service() as service:
            job = await service.submit(request(label="train", slurm_job_id="7"))
            assert job.phase is Phase.QUEUED
            view = await ended(service, job.id)
            assert (view.job.phase, view.job.exit) == (Phase.DONE, Exit.DONE)
            counters = view.counters
            assert counters.found.files == 500
            assert counters.restored.files == stage.world.counts["restored"]
            assert counters.resident.files + counters.restored.files == 500
            assert counters.coverage == 1.0
            assert stage.resident() == 500
            totals = service.health().totals
            assert totals["restored_files"] == counters.restored.files
            assert totals["restored_bytes"] == counters.restored.bytes
        async with stage.service() as again:
            assert again.job(job.id) == JobView(view.job)
            assert again.health().totals["jobs_done"] == 1

    play(go)


def test_a_thousand_jobs_over_the_same_files_ask_for_each_file_once(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=200)
        stage.fill(2000)
        async with stage.service() as service:
            people = [request(identity=ANN if n % 2 else BOB, priority=n % 50) for n in range(1000)]
            jobs = await asyncio.gather(*(service.submit(each) for each in people))
            views = [await ended(service, job.id) for job in jobs]
        assert stage.world.counts["items"] == 2000
        assert stage.duplicates == 0
        assert all(view.counters.coverage == 1.0 and view.counters.found.files == 2000 for view in views)
        assert all(view.job.exit is Exit.DONE for view in views)

    play(go)


def test_jobs_that_overlap_see_shared_files_as_their_own(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(300, associations=3)
        async with stage.service() as service:
            one = await service.submit(request(stage.paths[0].rsplit(b"/", 2)[0]))
            both = await service.submit(request(identity=BOB))
            first, second = await ended(service, one.id), await ended(service, both.id)
        assert first.counters.found.files == 100
        assert second.counters.found.files == 300
        assert first.counters.coverage == second.counters.coverage == 1.0
        assert stage.world.counts["items"] == 300

    play(go)


def test_cancelling_one_job_takes_no_file_from_another(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=4, latency=1.0)
        stage.fill(200, associations=2)
        half = stage.paths[0].rsplit(b"/", 2)[0]
        async with stage.service(policy=narrow(8)) as service:
            gone = await service.submit(request(identity=BOB))
            stays = await service.submit(request(half))
            await asyncio.sleep(20.0)
            view = await service.cancel(gone.id)
            assert (view.job.phase, view.job.exit) == (Phase.CANCELLED, Exit.INTERRUPTED)
            assert view.counters.cancelled.files > 0
            assert view.counters.remaining.files == 0
            assert view.counters.left_in_flight.files > 0
            kept = await ended(service, stays.id)
            assert kept.counters.coverage == 1.0
        mine = [path for path in stage.paths if path.startswith(half)]
        assert stage.resident(mine) == 100
        assert stage.resident() < 200
        assert stage.duplicates == 0

    play(go)


def test_a_job_of_high_priority_overtakes_its_owners_others(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=10, latency=1.0, mdts=1)
        stage.fill(2200, associations=2)
        urgent = stage.paths[-100].rsplit(b"/", 1)[0]
        stage.paths = [path for path in stage.paths if path.startswith(urgent)]
        async with stage.service(policy=narrow(20)) as service:
            await service.submit(request())
            await asyncio.sleep(30.0)
            before = asyncio.get_running_loop().time()
            job = await service.submit(request(urgent, priority=90))
            await ended(service, job.id)
            took = asyncio.get_running_loop().time() - before
        assert len(stage.paths) == 100
        assert took < 10.0 * 2 + 20.0

    play(go)


def test_owners_get_equal_shares(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=10, latency=1.0, mdts=1)
        stage.fill(2000, associations=2)
        ann, bob = stage.paths[0].rsplit(b"/", 2)[0], stage.paths[-1].rsplit(b"/", 2)[0]
        async with stage.service(policy=narrow(20)) as service:
            await service.submit(request(ann))
            await asyncio.sleep(20.0)
            before = stage.resident()
            mine = await service.submit(request(bob, identity=BOB))
            await asyncio.sleep(60.0)
            view = service.job(mine.id)
            assert view is not None
            share = view.counters.restored.files / (stage.resident() - before)
        assert 0.35 < share < 0.65

    play(go)


def test_priority_can_be_changed_on_the_way(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=5, latency=1.0, mdts=1)
        stage.fill(600, associations=2)
        first, second = stage.paths[0].rsplit(b"/", 2)[0], stage.paths[-1].rsplit(b"/", 2)[0]
        async with stage.service(policy=narrow(10)) as service:
            slow = await service.submit(request(first))
            fast = await service.submit(request(second))
            await asyncio.sleep(5.0)
            assert (await service.set_priority(fast.id, 80)).job.request.priority == 80
            await ended(service, fast.id)
            other = service.job(slow.id)
            assert other is not None
            assert not other.job.phase.final
            with pytest.raises(FsxwarmError, match="from 0 to 100"):
                await service.set_priority(fast.id, 101)

    play(go)


def test_failures_are_kept_with_why(tmp_path: Path) -> None:
    async def go() -> None:
        bad: set[Node] = set()
        stage = Stage(tmp_path, Faults(restore=[files(lambda node: node in bad, Fault.OBJECT_MISSING)]))
        stage.fill(50)
        bad |= {stage.names.file(path).node for path in stage.paths[:3]}
        async with stage.service() as service:
            job = await service.submit(request())
            view = await ended(service, job.id)
            assert view.job.exit is Exit.INCOMPLETE
            assert view.counters.failed.files == 3
            assert view.counters.reasons == {"restore_failed": 3}
            some = await service.failures(job.id, limit=2)
            rest = await service.failures(job.id, after=some[-1].number)
            assert {failure.path for failure in some + rest} == set(stage.paths[:3])
            assert some[0].attempts == 3
            assert some[0].flags == 0x0D

    play(go)


def test_lists_keep_to_what_they_name(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(100)
        wanted = tuple(stage.paths[10:30])
        async with stage.service() as service:
            job = await service.submit(replace(request(), paths=(), files=wanted))
            assert job.listed == 20
            view = await ended(service, job.id)
            assert view.counters.found.files == 20
            assert stage.resident(list(wanted)) == 20
            assert stage.resident() == 20

    play(go)


def test_a_path_that_is_not_there_fails_the_job_and_nothing_else(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(20)
        async with stage.service() as service:
            bad = await service.submit(request(b"/fsx/nothing"))
            good = await service.submit(request())
            view = await ended(service, bad.id)
            assert view.job.phase is Phase.FAILED
            assert "nothing" in view.job.error
            assert (await ended(service, good.id)).job.exit is Exit.DONE

    play(go)


def test_what_will_not_fit_is_not_begun_unless_asked(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=50 * MB)
        stage.fill(100)
        async with stage.service(reserve=Amount()) as service:
            job = await service.submit(request())
            view = await ended(service, job.id)
            assert (view.job.phase, view.job.exit) == (Phase.DONE, Exit.NO_ROOM)
            assert stage.resident() == 0
            fitting = await service.submit(request(fit=True))
            view = await ended(service, fitting.id)
            assert view.job.exit is Exit.INCOMPLETE
            assert stage.resident() > 40
        assert stage.world.counts["failed"] == 0

    play(go)


def test_ready_and_deadline(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=1, latency=1.0)
        stage.fill(100)
        async with stage.service() as service:
            job = await service.submit(request(ready=0.2, deadline=60.0))
            view = await service.wait(job.id, 1000.0)
            assert view.job.ready
            assert not view.job.phase.final
            assert 0.2 <= view.counters.coverage < 0.6
            view = await service.wait(job.id, 1000.0)
            assert (view.job.phase, view.job.exit) == (Phase.DONE, Exit.DEADLINE)
            assert view.counters.cancelled.files == 100 - view.counters.restored.files

    play(go)


def test_waiting_ends_with_its_time_or_with_the_daemon(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=1, latency=1.0)
        stage.fill(1000)
        async with stage.service() as service:
            job = await service.submit(request())
            assert not (await service.wait(job.id, 5.0)).job.phase.final
            waiting = [asyncio.ensure_future(service.wait(job.id, 1000.0)) for _ in range(20)]
            await asyncio.sleep(1.0)
            await service.drain()
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(a, FsxwarmError) and a.kind is Kind.RESTARTING for a in answers)
            with pytest.raises(FsxwarmError, match="restarting"):
                await service.submit(request())
            with pytest.raises(FsxwarmError, match="no job 99"):
                await service.wait("99", 1.0)

    play(go)


def test_events_tell_the_course_of_a_job(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(10)
        heard: list[str] = []
        async with stage.service() as service:

            async def listen() -> None:
                heard.extend([event.kind async for event in service.events()])

            listening = asyncio.ensure_future(listen())
            await asyncio.sleep(0)
            await ended(service, (await service.submit(request(ready=1.0))).id)
            await service.drain()
            await listening
        assert heard == ["job_queued", "job_running", "job_ready", "job_done"]

    play(go)


def test_release_jobs_leave_what_is_wanted_leased_or_anothers(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(40, released=0.0, associations=2)
        for path in stage.paths[:30]:
            stage.names.file(path).node.uid = ANN.uid
        mine, other = stage.paths[0].rsplit(b"/", 2)[0], stage.paths[-1].rsplit(b"/", 2)[0]
        async with stage.service() as service:
            lease = await service.lease(LeaseRequest(ANN.uid, stage.paths[0], 3600.0))
            job = await service.submit(request(mine, other, kind=JobKind.RELEASE))
            view = await ended(service, job.id)
            assert view.counters.released.files == 29
            assert view.counters.reasons == {"leased": 1, "not_yours": 10}
            await service.release_lease(lease.id)
            job = await service.submit(request(mine, other, kind=JobKind.RELEASE, admin=True))
            view = await ended(service, job.id)
            assert view.counters.released.files == 11
            assert view.counters.already.files == 29
        assert stage.resident() == 0

    play(go)


@pytest.mark.parametrize("call", ["state", "action", "release"])
def test_a_release_job_whose_calls_fail_is_incomplete_and_names_the_error(tmp_path: Path, call: str) -> None:
    async def go() -> None:
        broken = share_of_calls(1.0, CallFault.EIO, kinds=frozenset({call}))
        stage = Stage(tmp_path, Faults(call=[broken]))
        stage.fill(40, released=0.0)
        async with stage.service() as service:
            job = await service.submit(request(kind=JobKind.RELEASE, admin=True))
            view = await ended(service, job.id)
            assert view.job.exit is Exit.INCOMPLETE
            assert (view.counters.released.files, view.counters.unreadable, view.counters.reasons) == (0, 40, {})
            failures = await service.failures(job.id)
            assert {failure.errno for failure in failures} == {errno.EIO}
        assert stage.resident() == 40

    play(go)


def test_another_policy_holds_for_jobs_that_run(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=100, latency=5.0, mdts=1)
        stage.fill(800)
        async with stage.service(policy=narrow(10)) as service:
            job = await service.submit(request())
            await asyncio.sleep(60.0)
            (lane,) = service.health().lanes
            assert lane.window == 10
            await service.reconfigure(replace(service.plan, policy=narrow(80)))
            before = stage.resident()
            await asyncio.sleep(60.0)
            (lane,) = service.health().lanes
            assert lane.window == 80
            assert stage.resident() > before + 100
            view = await ended(service, job.id)
            assert (view.job.exit, view.counters.coverage) == (Exit.DONE, 1.0)
            assert view.counters.found.files == 800
        assert stage.duplicates == 0

    play(go)


def test_overlapping_walks_of_many_owners_ask_for_each_file_once(tmp_path: Path) -> None:
    """A walk may have seen long ago what another has had restored since."""

    async def go() -> None:
        stage = Stage(tmp_path, agents=50, latency=1.0)
        stage.fill(3000)
        async with stage.service(policy=Policy(lookahead=200, look_batch=50)) as service:
            owners = [Identity(2000 + number, (2000,)) for number in range(12)]
            jobs = [await service.submit(request(identity=owner)) for owner in owners]
            for job in jobs:
                view = await ended(service, job.id)
                assert view.counters.resident.files + view.counters.restored.files == 3000
        assert stage.world.counts["items"] == 3000
        assert stage.duplicates == 0

    play(go)
