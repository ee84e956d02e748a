"""How long restores will take: by files per second, by bytes per second, and which of the two binds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from fsxwarm.model.tally import Tally

SMALL: Final = 9_000_000
"""Bytes a file below which files per second are the limit (published rates: about 110 files/s and 1 GB/s at once)."""
TYPICAL: Final = 110.0
"""Files per second that one client was seen to restore (published: 37,000 objects in 5 to 6 minutes)."""


class Basis(StrEnum):
    """Where a rate comes from."""

    SEEN = "seen"
    """Earlier runs on this file system reached it."""
    TIER = "tier"
    """The file system's disks take it in at least, by the tables of its tier."""
    PUBLISHED = "published"
    """Others reached it on theirs."""


class Ran(NamedTuple):
    """What an earlier run reached: files and bytes per second."""

    files: float
    bytes: float

    @property
    def of_small(self) -> bool:
        """Whether its files were so small that it tells the files per second, not the bytes."""
        return self.bytes < SMALL * self.files


class Bound(NamedTuple):
    """One limit: so many files or bytes per second, who says so, and the seconds that it makes."""

    rate: float
    basis: Basis
    seconds: float


class Forecast(NamedTuple):
    """The two limits of a restore; `by_bytes` is None where no rate of bytes is known."""

    by_files: Bound
    by_bytes: Bound | None

    @property
    def seconds(self) -> float:
        """How long it takes: the slower limit counts."""
        return self.by_files.seconds if self.by_bytes is None else max(self.by_files.seconds, self.by_bytes.seconds)

    @property
    def binds(self) -> str:
        """The limit that counts: `files/s`, `bytes/s`, or `unknown` where only one is known."""
        if self.by_bytes is None:
            return "unknown"
        return "bytes/s" if self.by_bytes.seconds > self.by_files.seconds else "files/s"


def forecast(wanted: Tally, runs: Sequence[Ran], tier_rate: float | None) -> Forecast:
    """Tell how long restoring some files takes.

    Runs of small files tell the files per second, runs of large ones the bytes, of which the tier knows best:
    `tier_rate` is what its disks take in, in bytes per second.
    """
    files = max((run.files for run in runs if run.of_small), default=0.0)
    by_files = (files, Basis.SEEN) if files else (TYPICAL, Basis.PUBLISHED)
    nbytes = max((run.bytes for run in runs), default=0.0)
    by_bytes = None
    if tier_rate:
        by_bytes = Bound(tier_rate, Basis.TIER, wanted.bytes / tier_rate)
    elif nbytes:
        by_bytes = Bound(nbytes, Basis.SEEN, wanted.bytes / nbytes)
    return Forecast(Bound(*by_files, wanted.files / by_files[0]), by_bytes)
