"""Leases: promises, for a time, that a path is not released."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MOST_SECONDS: Final = 30 * 86400.0
"""The longest lease; a longer wish is what a pin is for."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Ask that nothing under `path` (absolute) is released for `seconds` from now."""

    owner: int
    path: bytes
    seconds: float
    label: str = ""
    slurm_job_id: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """A promise that holds until `expires` (seconds since the epoch) unless renewed."""

    id: str
    owner: int
    path: bytes
    created: float
    expires: float
    label: str = ""
    slurm_job_id: str = ""

    def holds(self, now: float) -> bool:
        """Whether it has not run out at `now`."""
        return now < self.expires


def until(now: float, seconds: float) -> float:
    """When a lease of `seconds` taken at `now` runs out. ValueError for none or too long a time."""
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"a lease lasts more than 0 and at most {MOST_SECONDS:.0f} seconds, not {seconds:g}")
    return now + seconds


def is_under(path: bytes, root: bytes) -> bool:
    """Whether `path` is `root` or lies below it (both absolute and normal)."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def held(leases: Iterable[Lease], now: float) -> list[bytes]:
    """The paths that are promised at `now`."""
    return [lease.path for lease in leases if lease.holds(now)]
