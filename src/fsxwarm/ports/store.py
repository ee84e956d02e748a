"""What the daemon must not forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fsxwarm.model.job import Failure, Job, JobRequest
from fsxwarm.model.lease import Lease


@dataclass(frozen=True, slots=True)
class Saved:
    """All that is needed to go on after a restart. `totals` are counters over the daemon's life.

    `wanted` tells when a job that has ended last wanted a path (seconds since the epoch).
    """

    jobs: Sequence[Job] = ()
    leases: Sequence[Lease] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    wanted: Mapping[bytes, float] = field(default_factory=dict)
    scans: Mapping[bytes, str] = field(default_factory=dict)


@dataclass(slots=True)
class Changes:
    """What has changed since the last flush; written in one transaction."""

    jobs: list[Job] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    """Each with the walk that it is filed under; their `number` is given by the store."""
    restored: list[int] = field(default_factory=list)
    """Files (st_ino: st_dev does not last beyond a mount) that became resident, at `at`."""
    wanted: dict[bytes, float] = field(default_factory=dict)
    scans: dict[bytes, str] = field(default_factory=dict)
    at: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.jobs or self.totals or self.failures or self.restored or self.wanted or self.scans)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the store keeps at the most. Ages in seconds."""

    finished_age: float = 7 * 86400.0
    finished_jobs: int = 5000
    failures_each: int = 10_000
    restored_age: float = 86400.0
    wanted_paths: int = 100_000


class Store(Protocol):
    """Jobs, leases and counters. What a call has taken is durable when it returns."""

    async def load(self) -> Saved:
        """Read everything but lists, failures and restores."""
        ...

    async def add_job(self, request: JobRequest, created: float) -> Job:
        """Take a job on: gives it its id, keeps its list."""
        ...

    async def files(self, job: str) -> tuple[bytes, ...]:
        """The list that a job came with."""
        ...

    async def save(self, changes: Changes) -> None:
        """Write changes, all or none."""
        ...

    async def failures(self, walk: str, after: int, limit: int) -> list[Failure]:
        """The failures filed under a walk, in order, beginning behind the number `after`."""
        ...

    async def add_lease(self, lease: Lease) -> Lease:
        """Keep a new lease; gives it its id."""
        ...

    async def save_lease(self, lease: Lease) -> None:
        """Keep what has changed of a lease."""
        ...

    async def drop_leases(self, ids: Sequence[str]) -> None:
        """Forget leases."""
        ...

    async def restored_since(self, since: float) -> Sequence[int]:
        """Files (st_ino) that became resident after `since` (seconds since the epoch), sorted."""
        ...

    async def expire(self, now: float, limits: Limits) -> list[str]:
        """Forget what is older or more than the limits allow; returns the ids of the jobs that went."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go of the file."""
        ...
