"""The whole at a glance, and how it went over the last hour: what `fsxwarm top` and the page show."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, NamedTuple

from fsxwarm.engine.inventory import Scan
from fsxwarm.engine.plan import Marks
from fsxwarm.engine.shared import SharedWarming
from fsxwarm.engine.tracked import Tracked
from fsxwarm.model.job import JobView
from fsxwarm.ports.hsm import Space

EVERY: Final = 10.0
"""Seconds between two samples."""
_KEPT: Final = 361
"""Samples: an hour of them."""
_SLOWEST: Final = 20
_GOING, _ENDED = 100, 20
"""Jobs shown that go on, and that have ended."""


class Sample(NamedTuple):
    """One moment: files in flight, how many might have been, and what had been restored up to then (bytes, files)."""

    at: float
    window: int
    in_flight: int
    restored_files: int
    restored_bytes: int


class Slow(NamedTuple):
    """A file that has been at FSx for long. `moved` bytes as far as they are known, else -1; `phase` is the machine's.

    `jobs` want it.
    """

    path: bytes
    size: int
    jobs: tuple[str, ...]
    phase: str
    seconds: float
    moved: int
    attempts: int


class Room(NamedTuple):
    """Space on a file system, in bytes; below `low` free, files are released until `high` is (0, 0: they are not)."""

    mount: bytes
    free: int
    total: int
    low: int
    high: int
    dry_run: bool


class Stock(NamedTuple):
    """What the inventory counted below a configured path, and when it had done so."""

    path: bytes
    resident_files: int
    resident_bytes: int
    released_files: int
    released_bytes: int
    at: float


@dataclass(frozen=True, slots=True)
class Overview:
    """At a glance. `limit` is what binds: files/s, bytes/s, or unknown."""

    at: float = 0.0
    limit: str = "unknown"
    slowest: Sequence[Slow] = ()
    rooms: Sequence[Room] = ()
    stocks: Sequence[Stock] = ()
    past: Sequence[Sample] = ()
    jobs: Sequence[JobView] = ()
    """Those that go on, then those that have ended, the newest first; of many, the newest."""


class Past:
    """Samples of the last hour."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=_KEPT)

    def note(self, warming: SharedWarming, totals: Mapping[str, int], at: float) -> None:
        """Take a sample."""
        lanes = warming.machine.lanes.values()
        window, in_flight = sum(lane.window.size for lane in lanes), sum(lane.at_fsx for lane in lanes)
        self.samples.append(
            Sample(at, window, in_flight, totals.get("restored_files", 0), totals.get("restored_bytes", 0))
        )


def newest(tracked: Iterable[Tracked], owner: int | None) -> list[JobView]:
    """The jobs to show, of one owner or all; `tracked` has the oldest first."""
    going: list[Tracked] = []
    ended: list[Tracked] = []
    for one in reversed(list(tracked)):
        if owner in (None, one.job.owner):
            some, most = (ended, _ENDED) if one.job.phase.final else (going, _GOING)
            if len(some) < most:
                some.append(one)
    return [one.view() for one in (*going, *ended)]


def limit_of(warming: SharedWarming) -> str:
    """What most metadata targets say that know it."""
    known = Counter(lane.window.limit for lane in warming.machine.lanes.values())
    del known["unknown"]
    return known.most_common(1)[0][0] if known else "unknown"


def slowest(warming: SharedWarming, owner: int | None, now: float, most: int = _SLOWEST) -> list[Slow]:
    """The files that one owner's jobs, or all, have had at FSx for longest; `now` on the machine's clock."""
    numbers: set[int] = set()
    jobs: set[str] = set()
    for number, walk in warming.walks.items():
        mine = [job.id for job in walk.jobs.values() if owner in (None, job.owner)]
        if mine:
            numbers.add(number)
            jobs.update(mine)
    files = nsmallest(most, warming.machine.on_their_way(numbers), key=lambda file: file.asked)
    return [
        Slow(
            file.entry.path,
            file.entry.size,
            tuple(job for job in warming.wanted_by(file.key) if job in jobs),
            file.phase.value,
            max(0.0, now - file.asked),
            file.moved,
            file.attempts,
        )
        for file in files
    ]


def stocks(done: Mapping[bytes, Scan]) -> list[Stock]:
    """What whole scans have counted."""
    return [
        Stock(
            path, scan.resident_files, scan.resident_bytes, scan.released_files, scan.released_bytes,
            scan.ended or scan.started,
        )
        for path, scan in sorted(done.items())
    ]  # fmt: skip


def rooms(spaces: Mapping[bytes, Space], marks: Sequence[Marks]) -> list[Room]:
    """Space with the marks at which room is made."""
    by_mount = {one.mount: one for one in marks}
    found = []
    for mount, space in sorted(spaces.items()):
        one = by_mount.get(mount)
        low, high = (one.low.of(space.total), one.high.of(space.total)) if one is not None else (0, 0)
        found.append(Room(mount, space.free, space.total, low, high, one is not None and one.dry_run))
    return found
