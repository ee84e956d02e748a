"""What the daemon remembers of files that did not become resident for a job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from fsxwarm.errors import Exit
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.ports.store import Limits
from service_stage import MB, Stage, ended, play, request


def test_files_of_a_cancelled_job_are_kept_and_those_at_fsx_are_told_apart(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(100, size=1000 * MB)
        async with stage.service(policy=Policy(WindowPolicy(fixed=4))) as service:
            job = await service.submit(request())
            await asyncio.sleep(5.0)
            view = await service.cancel(job.id)
            kept = await service.failures(job.id)
            assert view.counters.cancelled.files == len(kept) > 4
            assert {(one.outcome, one.reason) for one in kept} == {("cancelled", "interrupted")}
            assert sum(one.in_flight for one in kept) == view.counters.left_in_flight.files > 0
            assert len({one.path for one in kept}) == len(kept)
            await asyncio.sleep(3600.0)
            assert await service.failures(job.id) == kept

    play(go)


def test_files_that_a_deadline_cuts_off_are_kept(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(100, size=1000 * MB)
        async with stage.service(policy=Policy(WindowPolicy(fixed=4))) as service:
            wanted = request()
            job = await service.submit(replace(wanted, options=replace(wanted.options, deadline=5.0)))
            view = await ended(service, job.id)
            kept = await service.failures(job.id)
            assert view.job.exit is Exit.DEADLINE
            assert view.counters.cancelled.files == len(kept) > 0
            assert {(one.outcome, one.reason) for one in kept} == {("cancelled", "deadline")}

    play(go)


def test_a_vanished_file_is_kept(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(20, size=1000 * MB)
        async with stage.service(policy=Policy(WindowPolicy(fixed=1))) as service:
            job = await service.submit(request())
            await asyncio.sleep(3.0)
            stage.names.unlink(stage.paths[-1], stage.world.now)
            view = await ended(service, job.id)
            kept = await service.failures(job.id)
            assert (view.job.exit, view.counters.vanished.files) == (Exit.DONE, 1)
            assert [(one.path, one.outcome) for one in kept] == [(stage.paths[-1], "vanished")]

    play(go)


def test_no_more_are_kept_than_the_limit(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(100, size=1000 * MB)
        plan = {"policy": Policy(WindowPolicy(fixed=4)), "limits": Limits(failures_each=7)}
        async with stage.service(**plan) as service:
            job = await service.submit(request())
            await asyncio.sleep(5.0)
            await service.cancel(job.id)
            assert len(await service.failures(job.id)) == 7

    play(go)
