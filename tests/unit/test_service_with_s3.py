"""What the daemon does with what S3 tells: asks only for what it can give, says why restores failed, loses nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aws.paper_cloud import SYSTEM, PaperCloud
from fsxwarm.engine.service import Marks, Service
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.association import Association, as_prefix
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.job import Phase
from fsxwarm.model.s3 import CheckS3, Stored
from fsxwarm.model.units import Amount
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.restore_log import LogEvent
from fsxwarm.sim.faults import Fault as SimFault
from fsxwarm.sim.faults import Faults, files
from service_stage import EPOCH, MB, Stage, ended, play, request

DENIED = CloudError(Fault.DENIED, "s3:ListBucket", "AccessDenied", "not you")


def key(path: bytes) -> str:
    return "p/" + path.removeprefix(b"/fsx/").decode()


def stored(stage: Stage) -> PaperCloud:
    """A cloud that holds every file of the stage."""
    return PaperCloud({key(path): Stored(MB, int(EPOCH) - 8 * 86400) for path in stage.paths})


def staged(folder: Path, count: int, faults: Faults | None = None, **fill: Any) -> Stage:
    stage = Stage(folder, faults)
    stage.fill(count, **fill)
    stage.cloud = stored(stage)
    return stage


async def reasons(service: Service, job_id: str) -> dict[bytes, str]:
    return {failure.path: failure.reason for failure in await service.failures(job_id)}


def test_what_s3_cannot_give_is_not_asked_for_and_named_with_why(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 300)
        assert stage.cloud is not None
        gone, changed, frozen = stage.paths[3], stage.paths[100], stage.paths[299]
        del stage.cloud.objects[key(gone)]
        stage.cloud.objects[key(changed)] = Stored(MB - 1, 5)
        stage.cloud.objects[key(frozen)] = Stored(MB, 5, "DEEP_ARCHIVE")
        async with stage.service() as service:
            view = await ended(service, (await service.submit(request())).id)
            assert (view.job.phase, view.job.exit) == (Phase.DONE, Exit.INCOMPLETE)
            assert view.counters.blocked.files == 3
            assert view.counters.restored.files == 297
            assert await reasons(service, view.job.id) == {
                gone: "object_missing", changed: "object_changed", frozen: "storage_class",
            }  # fmt: skip
            never = await service.submit(request(gone, check_s3=CheckS3.NEVER))
            assert (await ended(service, never.id)).counters.restored.files == 1

    play(go)


def test_without_credentials_all_else_works_and_it_is_said_once(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path)
        stage.fill(20)
        async with stage.service() as service:
            for path in stage.paths[:5]:
                assert (await ended(service, (await service.submit(request(path))).id)).job.exit is Exit.DONE
        assert len(stage.said) == 1
        assert "without AWS credentials" in stage.said[0]

    play(go)


def test_a_job_that_insists_on_the_check_waits_until_aws_answers(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 20)
        assert stage.cloud is not None
        stage.cloud.fails = DENIED
        async with stage.service() as service:
            job = await service.submit(request(check_s3=CheckS3.ALWAYS))
            await asyncio.sleep(100.0)
            view = service.job(job.id)
            assert view is not None
            assert not view.job.phase.final
            assert "what S3 holds cannot be checked" in view.job.error
            assert stage.resident() == 0
            stage.cloud.fails = None
            assert (await ended(service, job.id)).job.exit is Exit.DONE
        assert stage.resident() == 20

    play(go)


def failing(stage: Stage, paths: list[bytes], bad: set[object]) -> None:
    """Let the restores of files fail, and the file system's log say why."""
    bad |= {stage.names.file(path).node for path in paths}
    sentence = "Failed to restore file because access was denied to S3 object {} in S3 bucket data."
    for path in paths:
        stage.log.lines.append(LogEvent(stage.wall() + 20.0, sentence.format(key(path))))


class Logging(PaperCloud):
    """A cloud whose file system logs to CloudWatch."""

    async def file_systems(self, ids: Any = ()) -> Any:
        return [replace(system, log_group="/aws/fsx/lustre") for system in await super().file_systems(ids)]


def test_failed_restores_are_explained_from_the_file_systems_log(tmp_path: Path) -> None:
    async def go() -> None:
        bad: set[object] = set()
        stage = staged(tmp_path, 60, Faults(restore=[files(lambda node: node in bad, SimFault.ACCESS_DENIED)]))
        assert stage.cloud is not None
        stage.cloud = Logging(stage.cloud.objects)
        denied, silent = stage.paths[:2], stage.paths[2]
        failing(stage, denied, bad)
        bad.add(stage.names.file(silent).node)
        async with stage.service() as service:
            view = await ended(service, (await service.submit(request())).id)
            assert view.counters.failed.files == 3
            assert view.counters.reasons == {"access_denied": 2, "restore_failed": 1}
            assert await reasons(service, view.job.id) == {
                **dict.fromkeys(denied, "access_denied"), silent: "restore_failed",
            }  # fmt: skip
            assert service.health().totals["failed_files"] == 3
            reads = stage.log.reads
            await asyncio.sleep(600.0)
            assert stage.log.reads == reads

    play(go)


def test_who_cancels_does_not_wait_for_reasons(tmp_path: Path) -> None:
    async def go() -> None:
        bad: set[object] = set()
        stage = staged(tmp_path, 60, Faults(restore=[files(lambda node: node in bad, SimFault.ACCESS_DENIED)]))
        assert stage.cloud is not None
        stage.cloud = Logging(stage.cloud.objects)
        bad |= {stage.names.file(path).node for path in stage.paths}
        async with stage.service() as service:
            job = await service.submit(request())
            failed = 0
            while not failed:
                failed = (await service.wait(job.id, 0.5)).counters.failed.files
            assert (await service.cancel(job.id)).job.phase is Phase.CANCELLED
            assert len(await reasons(service, job.id)) >= failed

    play(go)


def test_s3_addresses_are_paths_as_soon_as_the_job_is_taken_on(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 40, associations=2)
        folder = stage.paths[0].rsplit(b"/", 2)[0]
        address = b"s3://data/" + key(folder).encode()
        async with stage.service() as service:
            job = await service.submit(request(address))
            assert job.request.paths == (folder,)
            view = await ended(service, job.id)
            assert view.counters.restored.files == sum(path.startswith(folder) for path in stage.paths)
            wish = replace(request(), paths=(), files=(b"s3://data/" + key(stage.paths[-1]).encode(), b"s3://other/x"))
            view = await ended(service, (await service.submit(wish)).id)
            assert (view.counters.restored.files, view.counters.unreadable) == (1, 1)
            assert await reasons(service, view.job.id) == {b"s3://other/x": "gone"}
            with pytest.raises(FsxwarmError, match="linked to no file system"):
                await service.submit(request(b"s3://other/x"))
            with pytest.raises(FsxwarmError) as caught:
                await service.submit(request(b"s3://BAD_BUCKET/x"))
            assert caught.value.kind is Kind.USAGE
            assert len(service.jobs()) == 2

    play(go)


def test_a_new_association_is_found_without_a_restart(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 5)
        assert stage.cloud is not None
        async with stage.service() as service:
            with pytest.raises(FsxwarmError, match="linked to no file system"):
                await service.submit(request(b"s3://new/"))
            stage.cloud.associations_ = [Association("dra-2", "/", as_prefix("s3://new"), "AVAILABLE")]
            await asyncio.sleep(301.0)
            assert (await service.submit(request(b"s3://new/"))).request.paths == (b"/fsx",)

    play(go)


def test_releases_leave_what_s3_does_not_hold(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 40, released=0.0)
        assert stage.cloud is not None
        gone, other = stage.paths[0], stage.paths[7]
        del stage.cloud.objects[key(gone)]
        stage.cloud.objects[key(other)] = Stored(MB + 1, 5)
        async with stage.service() as service:
            view = await ended(service, (await service.submit(request(kind=JobKind.RELEASE, admin=True))).id)
            assert view.counters.reasons == {"no_object": 1, "other_size": 1}
            assert view.job.exit is Exit.INCOMPLETE
            assert view.counters.released.files == 38
        assert stage.resident([gone, other]) == 2

    play(go)


def marks(*, unchecked: bool) -> Marks:
    return Marks(b"/fsx", Amount(bytes=10 * MB), Amount(bytes=20 * MB), unchecked=unchecked)


@pytest.mark.parametrize("unchecked", [False, True])
def test_making_room_releases_nothing_that_it_cannot_check_unless_told_to(tmp_path: Path, *, unchecked: bool) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0)
        async with stage.service(make_room=(marks(unchecked=unchecked),)) as service:
            await asyncio.sleep(200.0)
            assert (stage.resident() < 95) is unchecked
            assert any("cannot be checked" in problem for problem in service.health().problems) is not unchecked

    play(go)


def test_making_room_goes_on_behind_files_whose_objects_are_gone(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Stage(tmp_path, osts=1, ost_size=100 * MB)
        stage.fill(95, released=0.0, age_spread=3 * 86400)
        stage.cloud = stored(stage)
        oldest = sorted(stage.paths, key=lambda path: stage.names.find(path).mtime)[:5]
        for path in oldest:
            del stage.cloud.objects[key(path)]
        async with stage.service(make_room=(marks(unchecked=False),)) as service:
            await asyncio.sleep(200.0)
            assert service.health().problems == ()
        assert stage.resident(oldest) == 5
        assert 79 <= stage.resident() <= 81

    play(go)


def test_a_system_that_is_no_fsx_is_not_asked_about(tmp_path: Path) -> None:
    assert SYSTEM.log_group == ""

    async def go() -> None:
        bad: set[object] = set()
        stage = staged(tmp_path, 10, Faults(restore=[files(lambda node: node in bad, SimFault.ACCESS_DENIED)]))
        bad.add(stage.names.file(stage.paths[0]).node)
        async with stage.service() as service:
            view = await ended(service, (await service.submit(request())).id)
            assert view.counters.reasons == {"restore_failed": 1}
        assert stage.log.reads == 0

    play(go)


def test_the_inventory_counts_each_association_by_itself(tmp_path: Path) -> None:
    async def go() -> None:
        stage = staged(tmp_path, 40, associations=2)
        assert stage.cloud is not None
        folders = sorted({b"/" + b"/".join(path.split(b"/")[1:3]) for path in stage.paths})
        stage.cloud.associations_ = [
            Association(f"dra-{folder}", folder.removeprefix(b"/fsx").decode(), as_prefix("s3://data/p"), "AVAILABLE")
            for folder in folders
        ]
        async with stage.service(inventory_linked=True) as service:
            await asyncio.sleep(60.0)
            found = service.health().inventory
        assert sorted(found) == folders
        assert sum(int(str(numbers["archived_files"])) for numbers in found.values()) == 40

    play(go)
