"""Finding the oldest files of a tree of any size without holding the tree: an age histogram of bounded size."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

BINS: Final = 4096
"""Bins that a compressed histogram has at most; it holds up to twice as many before it compresses."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where in age a wanted number of bytes is reached.

    All files last used before `first` are needed. Of those used in `first`…`last` (both included, in seconds since
    the epoch) the oldest are, up to `room` bytes more.
    """

    first: int
    last: int
    room: int


class AgeHistogram:
    """Bytes by the second in which files were last used, in bins of about equally many files.

    A bin covers one second, or a range that holds few files: ranges are merged only when seconds outnumber the bins.
    Memory is bounded by `bins`, time a file by their logarithm.
    """

    def __init__(self, bins: int = BINS) -> None:
        self._most = 2 * bins
        self._first: list[int] = []
        self._last: list[int] = []
        self._files: list[int] = []
        self._bytes: list[int] = []

    @property
    def files(self) -> int:
        """Files counted."""
        return sum(self._files)

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return sum(self._bytes)

    def __len__(self) -> int:
        return len(self._first)

    def add(self, used: int, size: int) -> None:
        """Count a file of `size` bytes, last used at `used` (seconds since the epoch)."""
        at = bisect_right(self._first, used) - 1
        if at >= 0 and used <= self._last[at]:
            self._files[at] += 1
            self._bytes[at] += size
            return
        at += 1
        self._first.insert(at, used)
        self._last.insert(at, used)
        self._files.insert(at, 1)
        self._bytes.insert(at, size)
        if len(self._first) > self._most:
            self._compress()

    def cut(self, need: int) -> Cut:
        """Find how old a file must be to be among the oldest `need` bytes; everything, if there are no more."""
        before = 0
        for first, last, size in zip(self._first, self._last, self._bytes, strict=True):
            if before + size >= need:
                return Cut(first, last, max(need - before, 0))
            before += size
        end = self._last[-1] + 1 if self._last else 0
        return Cut(end, end, 0)

    def _compress(self) -> None:
        """Merge neighbours while they hold no more than their share of the files."""
        share = -(-self.files * 2 // self._most)
        first, last, files, sizes = self._first[:1], self._last[:1], self._files[:1], self._bytes[:1]
        for at in range(1, len(self._first)):
            if files[-1] + self._files[at] <= share * 2:
                last[-1] = self._last[at]
                files[-1] += self._files[at]
                sizes[-1] += self._bytes[at]
            else:
                first.append(self._first[at])
                last.append(self._last[at])
                files.append(self._files[at])
                sizes.append(self._bytes[at])
        self._first, self._last, self._files, self._bytes = first, last, files, sizes
