"""The daemon's core: keeps jobs going until they are done, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from fsxwarm.engine.status import Status
from fsxwarm.model.job import Event, Failure, Identity, Job, JobRequest, JobView
from fsxwarm.model.lease import Lease, LeaseRequest
from fsxwarm.model.policy import Policy
from fsxwarm.model.units import Amount
from fsxwarm.ports.access import Access
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.store import Limits, Store
from fsxwarm.ports.tree import Tree


@dataclass(frozen=True, slots=True)
class KeepWarm:
    """Paths of the configuration that are walked again `every` so many seconds, at low priority."""

    paths: tuple[bytes, ...]
    every: float = 3600.0


@dataclass(frozen=True, slots=True)
class Marks:
    """Below `low` free space on the file system mounted at `mount`, release until `high` is free."""

    mount: bytes
    low: Amount
    high: Amount
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What the service does of its own accord, and within which bounds. Times in seconds.

    `reserve`: space that preloads leave free. `walks`: walks at a time. `inventory`: paths of the associations, counted
    again `inventory_every`, at no more than `inventory_rate` files a second.
    `rest_after_restore`: make-room releases nothing that became resident so recently.
    """

    policy: Policy = field(default_factory=Policy)
    reserve: Amount | None = None
    walks: int = 8
    keep_warm: tuple[KeepWarm, ...] = ()
    make_room: tuple[Marks, ...] = ()
    make_room_every: float = 60.0
    rest_after_restore: float = 86400.0
    inventory: tuple[bytes, ...] = ()
    inventory_every: float = 86400.0
    inventory_rate: float = 500.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class LaneHealth:
    """A file system's (st_dev) metadata target: files in flight of all jobs together, and how many may be."""

    dev: int
    mdt: int
    window: int
    in_flight: int
    watched: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Health:
    """How the daemon fares. `problems` are sentences for people; none means that all is well.

    `jobs` counts them by phase. `totals` are counters over the daemon's life, restarts included.
    """

    problems: tuple[str, ...] = ()
    draining: bool = False
    started: float = 0.0
    jobs: Mapping[str, int] = field(default_factory=dict)
    lanes: tuple[LaneHealth, ...] = ()
    stalled: bool = False
    abandoned: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    free: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)
    """By mount point: free and total bytes at the last measure."""
    inventory: Mapping[bytes, Mapping[str, object]] = field(default_factory=dict)


class Service:
    """Jobs, leases and all that runs by itself; an async context manager: entering it takes up unfinished jobs.

    `tree` and `hsm` act as root and are shared by all jobs; `access` hands out those with a job owner's rights.
    `wall` tells the time in seconds since the epoch. Everything runs on one event loop; no method blocks it.
    Errors are FsxwarmError: NO_SUCH_JOB for an unknown id, RESTARTING from `drain` on, USAGE for a bad wish.
    Who may call what is the caller's business.
    """

    async def __aenter__(self) -> Self:
        """Load the store and go on with every unfinished job."""
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """`drain`, if that has not happened yet, and end all tasks."""
        raise NotImplementedError

    async def submit(self, request: JobRequest) -> Job:
        """Take a job on. It is durable when this returns."""
        raise NotImplementedError

    def jobs(self, *, owner: int | None = None) -> list[JobView]:
        """All jobs known, or those of one owner (uid), the newest first."""
        raise NotImplementedError

    def job(self, job_id: str) -> JobView | None:
        """One job; None when there is none of this id."""
        raise NotImplementedError

    async def wait(self, job_id: str, timeout: float) -> JobView:  # noqa: ASYNC109 - an elapsed time is an answer here, not an error
        """Wait until a job becomes ready or ends, or `timeout` seconds have passed; returns how it stands then.

        Returns at once when it has ended already. A job that is ready already is waited for to its end.
        Raises RESTARTING when the service drains meanwhile.
        """
        raise NotImplementedError

    async def cancel(self, job_id: str) -> JobView:
        """Let go of a job; one that has ended stays as it is. Files that other jobs want go on for them."""
        raise NotImplementedError

    async def set_priority(self, job_id: str, priority: int) -> JobView:
        """Change a job's priority (0 to 100); holds for its files that have not been asked for."""
        raise NotImplementedError

    async def failures(self, job_id: str, after: int = 0, limit: int = 1000) -> list[Failure]:
        """A job's files that did not become resident, in order, behind the number `after`."""
        raise NotImplementedError

    async def lease(self, request: LeaseRequest) -> Lease:
        """Promise that a path is not released."""
        raise NotImplementedError

    async def renew(self, lease_id: str, seconds: float) -> Lease:
        """Let a lease run out `seconds` from now instead. Raises NO_SUCH_LEASE when it has run out already."""
        raise NotImplementedError

    async def release_lease(self, lease_id: str) -> None:
        """End a lease before its time."""
        raise NotImplementedError

    def leases(self, *, owner: int | None = None) -> list[Lease]:
        """The leases that hold now."""
        raise NotImplementedError

    async def coverage(self, path: bytes, identity: Identity) -> Status:
        """How much under a path is resident, as far as this user may look."""
        raise NotImplementedError

    def health(self) -> Health:
        """How all of it fares."""
        raise NotImplementedError

    def events(self) -> AsyncIterator[Event]:
        """What happens from now on; ends when the service drains. A slow reader misses events, and is told."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Ask for nothing more, store how far all is, wake those who wait with RESTARTING. Unfinished jobs stay so."""
        raise NotImplementedError

    def __init__(self, tree: Tree, hsm: Hsm, access: Access, store: Store, plan: ServicePlan) -> None:
        raise NotImplementedError
