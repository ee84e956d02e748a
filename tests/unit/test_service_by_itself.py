"""What the daemon does of its own accord: keeping warm, making room, leases that run out, the inventory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fsxwarm.engine.service import KeepWarm, Marks
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.hsm import Flags
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.job import Phase
from fsxwarm.model.lease import LeaseRequest
from fsxwarm.model.units import Amount
from fsxwarm.ports.store import Limits
from service_stage import ANN, EPOCH, MB, Stage, ended, play, request

WEEK = 7 * 86400


def marks(low: int, high: int, *, dry_run: bool = False, unchecked: bool = True) -> Marks:
    return Marks(b"/fsx", Amount(bytes=low * MB), Amount(bytes=high * MB), dry_run, unchecked)


def test_what_turns_cold_under_a_keep_warm_path_is_restored_again(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(40)
        async with stage.service(keep_warm=(KeepWarm((b"/fsx",), 3600.0),)) as service:
            await asyncio.sleep(60.0)
            (view,) = service.jobs()
            assert view.job.phase is Phase.RESTING
            assert view.job.request.priority == 0
            assert stage.resident() == 40
            stage.world.release_task([stage.names.file(path).node for path in stage.paths[:15]], stage.clockwork.now())
            await asyncio.sleep(3600.0)
            assert stage.resident() == 40
            (view,) = service.jobs()
            assert view.job.rounds == 2
            assert view.counters.restored.files == 15
        async with stage.service(keep_warm=(KeepWarm((b"/fsx",), 3600.0),)) as service:
            assert len(service.jobs()) == 1
            assert not service.jobs()[0].job.phase.final
        async with stage.service() as service:
            assert [view.job.phase for view in service.jobs()] == [Phase.CANCELLED]

    play(go)


def test_a_keep_warm_job_of_a_user_rests_between_rounds_until_cancelled(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(10)
        async with stage.service() as service:
            job = await service.submit(request(kind=JobKind.KEEP_WARM, every=600.0))
            await asyncio.sleep(1900.0)
            view = service.job(job.id)
            assert view is not None
            assert view.job.rounds == 4
            assert (await service.cancel(job.id)).job.phase is Phase.CANCELLED
            await asyncio.sleep(1900.0)
            assert service.jobs()[0].job.rounds == 4

    play(go)


def test_room_is_made_from_what_was_used_least_recently(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0, age_spread=3 * 86400)
        leased, wanted, kept, pinned = stage.paths[:4]
        stage.names.file(pinned).node.flags |= Flags.NORELEASE
        async with stage.service(
            make_room=(marks(10, 20),), keep_warm=(KeepWarm((kept,), 3600.0),)
        ) as service:  # fmt: skip
            await service.lease(LeaseRequest(ANN.uid, leased, 86400.0))
            await service.submit(request(wanted, kind=JobKind.KEEP_WARM))
            await asyncio.sleep(300.0)
            assert 79 <= stage.resident() <= 81
            assert stage.resident([leased, wanted, kept, pinned]) == 4
            assert service.health().totals["made_room_files"] == 95 - stage.resident()
            assert service.health().problems == ()
        released = [path for path in stage.paths[4:] if stage.names.file(path).node.flags.released]
        remaining = [path for path in stage.paths[4:] if path not in released]
        ages = {path: stage.names.find(path).mtime for path in stage.paths}
        assert max(ages[path] for path in released) <= min(ages[path] for path in remaining)

    play(go)


def test_room_is_never_made_from_what_was_restored_lately_crash_or_not(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95)
        service = await stage.start()
        assert (await ended(service, (await service.submit(request())).id)).job.exit is Exit.DONE
        await service._flush()
        await stage.kill(service)
        async with stage.service(make_room=(marks(10, 20),), rest_after_restore=7200.0) as service:
            await asyncio.sleep(6000.0)
            assert stage.resident() == 95
            assert any("can be made free" in problem for problem in service.health().problems)
            await asyncio.sleep(3600.0)
            assert stage.resident() <= 81
            assert service.health().problems == ()

    play(go)


def test_what_a_job_wanted_lately_goes_last_whatever_its_times_say(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(90, released=0.0, associations=2)
        lately = stage.paths[0].rsplit(b"/", 2)[0]
        mine = [path for path in stage.paths if path.startswith(lately)]
        async with stage.service() as service:
            await ended(service, (await service.submit(request(lately))).id)
        async with stage.service(make_room=(marks(20, 40),)) as service:
            await asyncio.sleep(300.0)
        assert stage.resident(mine) == len(mine)
        assert stage.resident() <= 61

    play(go)


def test_a_dry_run_makes_no_room_and_tells_how_much_it_would(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0)
        async with stage.service(make_room=(marks(10, 20, dry_run=True),)) as service:
            events = service.events()
            await asyncio.sleep(100.0)
            assert stage.resident() == 95
            assert (await anext(events)).kind == "would_make_room"
            assert service.health().totals["would_make_room_files"] == 15

    play(go)


def test_leases_run_out_and_can_be_renewed(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(5, released=0.0)
        async with stage.service() as service:
            lease = await service.lease(LeaseRequest(ANN.uid, b"/fsx", 100.0, "train", "7"))
            assert lease.expires == EPOCH + 100.0 + asyncio.get_running_loop().time()
            assert service.leases(owner=ANN.uid) == [lease]
            assert service.leases(owner=5) == []
            await asyncio.sleep(90.0)
            lease = await service.renew(lease.id, 100.0)
            await asyncio.sleep(90.0)
            view = await ended(service, (await service.submit(request(kind=JobKind.RELEASE, admin=True))).id)
            assert view.counters.reasons == {"leased": 5}
            await asyncio.sleep(30.0)
            assert service.leases() == []
            with pytest.raises(FsxwarmError) as caught:
                await service.renew(lease.id, 100.0)
            assert caught.value.kind is Kind.NO_SUCH_LEASE
            view = await ended(service, (await service.submit(request(kind=JobKind.RELEASE, admin=True))).id)
            assert view.counters.released.files == 5
            for bad in (LeaseRequest(1, b"/fsx", 0.0), LeaseRequest(1, b"/fsx/no", 5.0)):
                with pytest.raises(FsxwarmError):
                    await service.lease(bad)

    play(go)


def test_the_inventory_counts_slowly_and_never_while_a_job_waits(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=1, latency=1.0)
        stage.fill(400, released=0.25, associations=4)
        released = 400 - stage.resident()
        stage.names.file(stage.paths[0]).node.flags |= Flags.DIRTY
        stage.names.file(stage.paths[0]).node.flags &= ~Flags.RELEASED
        released = 400 - stage.resident()
        async with stage.service(inventory=(b"/fsx",), inventory_rate=20.0) as service:
            await asyncio.sleep(5.0)
            job = await service.submit(request(stage.paths[0]))
            await ended(service, job.id)
            await asyncio.sleep(20.0)
            assert service.health().inventory == {}
            looked = stage.world.counts["state"]
            job = await service.submit(request(stage.paths[-1].rsplit(b"/", 2)[0]))
            await asyncio.sleep(1.0)
            await asyncio.sleep(60.0)
            numbers = service.health().inventory.get(b"/fsx")
            assert numbers is not None
            assert numbers["archived_files"] == 400
            assert numbers["resident_files"] + numbers["released_files"] == 400  # type: ignore[operator]
            assert numbers["released_files"] <= released  # type: ignore[operator]
            assert numbers["dirty_files"] == 1
            assert stage.world.counts["state"] > looked
        async with stage.service(inventory=(b"/fsx",), inventory_rate=20.0) as service:
            assert service.health().inventory[b"/fsx"] == numbers

    play(go)


def test_an_inventory_that_was_cut_short_does_not_look_again_at_what_it_has_seen(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(1000, released=0.5, associations=10)
        service = await stage.start(inventory=(b"/fsx",), inventory_rate=20.0)
        await asyncio.sleep(80.0)
        await stage.kill(service)
        looked = stage.world.counts["state"]
        assert looked > 300
        async with stage.service(inventory=(b"/fsx",), inventory_rate=200.0) as service:
            await asyncio.sleep(60.0)
            numbers = service.health().inventory[b"/fsx"]
        assert numbers["archived_files"] == 1000
        assert stage.world.counts["state"] < 1000 + looked - 200

    play(go)


def test_what_has_ended_long_ago_is_forgotten(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(5)
        async with stage.service(limits=Limits(finished_age=5000.0)) as service:
            job = await service.submit(request())
            await ended(service, job.id)
            await asyncio.sleep(4000.0)
            assert service.job(job.id) is not None
            await asyncio.sleep(5000.0)
            assert service.job(job.id) is None
            assert (await service._store.load()).jobs == []

    play(go)


def test_coverage_is_what_the_caller_may_see(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(40, released=0.5)
        async with stage.service() as service:
            status = await service.coverage(b"/fsx", ANN)
            assert status.all.resident.files == stage.resident()
            with pytest.raises(FsxwarmError):
                await service.coverage(b"/fsx/none", ANN)

    play(go)


def test_another_plan_holds_from_now_on(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0)
        async with stage.service() as service:
            await asyncio.sleep(200.0)
            assert stage.resident() == 95
            await service.reconfigure(replace(service.plan, make_room=(marks(10, 20),)))
            await asyncio.sleep(200.0)
            assert stage.resident() <= 81

    play(go)


def test_room_is_made_by_the_latest_of_a_files_times_and_only_as_much_as_wanted(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(92, released=0.0, age_spread=3 * 86400)
        young = int(EPOCH) - 60
        read, written, changed = stage.paths[:3]
        stage.names.file(read).atime = young
        stage.names.file(written).mtime = young
        stage.names.file(changed).ctime = young
        async with stage.service(make_room=(marks(10, 60),)) as service:
            await asyncio.sleep(300.0)
            assert service.health().totals["made_room_files"] == 52
        assert stage.resident() == 40
        assert stage.resident([read, written, changed]) == 3

    play(go)


def test_above_the_low_mark_nothing_is_released(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(89, released=0.0)
        plan = Marks(b"/fsx", Amount(percent=10.0), Amount(percent=20.0), unchecked=True)
        async with stage.service(make_room=(plan,)) as service:
            await asyncio.sleep(300.0)
            assert "made_room_files" not in service.health().totals
        assert stage.resident() == 89

    play(go)


def test_a_file_system_that_does_not_answer_keeps_no_other_waiting(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0)
        elsewhere = replace(marks(10, 20), mount=b"/elsewhere")
        async with stage.service(make_room=(elsewhere, marks(10, 20))) as service:
            await asyncio.sleep(300.0)
            assert any("making room" in problem for problem in service.health().problems)
        assert stage.resident() == 80

    play(go)


def test_an_inventory_that_ends_with_the_daemon_goes_on_where_it_was(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(1000, released=0.5, associations=10)
        async with stage.service(inventory=(b"/fsx",), inventory_rate=40.0):
            await asyncio.sleep(28.0)
        looked = stage.world.counts["state"]
        assert looked > 300
        async with stage.service(inventory=(b"/fsx",), inventory_rate=400.0) as service:
            await asyncio.sleep(60.0)
            assert service.health().inventory[b"/fsx"]["archived_files"] == 1000
        assert stage.world.counts["state"] < 1000 + looked - 200

    play(go)


def test_however_many_jobs_end_within_an_hour_no_more_are_kept_than_the_limit(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(3, released=0.0)
        async with stage.service(limits=Limits(finished_jobs=10)) as service:
            jobs = [await service.submit(request(path)) for _ in range(400) for path in stage.paths]
            await ended(service, jobs[-1].id)
            await asyncio.sleep(30.0)
            assert len(service.jobs()) == 10

    play(go)
