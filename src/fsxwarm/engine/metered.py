"""Ports that count and time the calls made through them, and are otherwise those that they wrap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TypeVar

from fsxwarm.errors import FsxwarmError
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.job import Identity
from fsxwarm.model.meter import HUNG, Meter
from fsxwarm.ports.access import Access
from fsxwarm.ports.hsm import CallHungError, Hsm, Reply, Space
from fsxwarm.ports.tree import Batch, Filters, Place, Stat, Tree

T = TypeVar("T")


async def _timed(meter: Meter, call: str, work: Awaitable[T]) -> T:
    now = asyncio.get_running_loop().time
    began = now()
    try:
        return await work
    except CallHungError:
        meter.failed(call, HUNG)
        raise
    except FsxwarmError as error:
        meter.failed(call, error.kind.value)
        raise
    finally:
        meter.called(call, now() - began)


def _count_failures(meter: Meter, call: str, answers: Sequence[object]) -> None:
    if Trouble in map(type, answers):  # a look at each is too dear: files in flight are looked at many times
        for answer in answers:
            if isinstance(answer, Trouble):
                meter.failed(call, answer.errno)


def _files(items: Sequence[Entry | Resident]) -> int:
    if Resident not in map(type, items):
        return len(items)
    return sum(item.files if isinstance(item, Resident) else 1 for item in items)


class MeteredHsm:
    """See `fsxwarm.ports.hsm.Hsm`."""

    def __init__(self, hsm: Hsm, meter: Meter) -> None:
        self._hsm = hsm
        self._meter = meter

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port."""
        return await self._each("states", self._hsm.states(paths, keys))

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port."""
        return await self._each("actions", self._hsm.actions(paths, keys))

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """See the port."""
        return await self._each("released", self._hsm.released(paths))

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """See the port."""
        return await self._each("pin", self._hsm.pin(paths, on=on))

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        self._meter.asked(len(paths))
        return await self._replied("restore", self._hsm.restore(paths, keys))

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._replied("cancel", self._hsm.cancel(paths, keys))

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._replied("release", self._hsm.release(paths, keys))

    async def space(self, mount: bytes) -> Space | Trouble:
        """See the port."""
        return await self._one("space", self._hsm.space(mount))

    async def version(self) -> tuple[int, ...] | Trouble:
        """See the port."""
        return await self._one("version", self._hsm.version())

    @property
    def abandoned(self) -> int:
        """See the port."""
        return self._hsm.abandoned

    async def _each(self, call: str, work: Awaitable[list[T]]) -> list[T]:
        answers = await _timed(self._meter, call, work)
        _count_failures(self._meter, call, answers)
        return answers

    async def _replied(self, call: str, work: Awaitable[Reply]) -> Reply:
        reply = await _timed(self._meter, call, work)
        if reply.errno:
            self._meter.failed(call, reply.errno)
        return reply

    async def _one(self, call: str, work: Awaitable[T]) -> T:
        answer = await _timed(self._meter, call, work)
        if isinstance(answer, Trouble):
            self._meter.failed(call, answer.errno)
        return answer


class MeteredTree:
    """See `fsxwarm.ports.tree.Tree`."""

    def __init__(self, tree: Tree, meter: Meter) -> None:
        self._tree = tree
        self._meter = meter

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        answer = await _timed(self._meter, "resolve", self._tree.resolve(path))
        if isinstance(answer, Trouble):
            self._meter.failed("resolve", answer.errno)
        return answer

    def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        return self._counted("walk", self._tree.walk(root, filters, whole=whole))

    def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port."""
        return self._counted("listed", self._tree.listed(paths, filters, whole=whole))

    async def _counted(self, call: str, batches: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
        async for batch in batches:
            self._meter.scanned_files += _files(batch.items)
            for trouble in batch.troubles:
                self._meter.failed(call, trouble.errno)
            yield batch

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        answers = await _timed(self._meter, "stat", self._tree.stat(paths))
        _count_failures(self._meter, "stat", answers)
        return answers

    async def close(self) -> None:
        """See the port."""
        await self._tree.close()

    @property
    def abandoned(self) -> int:
        """See the port."""
        return self._tree.abandoned


class MeteredAccess:
    """See `fsxwarm.ports.access.Access`."""

    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter

    def tree(self, identity: Identity) -> Tree:
        """See the port."""
        return MeteredTree(self._access.tree(identity), self._meter)

    def hsm(self, identity: Identity) -> Hsm:
        """See the port."""
        return MeteredHsm(self._access.hsm(identity), self._meter)
