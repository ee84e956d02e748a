"""All that metrics tell, at one moment. Bounded whatever users do: no paths but configured ones, no job's number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsxwarm.errors import Exit
from fsxwarm.model.meter import Meter


def label(path: bytes) -> str:
    """A path as a label's value."""
    return path.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class LaneMeasure:
    """A metadata target: files in flight, how many may be, those that others have in flight, and those that wait."""

    mount: str
    mdt: int
    window: int
    in_flight: int
    watched: int
    waiting: int


@dataclass(frozen=True, slots=True)
class SpaceMeasure:
    """Room on a file system, in bytes. `fullest` is the fullest OST's free bytes and size; None when none was named."""

    mount: str
    free: int
    size: int
    fullest: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StockMeasure:
    """What the last whole scan of a configured path has counted. `ended` in seconds since the epoch."""

    mount: str
    path: str
    ended: float
    files: Mapping[str, int]
    """By state: resident, released."""
    bytes: Mapping[str, int]
    archived_files: int
    archived_bytes: int
    flagged: Mapping[str, int]
    """Files by flag: dirty, not_archived, pinned, lost."""
    unread: int


@dataclass(frozen=True, slots=True)
class RoundMeasure:
    """The last whole round of configured keep-warm paths. `every` in seconds, `ended` in those since the epoch."""

    path: str
    every: float
    coverage: float
    ended: float


@dataclass(frozen=True, slots=True)
class LinkMeasure:
    """An association as FSx tells it, at the path where its folder shows."""

    mount: str
    path: str
    lifecycle: str
    usable: bool


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """One run of a command. Times in seconds since the epoch; `ended` and `exit` are None while it goes on."""

    started: float
    found_files: int
    found_bytes: int
    coverage: float
    ended: float | None = None
    exit: Exit | None = None


@dataclass(frozen=True, slots=True)
class CallTally:
    """Calls to AWS by IAM action and result ("ok", or what was wrong), and answers that asked for fewer calls."""

    calls: Mapping[tuple[str, str], int] = field(default_factory=dict)
    throttled: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceMeasure:
    """How the daemon fares. `started` in seconds since the epoch.

    `jobs` counts by kind and phase, `ended` by what they ended with, over the daemon's life. `queued` are files found
    that have not settled, by priority: low, normal, high. `behind` are jobs that will not make their deadline.
    `released` are files and bytes released by jobs and by making room; `short` the bytes that making room could not
    find, by mount. `errands` tells of each thing done again and again whether it failed the last time.
    """

    started: float
    stalled: bool
    problems: int
    jobs: Mapping[tuple[str, str], int]
    ended: Mapping[str, int]
    behind: int
    queued: Mapping[str, tuple[int, int]]
    leases: int
    released: Mapping[str, tuple[int, int]]
    short: Mapping[str, int]
    errands: Mapping[str, bool]
    scans: Mapping[str, bool] = field(default_factory=dict)
    """Configured paths of the inventory, and whether they are being counted right now."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known at one moment. What a process has nothing to say of is empty, or None."""

    version: str
    meter: Meter
    abandoned: int = 0
    restoring: Mapping[str, int] = field(default_factory=dict)
    """By mount: bytes asked for or about to be, and not seen resident yet."""
    lanes: Sequence[LaneMeasure] = ()
    spaces: Sequence[SpaceMeasure] = ()
    stocks: Sequence[StockMeasure] = ()
    rounds: Sequence[RoundMeasure] = ()
    links: Sequence[LinkMeasure] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    """By mount: bytes per second that the file system's tier takes in."""
    aws: CallTally = field(default_factory=CallTally)
    service: ServiceMeasure | None = None
    run: RunMeasure | None = None
