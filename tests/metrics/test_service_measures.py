"""What the daemon's core tells of itself, over simulated file systems in virtual time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from fsxwarm.engine.plan import KeepWarm, Marks, ServicePlan
from fsxwarm.engine.service import Service
from fsxwarm.engine.surroundings import Surroundings
from fsxwarm.metrics.exposition import Exposition
from fsxwarm.model.job import Identity, Kind, Phase
from fsxwarm.model.lease import LeaseRequest
from fsxwarm.model.measures import Measures, ServiceMeasure
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.units import Amount
from fsxwarm.ports.store import Changes
from fsxwarm.sim.faults import Fault, Faults, files
from fsxwarm.sim.nodes import Node
from fsxwarm.store.sqlite import SqliteStore
from service_stage import EPOCH, MB, Stage, ended, play, request


def service_of(measures: Measures) -> ServiceMeasure:
    assert measures.service is not None
    return measures.service


def test_a_warm_counts_its_files_bytes_requests_and_times(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(120)
        async with stage.service() as service:
            job = await service.submit(request())
            await ended(service, job.id)
            now = service.measures()
        meter = now.meter
        assert meter.settled_files[Outcome.RESTORED].files == 120
        assert meter.settled_files[Outcome.RESTORED].bytes == 120 * MB
        assert meter.requested_files == 120
        assert 3 <= meter.requests <= 12
        assert meter.scanned_files == 120
        assert [times.count for times in meter.restores] == [0, 120, 0, 0, 0, 0]
        assert meter.calls["restore"].count == meter.requests
        assert meter.calls["states"].count > 0
        assert not meter.call_errors
        assert service_of(now).jobs["preload", "done"] == 1
        assert service_of(now).ended["done"] == 1
        assert [(lane.mount, lane.in_flight) for lane in now.lanes] == [("/fsx", 0)] * len(now.lanes)
        assert now.restoring == {"/fsx": 0}

    play(act)


def test_while_it_warms_what_is_in_flight_queued_and_behind_is_told(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path, agents=1, bandwidth=MB)
        stage.fill(2000)
        async with stage.service() as service:
            await service.submit(request(priority=80, deadline=300.0))
            await asyncio.sleep(120)
            now = service.measures()
        lane = now.lanes[0]
        assert lane.in_flight > 0  # and may be more than the window, which has just been made smaller
        assert lane.window > 0
        assert now.restoring["/fsx"] >= lane.in_flight * MB
        assert service_of(now).queued["high"][0] > 1000
        assert service_of(now).queued["high"][1] == service_of(now).queued["high"][0] * MB
        assert service_of(now).queued["normal"] == (0, 0)
        assert service_of(now).behind == 1
        assert service_of(now).jobs["preload", "running"] == 1

    play(act)


def test_a_job_that_will_be_in_time_is_not_behind(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path, agents=1, bandwidth=MB)
        stage.fill(200)
        async with stage.service() as service:
            await service.submit(request(deadline=3600.0))
            await asyncio.sleep(100)
            assert service_of(service.measures()).behind == 0

    play(act)


def test_failures_have_their_reason(tmp_path: Path) -> None:
    async def act() -> None:
        bad: set[Node] = set()
        stage = Stage(tmp_path, Faults(restore=[files(lambda node: node in bad, Fault.OBJECT_MISSING)]))
        stage.fill(20)
        bad.update(stage.names.file(path).node for path in stage.paths[:3])
        async with stage.service() as service:
            job = await service.submit(request())
            await ended(service, job.id)
            meter = service.measures().meter
        assert meter.reasons[Outcome.FAILED, Reason.RESTORE_FAILED] == 3

    play(act)


def test_keep_warm_rounds_tell_coverage_and_age(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(20)
        async with stage.service(keep_warm=(KeepWarm((b"/fsx",), 600.0),)) as service:
            await asyncio.sleep(300)
            (first,) = service.measures().rounds
            assert (first.path, first.every, first.coverage) == ("/fsx", 600.0, 1.0)
            await asyncio.sleep(1200)
            (later,) = service.measures().rounds
            assert later.ended > first.ended
        async with stage.service(keep_warm=(KeepWarm((b"/fsx",), 600.0),)) as service:
            assert [round_.ended for round_ in service.measures().rounds] == [later.ended]

    play(act)


def test_the_inventory_tells_states_and_flags(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(40)
        async with stage.service(inventory=(b"/fsx",), inventory_rate=1e6) as service:
            await asyncio.sleep(60)
            now = service.measures()
        (stock,) = now.stocks
        assert (stock.mount, stock.path) == ("/fsx", "/fsx")
        assert stock.files == {"resident": 0, "released": 40}
        assert stock.bytes["released"] == 40 * MB
        assert stock.archived_files == 40
        assert stock.flagged == {"dirty": 0, "not_archived": 0, "pinned": 0, "lost": 0}
        assert service_of(now).scans == {"/fsx": False}

    play(act)


def test_space_is_measured_where_nothing_is_warmed(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(4)
        store = await SqliteStore.open(stage.path)
        around = Surroundings(lambda: [b"/fsx"])
        async with Service(stage.means(store), ServicePlan(), around=around) as service:
            await asyncio.sleep(1)
            (space,) = service.measures().spaces
        await store.close()
        assert space.mount == "/fsx"
        assert 0 < space.free <= space.size
        assert space.fullest is not None

    play(act)


def test_leases_and_marks_are_told(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(4)
        marks = Marks(b"/fsx", Amount(percent=1.0), Amount(percent=2.0))
        async with stage.service(make_room=(marks,)) as service:
            await service.lease(LeaseRequest(1000, b"/fsx", 600.0))
            now = service_of(service.measures())
        assert now.leases == 1
        assert now.short == {"/fsx": 0}

    play(act)


def test_releases_are_counted_by_who_asked(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(10)
        async with stage.service() as service:
            await ended(service, (await service.submit(request())).id)
            root = request(kind=Kind.RELEASE, admin=True)
            await ended(service, (await service.submit(root)).id)
            now = service_of(service.measures())
        assert now.released["jobs"] == (10, 10 * MB)
        assert now.released["make_room"] == (0, 0)

    play(act)


def test_as_many_series_with_ten_thousand_jobs_of_a_hundred_users_as_with_one(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(50)
        async with stage.service() as service:
            await ended(service, (await service.submit(request())).id)
            before = Exposition(service.measures).text()
        await fill_store(stage.path, 9_999)
        async with stage.service() as service:
            exposition = Exposition(service.measures)
            assert sum(service_of(service.measures()).jobs.values()) == 10_000
            await ended(service, (await service.submit(request())).id)
            after = exposition.text()
        assert {one for one in series(after) - series(before) if not one.startswith("fsxwarm_call_")} == set()
        assert b"no-such" not in after
        assert len(after) < 64_000

    play(act)


async def fill_store(path: str, count: int) -> None:
    """Jobs of a hundred users with names, labels and priorities of all kinds, some unfinished."""
    store = await SqliteStore.open(path)
    jobs = await asyncio.gather(
        *(
            store.add_job(
                request(
                    os.fsencode(f'/fsx/no-such "{number}"\n\udcff'),
                    identity=Identity(1000 + number % 100, (1000,)),
                    priority=number % 101,
                    label=f"label {number}",
                    slurm_job_id=str(number),
                ),
                float(number),
            )
            for number in range(count)
        )
    )
    final = [phase for phase in Phase if phase.final]
    ended = [replace(job, phase=final[at % 3], ended=EPOCH) for at, job in enumerate(jobs[100:])]
    await store.save(Changes(jobs=ended))
    await store.close()


def series(text: bytes) -> set[str]:
    return {line.rpartition(" ")[0] for line in text.decode().splitlines() if not line.startswith("#")}
