"""What a client asks of the metadata servers, counted as RPCs, over the simulated FSx.

A look at flags or actions is an open, an ioctl and a close. A stat is a getattr, unless the client has the attributes
in its cache: it keeps them until a restore of the file is asked for, and again until that restore ends (measured on
2.15.8). A request is one RPC to each metadata target that it has files of. `lfs find` asks for each layout, cached or
not. Reading folders is left out: it is the same for all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import Reply
from fsxwarm.ports.tree import Batch, Filters, Place, Stat
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.ports import SimHsm, SimTree

T = TypeVar("T")


class Meter:
    """Counts of RPCs by kind, and of processes started."""

    def __init__(self, names: VirtualNamespace) -> None:
        self.rpcs: Counter[str] = Counter()
        self.processes = 0
        self._names = names
        self._cached: set[Fid] = set()
        names.world.on_data = self._data_changed

    def opened(self, files: int) -> None:
        """So many files were opened, asked by an ioctl and closed."""
        for kind in ("open", "ioctl", "close"):
            self.rpcs[kind] += files

    def statted(self, paths: Sequence[bytes]) -> None:
        """These were stat'ed by name."""
        fids = {file.fid for file in self._names.files(paths)}
        self.rpcs["getattr"] += len(fids - self._cached)
        self._cached |= fids

    def requested(self, paths: Sequence[bytes]) -> None:
        """A request was sent."""
        files = self._names.files(paths)
        self.rpcs["request"] += len({file.node.mdt for file in files})
        self._cached -= {file.fid for file in files if file.node.flags.released}

    def _data_changed(self, node: Node, resident: bool) -> None:  # noqa: FBT001 - the world's callback
        del resident
        self._cached.discard(node.fid)


class MeteredHsm(SimHsm):
    """The simulated Hsm port, counted; each call is one process if `lfs` makes it."""

    def __init__(self, clockwork: Clockwork, names: VirtualNamespace, meter: Meter, *, lfs: bool) -> None:
        super().__init__(clockwork, names)
        self.costs = clockwork.world.spec.costs
        self._meter = meter
        self._per_call = int(lfs)

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port."""
        self._count(paths)
        return await super().states(paths, keys)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port."""
        self._count(paths)
        return await super().actions(paths, keys)

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port: every name is looked up and stat'ed, then one request goes out."""
        self._meter.processes += self._per_call
        self._meter.statted(paths)
        self._meter.requested(paths)
        return await super().restore(paths, keys)

    def _count(self, paths: Sequence[bytes]) -> None:
        self._meter.processes += self._per_call
        self._meter.opened(len(paths))


class MeteredTree(SimTree):
    """The simulated Tree port, counted."""

    def __init__(self, clockwork: Clockwork, names: VirtualNamespace, meter: Meter) -> None:
        super().__init__(clockwork, names)
        self._meter = meter

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        async for batch in super().walk(root, filters, whole=whole):
            self._meter.statted([item.path for item in batch.items if isinstance(item, Entry)])
            self._meter.rpcs["getattr"] += sum(item.files for item in batch.items if isinstance(item, Resident))
            yield batch

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        self._meter.statted(paths)
        return await super().stat(paths)


@dataclass(frozen=True, slots=True)
class Site:
    """A client machine of a simulated FSx, with everything metered."""

    names: VirtualNamespace
    hsm: MeteredHsm
    tree: MeteredTree
    meter: Meter


async def in_parallel(width: int, work: AsyncIterator[list[bytes]], do: Callable[[list[bytes]], Awaitable[T]]) -> None:
    """What `xargs -P WIDTH` does: the next piece of work for whoever is free."""
    ready = asyncio.Semaphore(width)

    async def one(piece: list[bytes]) -> None:
        try:
            await do(piece)
        finally:
            ready.release()

    async with asyncio.TaskGroup() as running:
        await ready.acquire()
        async for piece in work:
            running.create_task(one(piece))
            await ready.acquire()
