"""The executable `lfs` gives the recorded bytes as well, through a real process, a socket and files on a disk."""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fsxwarm.sim.launch import SimulatedFsx, start
from golden.cases import Case, load
from golden.conditions import COMMON, RESTORE, SIZED, USERS, Condition, File, Folder, HardLink, Link, Special, Thing, of

COMMANDS: Final = {"hsm_state", "hsm_action", "hsm_set", "hsm_restore", "hsm_release", "hsm_cancel"}
UNITS: Final = {"hsm_state", "hsm_action", "hsm_set", "hsm_restore", "hsm_release", "hsm_restore_size", "layout"}
BASES: Final = (COMMON, RESTORE, SIZED)


def wanted(case: Case) -> list[tuple[bytes, Thing]] | None:
    """Return the files that a case names, if it is of those that need nothing but files in a folder."""
    condition = of(case.id)
    if case.command not in COMMANDS or case.id.partition("/")[0] not in UNITS or case.timed_out:
        return None
    plain = Condition(condition.cwd, condition.things)
    if condition != plain or any(b"/" in word for word in case.argv):
        return None
    named = [
        (word, condition.things[condition.cwd + b"/" + word])
        for word in dict.fromkeys(case.argv)
        if condition.cwd + b"/" + word in condition.things
    ]
    for _, thing in list(named):
        behind = thing.target if isinstance(thing, Link) else thing.of if isinstance(thing, HardLink) else None
        if behind is not None and condition.cwd + b"/" + behind in condition.things:
            named.insert(0, (behind, condition.things[condition.cwd + b"/" + behind]))
    for _, thing in named:
        if isinstance(thing, Special) and thing.letter != "p":
            return None
        if isinstance(thing, File) and (not thing.doing.idle or thing.unflushed or thing.archive_id != 1):
            return None
    return named


SAMPLE: Final = [(case, files) for case in load() if (files := wanted(case)) is not None]


@pytest.fixture(scope="module")
def fsx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedFsx]:
    with start(tmp_path_factory.mktemp("golden") / "fsx", "--files", "0") as fsx:
        yield fsx


def make(fsx: SimulatedFsx, path: Path, thing: Thing) -> None:
    if isinstance(thing, Folder):
        path.mkdir(mode=thing.mode, exist_ok=True)
    elif isinstance(thing, Link):
        path.symlink_to(os.fsdecode(thing.target))
    elif isinstance(thing, HardLink):
        path.hardlink_to(path.with_name(os.fsdecode(thing.of)))
    elif isinstance(thing, Special):
        os.mkfifo(path)
    elif not path.exists():
        path.write_bytes(bytes(thing.size))
        path.chmod(thing.mode)
        if thing.owner:
            os.chown(path, thing.owner, thing.owner)
        fsx.control("flags", paths=[str(path)], flags=int(thing.flags))


@pytest.mark.parametrize(("case", "files"), SAMPLE, ids=[case.id for case, _ in SAMPLE])
def test_the_executable_answers_as_the_real_one(
    case: Case, files: list[tuple[bytes, Thing]], fsx: SimulatedFsx
) -> None:
    if os.geteuid() != 0 and any(isinstance(thing, File) and thing.owner for _, thing in files):
        pytest.skip("only root can make files of other owners")
    folder = fsx.mount / secrets.token_hex(8)
    folder.mkdir()
    for name, thing in files:
        make(fsx, folder / os.fsdecode(name), thing)
    done = subprocess.run(
        case.argv,
        cwd=folder,
        env=fsx.environ(os.environ, uid=USERS[case.user]),
        capture_output=True,
        timeout=20,
        check=False,
    )
    stderr = done.stderr.partition(b"\n")[0] + b"\n" if case.usage_cut else done.stderr
    assert (done.stdout, stderr, done.returncode) == (case.stdout, case.stderr, case.exit)


def test_the_sample_is_large() -> None:
    assert len(SAMPLE) > 150


def test_the_executable_starts_without_site_packages(fsx: SimulatedFsx) -> None:
    assert fsx.lfs.read_bytes().split(b"\n")[0].endswith(b" -IS")
    assert stat.S_IMODE(fsx.lfs.stat().st_mode) == 0o755
