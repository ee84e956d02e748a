"""Files that the walk has found and nobody has had time for yet.

The walk runs ahead so that totals, the time left and the space needed are known early. What does not fit into a
bounded part of memory waits in an unnamed temporary file, in order (written and read some 300 KB at a time, through
the page cache: not worth a thread).
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.record import Item, pack_all, unpack_all

_IN_MEMORY: Final = 50_000
_CHUNK: Final = 2_000


class Backlog:
    """A queue of walk items, first in, first out, that never holds much memory."""

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._head: deque[Item] = deque()
        self._tail: list[Item] = []
        self._limit = in_memory
        self._file: IO[bytes] | None = None
        self._chunks: deque[tuple[int, int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._head or self._chunks or self._tail)

    def put(self, items: Sequence[Item]) -> None:
        """Append items. Disk is touched only when memory's share is full."""
        if not self._chunks and not self._tail and len(self._head) + len(items) <= self._limit:
            self._head.extend(items)
            return
        self._tail.extend(items)
        if len(self._tail) >= _CHUNK:
            tail, self._tail = self._tail, []
            self._spill(tail)

    def take(self, most: int) -> list[Item]:
        """Remove and return up to `most` items from the front."""
        if not self._head:
            if self._chunks:
                self._head.extend(self._unspill())
            else:
                self._head.extend(self._tail)
                self._tail = []
        return [self._head.popleft() for _ in range(min(most, len(self._head)))]

    def _spill(self, items: list[Item]) -> None:
        data = pack_all(items)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="fsxwarm-backlog-")  # noqa: SIM115 - closed by close()
            start = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            where = tempfile.tempdir or "a temporary folder"
            raise FsxwarmError(
                Kind.UNFORESEEN,
                f"what the walk has found cannot be kept in a file in {where}: {error.strerror}",
                hint="make room there, or let TMPDIR name a folder with room",
            ) from error
        self._chunks.append((start, len(data)))

    def _unspill(self) -> list[Item]:
        if self._file is None:
            return []
        start, length = self._chunks.popleft()
        self._file.seek(start)
        items = unpack_all(self._file.read(length))
        if not self._chunks:
            self._file.truncate(0)
        return items

    def close(self) -> None:
        """Give the temporary file back."""
        if self._file is not None:
            with suppress(OSError):  # what could not be written, which was told
                self._file.close()
            self._file = None
