"""Ports that work with helper processes of their own: started with the first use, ended some time after the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from fsxwarm.lustre.native import NativeHsm
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import Reply, Space
from fsxwarm.ports.tree import Batch, Filters, Place, Stat


class Closable(Protocol):
    """What has helpers."""

    @property
    def abandoned(self) -> int:
        """Helpers that could not be ended."""
        ...

    async def close(self) -> None:
        """End the helpers."""
        ...


P = TypeVar("P", bound=Closable)


class OnDemand(Generic[P]):
    """Keeps what `start` makes for `idle` seconds after its last use. `allow` is awaited before each; it may raise."""

    def __init__(self, start: Callable[[], P], idle: float, allow: Callable[[], Awaitable[None]]) -> None:
        self._start = start
        self._idle = idle
        self._allow = allow
        self._running: P | None = None
        self._users = 0
        self._end: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        """Whether it has helpers."""
        return self._running is not None

    @property
    def abandoned(self) -> int:
        """Helpers that could not be ended."""
        return 0 if self._running is None else self._running.abandoned

    @asynccontextmanager
    async def use(self) -> AsyncIterator[P]:
        """What has the helpers, for as long as it is used."""
        await self._allow()
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._running is None:
            self._running = self._start()
        self._users += 1
        try:
            yield self._running
        finally:
            self._users -= 1
            if not self._users:
                self._end = asyncio.get_running_loop().call_later(self._idle, self._stop)

    def _stop(self) -> None:
        task = asyncio.create_task(self.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End the helpers."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        running, self._running = self._running, None
        if running is not None:
            await running.close()


class OnDemandTree(OnDemand[HelperTree]):
    """Implements `fsxwarm.ports.tree.Tree`."""

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        async with self.use() as tree:
            return await tree.resolve(path)

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        async with self.use() as tree:
            return await tree.stat(paths)

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        async with self.use() as tree:
            async for batch in tree.walk(root, filters, whole=whole):
                yield batch

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port."""
        async with self.use() as tree:
            async for batch in tree.listed(paths, filters, whole=whole):
                yield batch


class OnDemandHsm(OnDemand[NativeHsm]):
    """Implements `fsxwarm.ports.hsm.Hsm`."""

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.states(paths, keys)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.actions(paths, keys)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.released(paths)

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.restore(paths, keys)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.cancel(paths, keys)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.release(paths, keys)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.pin(paths, on=on)

    async def space(self, mount: bytes) -> Space | Trouble:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.space(mount)

    async def version(self) -> tuple[int, ...] | Trouble:
        """See the port."""
        async with self.use() as hsm:
            return await hsm.version()
