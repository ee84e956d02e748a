"""The daemon's core killed at any moment: no job lost, no file asked for twice, no counter older than a second."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.engine.service import Service
from fsxwarm.errors import Exit
from fsxwarm.model.job import Count, Counters, Phase
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.lease import LeaseRequest
from fsxwarm.sim.faults import CallFault, Faults, calls_between
from service_stage import ANN, BOB, Stage, ended, play, request


@pytest.mark.parametrize("seed", range(12))
def test_killed_again_and_again_all_jobs_finish_and_nothing_is_asked_for_twice(seed: int, tmp_path: Path) -> None:
    async def go() -> None:
        rng = random.Random(seed)
        stage = Stage(tmp_path, agents=8, latency=0.5)
        stage.fill(400, associations=2)
        some = stage.paths[0].rsplit(b"/", 2)[0]
        service = await stage.start()
        wanted = [request(some), request(identity=BOB, priority=10), request(some, priority=70, label="again")]
        jobs = []
        for number in range(20):
            if wanted and number % 2 == 0:
                jobs.append(await service.submit(wanted.pop()))
            await asyncio.sleep(rng.choice([0.0, 0.01, 0.3, 2.0, 5.0]) * rng.random())
            await stage.kill(service)
            service = await stage.start()
        for job in jobs:
            view = await ended(service, job.id)
            assert (view.job.phase, view.job.exit) == (Phase.DONE, Exit.DONE)
            assert view.counters.coverage == 1.0
            assert view.counters.found.files == (200 if job.request.paths == (some,) else 400)
            assert view.counters.settled == view.counters.found
        await stage.kill(service)
        assert stage.resident() == 400
        assert stage.duplicates == 0
        assert stage.world.counts["items"] == 400

    play(go)


def test_a_crash_loses_no_counter_by_more_than_a_second(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=5, latency=0.5)
        stage.fill(300)
        service = await stage.start()
        job = await service.submit(request())
        await asyncio.sleep(10.0)
        before = service.job(job.id)
        totals = service.health().totals["restored_files"]
        assert before is not None
        assert before.counters.restored.files > 20
        await asyncio.sleep(1.0)
        await stage.kill(service)
        service = await stage.start()
        after = service.job(job.id)
        assert after is not None
        assert after.job.resumed == 1
        assert after.counters.restored.files >= before.counters.restored.files
        assert service.health().totals["restored_files"] >= totals
        view = await ended(service, job.id)
        assert view.counters.restored.files >= 290
        assert view.counters.found.files == 300
        await stage.kill(service)

    play(go)


def test_what_was_submitted_cancelled_or_leased_holds_from_the_answer_on(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=1, latency=1.0)
        stage.fill(100)
        service = await stage.start()
        stays = await service.submit(request())
        gone = await service.submit(request(identity=BOB))
        await service.set_priority(stays.id, 33)
        lease = await service.lease(LeaseRequest(ANN.uid, b"/fsx", 500.0))
        await service.cancel(gone.id)
        await stage.kill(service)
        service = await stage.start()
        first, second = service.job(stays.id), service.job(gone.id)
        assert first is not None
        assert second is not None
        assert first.job.request.priority == 33
        assert second.job.phase is Phase.CANCELLED
        assert service.leases() == [lease]
        await stage.kill(service)

    play(go)


def test_a_release_job_goes_on(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(500, released=0.0)
        service = await stage.start()
        job = await service.submit(request(kind=JobKind.RELEASE, admin=True))
        await stage.kill(service)
        service = await stage.start()
        view = await ended(service, job.id)
        assert view.counters.released.files == 500
        assert stage.resident() == 0
        await stage.kill(service)

    play(go)


def test_when_nothing_answers_the_service_waits_and_goes_on(tmp_path: Path) -> None:
    async def go() -> None:
        kinds = frozenset({"state", "action", "restore", "stat", "walk", "resolve"})
        stage = Stage(tmp_path, Faults(call=[calls_between(5.0, 300.0, CallFault.EIO, kinds=kinds)]), agents=2)
        stage.fill(100, size=10**8)
        async with stage.service() as service:
            job = await service.submit(request())
            await asyncio.sleep(20.0)
            later = await service.submit(request(identity=BOB))
            for each in (job, later):
                assert (await ended(service, each.id)).job.phase.final
        assert stage.duplicates == 0

    play(go)


def test_a_mount_that_is_not_there_yet_after_a_reboot_is_waited_for(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, agents=1, latency=1.0)
        stage.fill(50)
        service = await stage.start()
        job = await service.submit(request(b"/fsx/moved"))
        stage.names.rename(stage.paths[0].rsplit(b"/", 2)[0], b"/fsx/moved", 0.0)
        await stage.kill(service)
        stage.names.rename(b"/fsx/moved", b"/fsx/away", 0.0)
        service = await stage.start()
        await asyncio.sleep(100.0)
        waiting = service.job(job.id)
        assert waiting is not None
        assert not waiting.job.phase.final
        assert "moved" in waiting.job.error
        stage.names.rename(b"/fsx/away", b"/fsx/moved", 100.0)
        assert (await ended(service, job.id)).counters.coverage == 1.0
        await stage.kill(service)

    play(go)


async def _sum(service: Service) -> int:
    return sum(view.counters.restored.files for view in service.jobs())


counts = st.builds(Count, st.integers(0, 50), st.integers(0, 5000))


@given(counts, counts, counts, counts, st.booleans())
def test_counters_of_a_walk_begun_anew_add_up(
    before: Count,
    resident: Count,
    restored: Count,
    found: Count,
    scanned: bool,  # noqa: FBT001 - drawn
) -> None:
    earlier = Counters(found=before, restored=before)
    now = Counters(found=resident.plus(restored).plus(found), resident=resident, restored=restored, scanned=scanned)
    both = now.after(earlier)
    assert both.restored == before.plus(restored)
    assert both.settled.files <= both.found.files
    assert both.after(Counters()).restored == both.restored
    assert now.after(Counters()) == now


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_counters_never_go_back_over_crashes(seed: int) -> None:
    async def go() -> None:
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(Path(folder), agents=4, latency=0.5)
            stage.fill(100)
            service = await stage.start()
            await service.submit(request())
            seen = 0
            for _ in range(5):
                await asyncio.sleep(rng.random() * 6)
                await service._flush()
                assert await _sum(service) >= seen
                seen = await _sum(service)
                await stage.kill(service)
                service = await stage.start()
            assert await _sum(service) >= seen
            await stage.kill(service)

    play(go)
