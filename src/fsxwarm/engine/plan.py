"""What the service does of its own accord, and how it fares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fsxwarm.model.policy import Policy
from fsxwarm.model.units import Amount
from fsxwarm.ports.store import Limits


@dataclass(frozen=True, slots=True)
class KeepWarm:
    """Paths of the configuration that are walked again `every` so many seconds, at low priority."""

    paths: tuple[bytes, ...]
    every: float = 3600.0


@dataclass(frozen=True, slots=True)
class Marks:
    """Below `low` free space on the file system mounted at `mount`, release until `high` is free.

    With `unchecked` also what cannot be looked up in S3.
    """

    mount: bytes
    low: Amount
    high: Amount
    dry_run: bool = False
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What the service does of its own accord, and within which bounds. Times in seconds.

    `reserve`: space that preloads leave free (None: free space is not looked at). `walks`: walks at a time.
    `inventory`: paths that are counted again `inventory_every`, at no more than `inventory_rate` files a second, and
    with `inventory_linked` the folders of all associations that AWS tells of. `rest_after_restore`: make-room releases
    nothing that became resident so recently.
    """

    policy: Policy = field(default_factory=Policy)
    reserve: Amount | None = None
    walks: int = 8
    keep_warm: tuple[KeepWarm, ...] = ()
    make_room: tuple[Marks, ...] = ()
    make_room_every: float = 60.0
    rest_after_restore: float = 86400.0
    inventory: tuple[bytes, ...] = ()
    inventory_linked: bool = False
    inventory_every: float = 86400.0
    inventory_rate: float = 500.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class LaneHealth:
    """A file system's (st_dev) metadata target: files in flight of all jobs together, and how many may be.

    `stalled` are those in flight whose restores do not move.
    """

    dev: int
    mdt: int
    window: int
    in_flight: int
    stalled: int
    watched: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Health:
    """How the daemon fares. `problems` are sentences for people; none means that all is well.

    `jobs` counts them by phase. `totals` are counters over the daemon's life, restarts included. `started` is in
    seconds since the epoch.
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
    """By path: what the last whole scan counted, see `fsxwarm.engine.inventory`."""
