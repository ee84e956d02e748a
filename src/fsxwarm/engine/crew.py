"""A bounded number of coroutines at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class Crew:
    """Runs at most `size` coroutines at a time. Leaving it waits for all; the first error ends all and is raised."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._group = asyncio.TaskGroup()

    async def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start `work` as soon as there is room; returns once it runs."""
        try:
            await self._free.acquire()
        except BaseException:
            work.close()
            raise
        task = self._group.create_task(work)
        task.add_done_callback(lambda _: self._free.release())

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            first: BaseException = group
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None


class Turn:
    """A place in a queue: `come` waits until the one before is `over`."""

    def __init__(self, before: asyncio.Event | None) -> None:
        self._before = before
        self.ended = asyncio.Event()

    async def come(self) -> None:
        """Wait for one's turn."""
        if self._before is not None:
            await self._before.wait()

    def over(self) -> None:
        """Let the next one come; also called by who gives up without having come."""
        self.ended.set()


class Turns:
    """Lets work that goes on side by side do one part of it in the order in which it was begun."""

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None

    def take(self) -> Turn:
        """Get in line."""
        turn = Turn(self._last)
        self._last = turn.ended
        return turn
