"""What helper processes are asked to do, and what stands for an answer that never comes."""

from __future__ import annotations

import asyncio
import errno
import marshal
from collections import deque
from collections.abc import Sequence
from typing import Any

from fsxwarm.errors import FsxwarmError

_TRIES = 5
"""How often in a row a job may lose its helper before it is given up itself. All helpers may die at once, twice."""
_HUNG = 3
"""Paths of one lookup that may hang before all of it is given up: the file system does not answer."""


class Work:
    """One request. `since` is when it was last seen to move (loop time), `mark` how far it then was."""

    def __init__(self, kind: str, *arguments: Any) -> None:
        self.kind = kind
        self.arguments = arguments
        self.since = 0.0
        self.mark = 0
        self._losses = 0

    @property
    def waited_for(self) -> bool:
        """Whether it is the helper's turn to say something."""
        return True

    def request(self) -> tuple[Any, ...]:
        """What follows the job's number and its kind in the frame that asks for it."""
        return self.arguments

    def hear(self, answer: bytes, *, done: bool) -> None:
        """Take an answer."""
        raise NotImplementedError

    def fail(self, error: FsxwarmError) -> None:
        """There will be no answer."""
        raise NotImplementedError

    def lose(self, *, culprit: bool) -> bool:
        """Its helper is lost, perhaps because of it. Tell whether to ask another; if not it has been settled."""
        self._losses += 1
        return not culprit and self._losses < _TRIES


class Job(Work):
    """Work with one answer. `once`: what stands for it if its helper is lost, for work that may not be done twice."""

    def __init__(self, kind: str, *arguments: Any, once: Any = None) -> None:
        super().__init__(kind, *arguments)
        self._once = once
        self._answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def answer(self) -> Any:
        """Wait for it; an errno in its place is a failure. Raises FsxwarmError HUNG."""
        return await self._answer

    def hear(self, answer: bytes, *, done: bool) -> None:
        """Take the answer."""
        del done
        self._settle(marshal.loads(answer))  # noqa: S302 - our own child's

    def fail(self, error: FsxwarmError) -> None:
        """There will be none."""
        if not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # whoever asked may be gone

    def lose(self, *, culprit: bool) -> bool:
        """See `Work`."""
        if self._once is not None:
            self._settle(self._once)
            return False
        again = super().lose(culprit=culprit)
        if not again:
            self._settle(errno.ETIMEDOUT if culprit else errno.EIO)
        return again

    def _settle(self, answer: Any) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)


class Names(Job):
    """A lookup of many paths, with an answer for each. One that hangs is left out and the others asked for again."""

    def __init__(self, kind: str, paths: Sequence[object], *arguments: Any) -> None:
        super().__init__(kind, *arguments)
        self._paths = list(paths)
        self._hung: list[int] = []

    def request(self) -> tuple[Any, ...]:
        """All that did not hang."""
        return ([path for place, path in enumerate(self._paths) if place not in self._hung], *self.arguments)

    def lose(self, *, culprit: bool) -> bool:
        """See `Work`."""
        if culprit:
            place = self.mark
            for hung in self._hung:
                place += hung <= place
            self._hung = sorted({*self._hung, place})
        return super().lose(culprit=culprit and len(self._hung) >= _HUNG)

    def _settle(self, answer: Any) -> None:
        if isinstance(answer, int):
            return super()._settle([answer] * len(self._paths))
        for place in self._hung:
            answer.insert(place, errno.ETIMEDOUT)
        return super()._settle(answer)


class Reading(Work):
    """The reading of one folder, in parts: the helper sends as many as it has been given credit for."""

    def __init__(self, *arguments: Any, credit: int) -> None:
        super().__init__("folder", *arguments)
        self.credit = credit
        self.owed = 0
        """Parts that the helper may still send; 0: it waits for us."""
        self.held = 0
        """Bytes of records that nobody has taken yet."""
        self.names: list[bytes] | None = None
        """The sub-folders, sorted, once it has been read to its end."""
        self._parts: deque[bytes] = deque()
        self._rest: tuple[bytes, int, int] = (b"", 0, 0)
        self._news: asyncio.Future[None] | None = None
        self._error: FsxwarmError | None = None
        self._got_to = [0, 0]

    @property
    def waited_for(self) -> bool:
        """See `Work`."""
        return self.owed > 0

    def request(self) -> tuple[Any, ...]:
        """Go on where the last part that was taken ended; those that nobody has taken come again."""
        self._parts.clear()
        self.held = 0
        self.owed = self.credit
        return (self.credit, *self.arguments, *self._got_to)

    def hear(self, answer: bytes, *, done: bool) -> None:
        """Take a part."""
        self.owed -= 1
        self.held += len(answer)
        self._losses = 0  # it gets on
        if done:
            *self._rest, self.names = marshal.loads(answer)  # noqa: S302 - our own child's
        else:
            self._parts.append(answer)
        self._tell()

    def fail(self, error: FsxwarmError) -> None:
        """There will be no more."""
        self._error = error
        self._tell()

    def lose(self, *, culprit: bool) -> bool:
        """See `Work`."""
        again = super().lose(culprit=culprit)
        if not again:
            self._rest = (b"", 0, errno.ETIMEDOUT if culprit else errno.EIO)
            self.names = []
            self._tell()
        return again

    async def part(self) -> tuple[list[Any], int] | None:
        """Wait for the next part, (items, skipped); None when only the rest is left. Raises FsxwarmError HUNG."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self.names is not None:
                return None
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        part = self._parts.popleft()
        self.held -= len(part)
        items, skipped, *self._got_to = marshal.loads(part)  # noqa: S302 - our own child's
        return items, skipped

    def rest(self) -> tuple[list[Any], int, int]:
        """Take what came with the end: items, skipped, errno."""
        items, skipped, problem = self._rest
        self._rest = (b"", 0, 0)
        self.held = 0
        return marshal.loads(items) if items else [], skipped, problem  # noqa: S302 - our own child's

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
