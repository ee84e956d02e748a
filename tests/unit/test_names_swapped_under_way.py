"""Names that come to mean something else at the worst moment: what was checked is what is asked for, or nothing is."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import Reply

STAND_IN = '''
"""Carries out a swap before or after the opening of the name "x", once; a FID's number is the inode's."""
import os

class Calls:
    def open(self, path, flags):
        worst = path.endswith(b"/x") and os.path.exists(os.environ["SWAP"])
        if worst and os.environ["MOMENT"] == "before":
            self.swap()
        fd = os.open(path, os.O_PATH | flags & os.O_NOFOLLOW)
        if worst and os.environ["MOMENT"] == "after":
            self.swap()
        return fd

    def swap(self):
        moves = open(os.environ["SWAP"]).read().split("\\n")
        os.unlink(os.environ["SWAP"])
        for move in moves:
            what, one, other = move.split()
            {"rename": os.rename, "link": os.symlink}[what](one, other)

    def close(self, fd):
        os.close(fd)

    def ioctl(self, fd, number, argument):
        with open(os.environ["LOG"], "ab") as log:
            log.write(b"%x %d %s\\n" % (number, os.fstat(fd).st_ino, argument.hex().encode()))
        return argument

    def fid(self, fd):
        return bytes(8) + os.fstat(fd).st_ino.to_bytes(4, "little") + bytes(4)
'''


class Stage:
    """A file `mine/x`, one that is somebody else's in `vault`, and the moves that put it in the first one's place."""

    def __init__(self, top: Path, moment: str) -> None:
        self.mount = top / "fsx"
        for folder in ("mine", "vault"):
            (self.mount / folder).mkdir(parents=True)
            (self.mount / folder / "x").write_text(folder)
        (self.mount / "mine" / "y").touch()
        (top / "mounts").write_text(f"sim@tcp:/fsx {self.mount} lustre rw 0 0\n")
        (top / "calls.py").write_text(STAND_IN)
        self.top = top
        self.path = os.fsencode(self.mount / "mine" / "x")
        self.beside = os.fsencode(self.mount / "mine" / "y")
        self.secret = (self.mount / "vault" / "x").stat().st_ino
        self.environ = {
            "FSXWARM_SYSTEM_CALLS": str(top / "calls.py"), "LOG": str(top / "log"),
            "SWAP": str(top / "swap"), "MOMENT": moment,
        }  # fmt: skip

    def swap(self, how: str) -> None:
        mine, vault, aside = (self.mount / name for name in ("mine", "vault", "aside"))
        moves = {
            "the file": [f"rename {mine}/x {aside}", f"rename {vault}/x {mine}/x"],
            "the file, for a link": [f"rename {mine}/x {aside}", f"link {vault}/x {mine}/x"],
            "its folder": [f"rename {mine} {aside}", f"rename {vault} {mine}"],
            "its folder, for a link": [f"rename {mine} {aside}", f"link {vault} {mine}"],
        }
        (self.top / "swap").write_text("\n".join(moves[how]))

    @staticmethod
    def key(path: bytes) -> Key:
        info = os.lstat(path)
        return Key(info.st_dev, info.st_ino)

    def touched(self) -> set[int]:
        """The inodes that any call was about."""
        inodes: set[int] = set()
        log = self.top / "log"
        for line in log.read_text().splitlines() if log.exists() else ():
            number, inode, argument = line.split()
            if number == "401866d9":
                items = bytes.fromhex(argument)[24:]
                inodes |= {struct.unpack_from("=QI", items, at)[1] for at in range(0, len(items), 32)}
            else:
                inodes.add(int(inode))
        return inodes

    @asynccontextmanager
    async def hsm(self) -> AsyncIterator[NativeHsm]:
        hsm = NativeHsm(LfsHsm(Children("/nowhere/lfs", {})), str(self.top / "mounts"), environ=self.environ)
        try:
            yield hsm
        finally:
            await hsm.close()


SWAPS = ["the file", "the file, for a link", "its folder", "its folder, for a link"]
ASKING: list[Callable[[NativeHsm, list[bytes], list[Key]], Awaitable[Reply]]] = [
    NativeHsm.restore, NativeHsm.release, NativeHsm.cancel
]  # fmt: skip


@pytest.mark.parametrize("ask", ASKING, ids=["restore", "release", "cancel"])
@pytest.mark.parametrize("how", SWAPS)
async def test_a_name_swapped_after_the_check_sends_nothing(
    tmp_path: Path, how: str, ask: Callable[[NativeHsm, list[bytes], list[Key]], Awaitable[Reply]]
) -> None:
    stage = Stage(tmp_path, "before")
    names = [stage.beside, stage.path]
    keys = [stage.key(name) for name in names]
    stage.swap(how)
    async with stage.hsm() as hsm:
        reply = await ask(hsm, names, keys)
    assert reply.errno in {errno.ESTALE, errno.ELOOP}
    assert stage.touched() == set(), "its neighbour is not asked for either: the request is made anew without it"


@pytest.mark.parametrize("ask", ASKING, ids=["restore", "release", "cancel"])
@pytest.mark.parametrize("how", SWAPS)
async def test_a_name_swapped_once_it_is_open_changes_nothing(
    tmp_path: Path, how: str, ask: Callable[[NativeHsm, list[bytes], list[Key]], Awaitable[Reply]]
) -> None:
    stage = Stage(tmp_path, "after")
    names = [stage.beside, stage.path]
    keys = [stage.key(name) for name in names]
    stage.swap(how)
    async with stage.hsm() as hsm:
        assert await ask(hsm, names, keys) == Reply(0)
    assert stage.touched() == {key.ino for key in keys}
    assert stage.secret not in stage.touched()


@pytest.mark.parametrize("look", [NativeHsm.states, NativeHsm.actions], ids=["states", "actions"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("how", SWAPS)
async def test_a_look_tells_nothing_of_another_file(
    tmp_path: Path,
    how: str,
    moment: str,
    look: Callable[[NativeHsm, list[bytes], list[Key]], Awaitable[list[Flags | Action | Trouble]]],
) -> None:
    stage = Stage(tmp_path, moment)
    keys = [stage.key(stage.path)]
    stage.swap(how)
    async with stage.hsm() as hsm:
        (answer,) = await look(hsm, [stage.path], keys)
    assert stage.touched() == ({keys[0].ino} if moment == "after" else set())
    if moment == "before":
        assert isinstance(answer, Trouble)
        assert answer.errno in {errno.ESTALE, errno.ELOOP}


async def test_without_swaps_the_same_calls_go_through(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "before")
    keys = [stage.key(stage.path)]
    async with stage.hsm() as hsm:
        assert await hsm.states([stage.path], keys) == [Flags(0)]
        assert await hsm.restore([stage.path], keys) == Reply(0)
        assert await hsm.restore([stage.path]) == Reply(0)
    assert stage.touched() == {keys[0].ino}


async def test_another_file_systems_inode_of_the_same_number_is_another_file(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "before")
    key = stage.key(stage.path)
    async with stage.hsm() as hsm:
        assert (await hsm.restore([stage.path], [Key(key.dev + 1, key.ino)])).errno == errno.ESTALE
