"""The order of a walk: folders depth-first and sorted, with the next ones read ahead of their turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from fsxwarm.lustre.jobs import Reading
from fsxwarm.lustre.pool import Pool

_AHEAD: Final = 16
"""Folders that come next and are looked at for reading them ahead."""
_AHEAD_BYTES: Final = 8 << 20
"""Bytes of records of folders read ahead, above which no other is begun."""
_CREDIT: Final = 4
"""Parts that a folder may have on their way while it is its turn; one before."""

_Part = tuple[list[Any], int, int]


class DepthFirst:
    """One walk below `root`, with the helpers' `options`."""

    def __init__(self, pool: Pool, root: bytes, options: tuple[Any, ...]) -> None:
        self._pool = pool
        self._root = root
        self._options = options
        self._begun: set[_Folder] = set()

    async def parts(self) -> AsyncIterator[tuple[bytes, _Part]]:
        """Give each folder's path below the root, with items, skipped and errno, part by part; none of an empty one.

        Raises what `Pool.ready` raises: a folder is only begun while there is somebody to read it.
        """
        to_do: list[bytes | _Folder] = [b""]  # the next is the last
        while to_do:
            await self._pool.ready()
            self._read_ahead(to_do, 0)
            folder = to_do.pop()
            if isinstance(folder, bytes):
                folder = self._begin(folder, _CREDIT)
            else:
                folder.reading.credit = _CREDIT
                self._pool.grant(folder.reading, _CREDIT - 1)
            while (part := await folder.reading.part()) is not None:
                yield folder.inside, (*part, 0)
                self._pool.grant(folder.reading, 1)
            self._begun.discard(folder)
            items, skipped, errno = folder.reading.rest()
            if items or skipped or errno:
                yield folder.inside, (items, skipped, errno)
            to_do += folder.below

    def end(self) -> None:
        """Let go of what was read ahead and is not wanted any more."""
        for folder in self._begun:
            self._pool.drop(folder.reading)
        self._begun.clear()

    def _begin(self, inside: bytes, credit: int) -> _Folder:
        folder = _Folder(inside, Reading(self._root, inside, self._options, credit=credit))
        self._begun.add(folder)
        self._pool.begin(folder.reading)
        return folder

    def _read_ahead(self, to_do: list[bytes | _Folder], seen: int) -> int:
        """Begin the folders that come next, those inside of folders that have been read ahead too.

        Returns how many it has seen. One whose turn it is never waits for those ahead of it: each has its own thread.
        """
        for place in range(len(to_do) - 1, -1, -1):
            if seen >= _AHEAD:
                break
            seen += 1
            folder = to_do[place]
            if isinstance(folder, _Folder):
                if folder.reading.names is not None:
                    seen = self._read_ahead(folder.below, seen)
            elif self._may_begin():
                to_do[place] = self._begin(folder, 1)
            else:
                break
        return seen

    def _may_begin(self) -> bool:
        unfinished = held = 0
        for folder in self._begun:
            unfinished += folder.reading.names is None
            held += folder.reading.held
        return unfinished < _AHEAD and held < _AHEAD_BYTES


class _Folder:
    """A folder that has been begun."""

    def __init__(self, inside: bytes, reading: Reading) -> None:
        self.inside = inside
        self.reading = reading
        self._below: list[bytes | _Folder] | None = None

    @property
    def below(self) -> list[bytes | _Folder]:
        """Its sub-folders, the next one last. It has been read to its end."""
        if self._below is None:
            prefix = self.inside + b"/" if self.inside else b""
            self._below = [prefix + name for name in reversed(self.reading.names or ())]
        return self._below
