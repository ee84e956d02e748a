"""Lists that a job names are read with its user's rights, and with nothing else."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.people import groups_of, served, uids_of
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.reading import read_as
from fsxwarm.model.job import Identity

GAMES = Identity(5, (60,))
"""An ordinary user of every Debian."""
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root takes on other users' rights")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def listing(folder: Path, data: bytes, mode: int = 0o644) -> bytes:
    path = folder / "list"
    path.write_bytes(data)
    path.chmod(mode)
    return bytes(path)


@ONLY_ROOT
async def test_a_list_that_the_user_may_read_is_read(folder: Path) -> None:
    assert await read_as(GAMES, listing(folder, b"/fsx/\xff\n/fsx/b\n"), os.environ) == b"/fsx/\xff\n/fsx/b\n"


@ONLY_ROOT
async def test_a_list_that_the_user_may_not_read_is_refused(folder: Path) -> None:
    path = listing(folder, b"secret", 0o600)

    with pytest.raises(FsxwarmError, match="cannot be read: Permission denied") as caught:
        await read_as(GAMES, path, os.environ)
    assert caught.value.kind is Kind.NO_SUCH_PATH
    assert await read_as(Identity(0, (0,)), path, os.environ) == b"secret"


async def test_a_list_without_an_end_is_too_large() -> None:
    own = Identity(os.geteuid(), (os.getegid(),))
    with pytest.raises(FsxwarmError) as caught:
        await read_as(own, b"/dev/zero", os.environ)
    assert caught.value.kind is Kind.TOO_LARGE


async def test_users_are_those_that_the_machine_knows() -> None:
    assert groups_of(0).gids[0] == 0
    assert groups_of(5, 60) == GAMES
    assert uids_of(["root", "games", "64030"]) == {0, 5, 64_030}
    with pytest.raises(FsxwarmError, match="no user nobody-at-all"):
        uids_of(["nobody-at-all"])


async def test_only_those_are_acted_for_whom_the_daemon_serves() -> None:
    circle = Circle(0, 60, None)
    assert await served(5, lambda: circle) == GAMES
    with pytest.raises(FsxwarmError, match="not for uid 6"):
        await served(6, lambda: circle)
    with pytest.raises(FsxwarmError, match="no user with uid 59999"):
        await served(59_999, lambda: circle)
