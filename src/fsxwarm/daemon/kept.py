"""Work that is seen through to its end, whoever hangs up on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar, cast

T = TypeVar("T")


class Kept:
    """Holds on to changes that are under way: a client that hangs up in the middle of one does not undo half of it."""

    def __init__(self) -> None:
        self._kept: set[asyncio.Future[object]] = set()

    async def through(self, work: Awaitable[T]) -> T:
        """See a change through to its end; its result for whoever still waits for it."""
        return await asyncio.shield(self.begin(work))

    def begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Begin a change for which nobody need wait."""
        future = asyncio.ensure_future(work)
        self._kept.add(cast("asyncio.Future[object]", future))
        future.add_done_callback(self._done)
        return future

    def _done(self, future: asyncio.Future[T]) -> None:
        self._kept.discard(cast("asyncio.Future[object]", future))
        if not future.cancelled():
            future.exception()  # it was raised to the client, if there still is one
