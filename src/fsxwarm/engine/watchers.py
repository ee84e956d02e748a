"""Those who watch the daemon: waiters for one job, and readers of all that happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import Event

_HELD = 1000
"""Events held for a reader who is slow."""


class Waiters:
    """Lets any number of callers wait for news of a job."""

    def __init__(self) -> None:
        self._futures: dict[str, set[asyncio.Future[None]]] = {}
        self._closed = False

    async def wait(self, job: str, seconds: float) -> None:
        """Wait for news of a job, so many seconds at the most. RESTARTING once closed."""
        if self._closed:
            raise restarting()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(job, set()).add(future)
        try:
            await asyncio.wait({future}, timeout=seconds)
            if future.done():
                future.result()
        finally:
            futures = self._futures.get(job)
            if futures is not None:
                futures.discard(future)
                if not futures:
                    del self._futures[job]

    def wake(self, job: str) -> None:
        """There is news of a job."""
        for future in self._futures.get(job, ()):
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Send all away."""
        self._closed = True
        for futures in self._futures.values():
            for future in futures:
                if not future.done():
                    future.set_exception(restarting())


class News:
    """Hands events to any number of readers. One who is slow misses some, and is told how many."""

    def __init__(self) -> None:
        self._readers: set[_Reader] = set()
        self._closed = False

    def tell(self, event: Event) -> None:
        """Something has happened."""
        for reader in self._readers:
            reader.put(event)

    def close(self) -> None:
        """Nothing more will happen."""
        self._closed = True
        for reader in self._readers:
            reader.end()

    def read(self) -> AsyncIterator[Event]:
        """What happens from this call on, until `close`."""
        reader = _Reader()
        if self._closed:
            reader.end()
        else:
            self._readers.add(reader)
        return self._read(reader)

    async def _read(self, reader: _Reader) -> AsyncIterator[Event]:
        try:
            while (event := await reader.get()) is not None:
                yield event
        finally:
            self._readers.discard(reader)


class _Reader:
    def __init__(self) -> None:
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._missed = 0

    def put(self, event: Event) -> None:
        if self._events.qsize() >= _HELD:
            self._missed += 1
            return
        if self._missed:
            self._events.put_nowait(Event(event.at, "missed", data={"events": self._missed}))
            self._missed = 0
        self._events.put_nowait(event)

    def end(self) -> None:
        self._events.put_nowait(None)

    async def get(self) -> Event | None:
        return await self._events.get()


def restarting() -> FsxwarmError:
    """What those are told who come while the daemon drains."""
    return FsxwarmError(Kind.RESTARTING, "the daemon is restarting")
