"""What the doctor finds, and that it does no harm."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from fsxwarm.engine.doctor import Doctor, Finding, Level
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.ports.hsm import CallHungError, Space
from paper import CLEAN, GONE, File, Paper


async def _findings(
    world: Paper, *paths: bytes, root: bool = False, servers: tuple[int, ...] | Trouble = (2, 15, 8)
) -> dict[str, Finding]:
    async def version(source: str) -> tuple[int, ...] | Trouble:
        assert source == "fs-1@tcp:/abc"
        return servers

    doctor = Doctor(world, world, version, root=root)
    return {finding.check: finding async for finding in doctor.examine(paths or (b"/fsx",))}


async def test_where_all_is_well_each_check_says_ok() -> None:
    world = Paper({b"/fsx/1": File(GONE), b"/fsx/2": File()})
    findings = await _findings(world)
    assert {finding.level for finding in findings.values()} == {Level.OK}
    assert list(findings) == ["lfs", "path", "servers", "states", "restore", "space", "ost", "user"]
    assert "2.15.8" in findings["lfs"].text
    assert "fs-1@tcp:/abc" in findings["path"].text
    assert ("restore", 1) in world.calls


@pytest.mark.parametrize(
    "file", [File(GONE), File(Flags(0)), File(CLEAN | Flags.DIRTY), File(CLEAN, action=Action(Verb.RESTORE))]
)
async def test_the_probe_never_touches_a_file_that_a_restore_could_change(file: File) -> None:
    world = Paper({b"/fsx/1": file})
    findings = await _findings(world)
    assert "not tried" in findings["restore"].text
    assert "restore" not in [name for name, _ in world.calls]


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ((2, 15, 8), "Lustre 2.15.8: each file is looked at"),
        ((2, 15, 99), "Lustre 2.15.99: each file is looked at"),
        ((2, 16, 0), "Lustre 2.16.0: files need no look"),
        (
            Trouble(b"", errno.EACCES, "debugfs is closed"),
            "version unknown (debugfs is closed): each file is looked at",
        ),
    ],
)
async def test_it_says_whether_files_are_looked_at_before_they_are_asked_for(
    servers: tuple[int, ...] | Trouble, says: str
) -> None:
    finding = (await _findings(Paper({b"/fsx/1": File()}), servers=servers))["servers"]
    assert finding.text.startswith(says)
    assert finding.level is Level.OK


async def test_a_refused_restore_is_a_failure_with_advice() -> None:
    findings = await _findings(Paper({b"/fsx/1": File(refuse=errno.EPERM)}))
    assert findings["restore"].level is Level.FAIL
    assert "administrator" in findings["restore"].advice


async def test_a_stopped_coordinator_is_named() -> None:
    findings = await _findings(Paper({b"/fsx/1": File(refuse=errno.EAGAIN)}))
    assert "coordinator" in findings["restore"].advice


async def test_flags_that_may_not_be_read_are_a_warning_only() -> None:
    findings = await _findings(Paper({b"/fsx/1": File(errno=errno.EACCES), b"/fsx/2": File()}))
    assert findings["states"].level is Level.WARN
    assert "1 of 2 files" in findings["states"].text


async def test_flags_that_nobody_can_read_are_a_failure() -> None:
    findings = await _findings(Paper({b"/fsx/1": File(errno=errno.ENOTTY)}))
    assert findings["states"].level is Level.FAIL


async def test_an_empty_folder_is_no_trouble() -> None:
    findings = await _findings(Paper({}, {b"/fsx"}))
    assert "no files" in findings["states"].text


async def test_unreadable_folders_are_named() -> None:
    findings = await _findings(Paper({b"/fsx/a/1": File()}, closed={b"/fsx/a"}))
    assert findings["folders"].level is Level.WARN
    assert "/fsx/a" in findings["folders"].text


@pytest.mark.parametrize(("path", "says"), [(b"/nowhere", "No such file"), (b"/home", "NFS"), (b"/etc", "ext4")])
async def test_a_path_that_will_not_do_is_a_failure(path: bytes, says: str) -> None:
    findings = await _findings(Paper({b"/etc/x": File()}), path)
    assert findings["path"].level is Level.FAIL
    assert says in findings["path"].text
    assert findings["path"].advice


async def test_a_full_file_system_is_a_warning() -> None:
    findings = await _findings(Paper({b"/fsx/1": File()}, other=950_000_000))
    assert (findings["space"].level, findings["ost"].level) == (Level.WARN, Level.WARN)
    assert "fsxwarm release" in findings["space"].advice


async def test_root_and_others_are_told_what_they_can_do() -> None:
    world = Paper({}, {b"/fsx"})
    assert "you are root" in (await _findings(world, root=True))["user"].text
    assert "only root can cancel" in (await _findings(world))["user"].text


async def test_hanging_calls_are_counted() -> None:
    findings = await _findings(Paper({}, {b"/fsx"}, abandoned=2))
    assert (findings["calls"].level, findings["calls"].text[:7]) == (Level.WARN, "4 calls")


class _NoLfs(Paper):
    async def version(self) -> tuple[int, ...] | Trouble:
        raise FsxwarmError(Kind.NO_LFS, "there is no lfs here")


async def test_without_lfs_the_path_is_still_judged_and_nothing_else_tried() -> None:
    world = _NoLfs({b"/fsx/1": File()})
    findings = await _findings(world)
    assert (findings["lfs"].level, findings["path"].level) == (Level.FAIL, Level.OK)
    assert "lustre-client" in findings["lfs"].advice
    assert world.calls == []


class _Old(Paper):
    async def version(self) -> tuple[int, ...] | Trouble:
        return (2, 12, 9)


async def test_an_old_client_works_but_is_told_of_a_better_one() -> None:
    assert (await _findings(_Old({}, {b"/fsx"})))["lfs"].level is Level.WARN


class _Hung(Paper):
    async def states(self, paths: Sequence[bytes]) -> list[Flags | Trouble]:
        raise CallHungError(f"lfs hsm_state of {len(paths)}", 60)

    async def space(self, mount: bytes) -> Space | Trouble:
        return Trouble(mount, errno.EIO)


async def test_a_hanging_look_is_a_failure_and_the_other_checks_go_on() -> None:
    findings = await _findings(_Hung({b"/fsx/1": File()}))
    assert findings["states"].level is Level.FAIL
    assert findings["space"].level is Level.WARN
