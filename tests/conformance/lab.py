"""What the conformance suite needs of a back end: an Hsm, a Tree, and files in every state to look at.

A lab is cheap to ask for files: they come from a stock that was archived in one go (on a real Lustre an archive or a
restore may take the coordinator ten seconds to begin), and are renamed into the folder of the test. All of the stock
is on one metadata target, as files of one folder are: with several, each deals with its own part of a request.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree

SIZE: Final = 64 << 10
"""Bytes in each file: enough to show more than one block when it is resident."""

PATIENCE: Final = 60.0
"""Seconds without any progress after which a wait has failed."""

KNOWN: Final = Flags(0x7F)
"""The flags that all versions of Lustre have."""


@dataclass(slots=True)
class Stock:
    """Archived, resident files that no test has used yet, in a folder of their own."""

    folder: bytes
    ready: list[bytes] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)


class Lab(ABC):
    """A folder on a file system with HSM, and the two ports that look at it."""

    hsm: Hsm
    tree: Tree
    mount: bytes
    folder: bytes
    """The test's own: empty at the beginning, an absolute path."""

    foreign: bytes = b"/proc"
    """A folder that is not on Lustre."""

    def path(self, name: bytes) -> bytes:
        """The path of a name in the test's folder."""
        return self.folder + b"/" + name

    @abstractmethod
    async def plain(self, *names: bytes) -> list[bytes]:
        """Make files that were never archived."""

    @abstractmethod
    async def archived(self, *names: bytes) -> list[bytes]:
        """Make resident, clean files of SIZE bytes."""

    @abstractmethod
    async def dirty(self, *names: bytes) -> list[bytes]:
        """Make resident files that changed since they were archived."""

    @abstractmethod
    async def lose(self, *paths: bytes) -> None:
        """Mark the archive's copies as lost."""

    @abstractmethod
    async def mkdir(self, name: bytes) -> bytes:
        """Make a folder."""

    @abstractmethod
    async def link(self, target: bytes, name: bytes) -> bytes:
        """Make a second name for a file."""

    @abstractmethod
    async def symlink(self, target: bytes, name: bytes) -> bytes:
        """Make a symbolic link."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Let time pass."""

    async def released(self, *names: bytes) -> list[bytes]:
        """Make released files."""
        paths = await self.archived(*names)
        for some in batches(paths):
            reply = await self.hsm.release(some)
            assert reply.errno == 0, reply
        return paths

    async def until(self, fact: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a fact, for PATIENCE seconds at most."""
        waited = 0.0
        while not await fact():
            assert waited < PATIENCE, "it does not happen"
            step = min(0.02 + waited / 4, 1.0)
            await self.pause(step)
            waited += step

    async def until_resident(self, paths: Sequence[bytes]) -> None:
        """Wait until no file is released any more."""
        await self.until_all(paths, lambda flags: not flags.released)

    async def until_all(self, paths: Sequence[bytes], wanted: Callable[[Flags], bool]) -> None:
        """Wait until all files have the wanted flags, as long as there is progress."""
        left = list(paths)

        async def progress() -> bool:
            nonlocal left
            before = len(left)
            answers = zip(left, await self.hsm.states(left), strict=True)
            left = [path for path, answer in answers if isinstance(answer, Trouble) or not wanted(answer)]
            return len(left) < before

        while left:
            await self.until(progress)

    async def until_idle(self, paths: Sequence[bytes]) -> None:
        """Wait until nothing is queued or running for these files."""

        async def idle() -> bool:
            actions = await self.hsm.actions(paths)
            return all(isinstance(action, Trouble) or action.idle for action in actions)

        await self.until(idle)

    async def flags(self, path: bytes) -> Flags:
        """One file's flags, those that all versions know."""
        (answer,) = await self.hsm.states([path])
        assert isinstance(answer, Flags), answer
        return answer & KNOWN


class LfsLab(Lab):
    """A lab on a mounted file system, real or simulated, worked with `lfs` and ordinary system calls."""

    def __init__(
        self, hsm: Hsm, tree: Tree, *, mount: bytes, folder: bytes, stock: Stock, environ: Mapping[str, str]
    ) -> None:
        self.hsm = hsm
        self.tree = tree
        self.mount = mount
        self.folder = folder
        self._stock = stock
        self._environ = {**environ, "LC_ALL": "C"}

    async def plain(self, *names: bytes) -> list[bytes]:
        paths = [self.path(name) for name in names]
        await asyncio.to_thread(_write, paths)
        return paths

    async def archived(self, *names: bytes) -> list[bytes]:
        if len(self._stock.ready) < len(names):
            await self._fill(max(len(names), 40))
        paths = [self.path(name) for name in names]
        for path in paths:
            os.rename(self._stock.ready.pop(), path)  # noqa: PTH104 - bytes
        return paths

    async def dirty(self, *names: bytes) -> list[bytes]:
        paths = await self.archived(*names)
        await asyncio.to_thread(_append, paths)
        return paths

    async def lose(self, *paths: bytes) -> None:
        await self.lfs("hsm_set", "--lost", *paths)

    async def mkdir(self, name: bytes) -> bytes:
        path = self.path(name)
        _pathlib(path).mkdir()
        return path

    async def link(self, target: bytes, name: bytes) -> bytes:
        path = self.path(name)
        os.link(target, path)
        return path

    async def symlink(self, target: bytes, name: bytes) -> bytes:
        path = self.path(name)
        _pathlib(path).symlink_to(os.fsdecode(target))
        return path

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def lfs(self, *arguments: str | bytes) -> None:
        """Run lfs, which must succeed."""
        child = await asyncio.create_subprocess_exec(
            "lfs", *arguments, env=self._environ, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, stderr = await child.communicate()
        assert child.returncode == 0, (arguments[:4], stderr)

    async def clean(self) -> None:
        """Remove the test's folder, once nothing is queued for its files: else others' requests may be wedged."""
        paths = await asyncio.to_thread(_regular, self.folder)
        await self.until_idle(paths)
        await self.hsm.pin(paths, on=False)
        await asyncio.to_thread(shutil.rmtree, self.folder)

    async def _fill(self, count: int) -> None:
        """Make more stock: write, archive all at once, wait."""
        paths = [self._stock.folder + b"/%d" % next(self._stock.numbers) for _ in range(count)]
        await asyncio.to_thread(_write, paths)
        for some in batches(paths):
            await self.lfs("hsm_archive", *some)
        await self.until_all(paths, lambda flags: bool(flags & Flags.ARCHIVED))
        await self.until_idle(paths)
        self._stock.ready += paths


def batches(paths: Sequence[bytes], size: int = 50) -> Iterable[Sequence[bytes]]:
    """Cut into requests."""
    return (paths[start : start + size] for start in range(0, len(paths), size))


def _write(paths: Sequence[bytes]) -> None:
    """Write what does not compress, and see it flushed."""
    for path in paths:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, os.urandom(SIZE))
        os.fsync(fd)
        os.close(fd)


def _append(paths: Sequence[bytes]) -> None:
    for path in paths:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, b"more")
        os.fsync(fd)
        os.close(fd)


def _pathlib(path: bytes) -> Path:
    return Path(os.fsdecode(path))


def _regular(folder: bytes) -> list[bytes]:
    """All regular files below, without following links."""
    return [os.fsencode(path) for path in _pathlib(folder).rglob("*") if path.is_file() and not path.is_symlink()]
