"""The whole at a glance, over a simulated FSx in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

from fsxwarm.engine.plan import Marks
from fsxwarm.model.units import Amount
from fsxwarm.sim.faults import Fault, Faults
from service_stage import ANN, BOB, EPOCH, MB, Stage, ended, play, request


def test_the_last_hour_is_kept_and_no_more(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(200)
        async with stage.service() as service:
            await ended(service, (await service.submit(request())).id)
            await asyncio.sleep(20)
            then = service.overview().past
            await asyncio.sleep(7200)
            past = service.overview().past
        assert then[0].restored_files == 0
        assert (then[-1].restored_files, then[-1].restored_bytes) == (200, 200 * MB)
        assert [after.at > before.at for before, after in itertools.pairwise(past)] == [True] * (len(past) - 1)
        assert 3600 <= past[-1].at - past[0].at < 3700
        assert past[-1].at > EPOCH + 7200

    play(act)


def test_the_slowest_files_come_first_and_only_to_those_who_want_them(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path, Faults(restore=[lambda node, _tries: Fault.STUCK if node.fid.oid % 10 == 0 else None]))
        stage.fill(100)
        async with stage.service() as service:
            job = (await service.submit(request(identity=ANN))).id
            await asyncio.sleep(60)
            slow = service.overview(owner=ANN.uid).slowest
            assert slow
            assert [one.seconds for one in slow] == sorted((one.seconds for one in slow), reverse=True)
            assert {one.path for one in slow} <= set(stage.paths)
            assert {one.jobs for one in slow} == {(job,)}
            assert 10 < slow[0].seconds < 60
            assert service.overview(owner=BOB.uid).slowest == []
            assert len(service.overview().slowest) == len(slow)

    play(act)


def test_space_is_told_with_the_marks_at_which_room_is_made(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(10)
        marks = Marks(b"/fsx", Amount(percent=10), Amount(percent=20), dry_run=True)
        async with stage.service(make_room=[marks], reserve=Amount(percent=5)) as service:
            await ended(service, (await service.submit(request())).id)
            (room,) = service.overview().rooms
        assert (room.mount, room.dry_run) == (b"/fsx", True)
        assert 0 < room.free <= room.total
        assert (room.low, room.high) == (room.total // 10, room.total // 5)

    play(act)


def test_of_many_jobs_the_newest_are_shown_those_that_go_on_first(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(5)
        async with stage.service() as service:
            ids = [(await service.submit(request(identity=ANN))).id for _ in range(150)]
            theirs = (await service.submit(request(identity=BOB))).id
            for job in ids[140:]:
                await service.cancel(job)
            shown = [view.job.id for view in service.overview(owner=ANN.uid).jobs]
            assert shown[:100] == ids[139:39:-1]
            assert shown[100:] == ids[:139:-1]
            assert [view.job.id for view in service.overview(owner=BOB.uid).jobs] == [theirs]
            assert service.overview().jobs[0].job.id == theirs

    play(act)


def test_what_the_inventory_counted_is_told(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(40)
        async with stage.service(inventory=(b"/fsx",), inventory_rate=10_000.0) as service:
            await asyncio.sleep(100)
            (stock,) = service.overview().stocks
        assert (stock.path, stock.released_files, stock.released_bytes) == (b"/fsx", 40, 40 * MB)
        assert EPOCH < stock.at < EPOCH + 100

    play(act)
