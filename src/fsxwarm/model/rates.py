"""What a window learns from: how many were in flight at any time, how long files take, how fast they come."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Final

_HISTORY: Final = 4096
_INSTANT: Final = 1e-3
"""Seconds; nothing is restored and seen in less."""
_SMOOTHED: Final = 5.0
_CLASS_BITS: Final = 2
_WEIGHT: Final = 20.0
"""How many files' worth of old knowledge of a size class stands against new files."""
_RISE: Final = 1.25
_STREAM: Final = 10e6
"""Bytes per second. A restore that moves fewer spends its time on what each file costs, not on its bytes: S3 streams
are several times faster."""
_FEW: Final = 20.0


class InFlight:
    """How many files were in flight as a function of time, to tell means over past stretches."""

    def __init__(self, now: float) -> None:
        self.files = 0
        self._times = [now]
        self._areas = [0.0]

    def becomes(self, files: int, now: float) -> None:
        """From `now` on, so many files are in flight."""
        if now > self._times[-1]:
            self._areas.append(self._areas[-1] + self.files * (now - self._times[-1]))
            self._times.append(now)
            if len(self._times) > _HISTORY:
                del self._times[: _HISTORY // 2], self._areas[: _HISTORY // 2]
        self.files = files

    def mean(self, since: float, now: float) -> float:
        """The time-weighted mean from `since`, or as far back as is known, until `now`."""
        since = max(since, self._times[0])
        if now <= since:
            return float(self.files)
        return (self._area(now) - self._area(since)) / (now - since)

    def _area(self, when: float) -> float:
        at = bisect_right(self._times, when) - 1
        if at == len(self._times) - 1:
            return self._areas[at] + self.files * (when - self._times[at])
        share = (when - self._times[at]) / (self._times[at + 1] - self._times[at])
        return self._areas[at] + share * (self._areas[at + 1] - self._areas[at])


class Sample:
    """Files that were seen resident under like conditions."""

    __slots__ = ("by_class", "expected", "files", "populated", "took")

    def __init__(self) -> None:
        self.files = 0.0
        self.took = 0.0
        self.expected = 0.0
        self.populated = 0.0
        self.by_class: dict[int, tuple[int, float]] = {}

    def add(self, size_class: int, took: float, expected: float, in_flight: float) -> None:
        """Add a file that took `took` seconds instead of `expected`, with so many in flight on average meanwhile."""
        self.files += 1
        self.took += took
        self.expected += expected
        self.populated += in_flight * took
        files, seconds = self.by_class.get(size_class, (0, 0.0))
        self.by_class[size_class] = (files + 1, seconds + took)

    def take_in(self, other: Sample, keep: float) -> None:
        """Add another sample's sums after forgetting all but a share `keep` of one's own."""
        self.files = other.files + keep * self.files
        self.took = other.took + keep * self.took
        self.expected = other.expected + keep * self.expected
        self.populated = other.populated + keep * self.populated

    @property
    def slowdown(self) -> float:
        """By what factor files took longer than they do when none waits for another. Not for an empty sample."""
        return self.took / self.expected

    @property
    def in_flight(self) -> float:
        """How many were in flight on average during these files' lives. Not for an empty sample."""
        return self.populated / self.took

    @property
    def knee(self) -> float:
        """How many in flight would deliver what was delivered, if none waited for another (Little's law).

        Because the same files stand above and below the line, a mix of sizes disturbs it little.
        """
        return self.in_flight / self.slowdown


class ServiceTimes:
    """Seconds from asking to being seen resident when no file waits for another, by size class (factors of four)."""

    def __init__(self) -> None:
        self._classes: dict[int, tuple[float, float]] = {}
        self._bytes = 0.0
        self._files = 0.0

    @staticmethod
    def class_of(nbytes: int) -> int:
        """The class of a size in bytes."""
        return nbytes.bit_length() // _CLASS_BITS

    def expected(self, size_class: int, took: float, slowdown: float) -> float:
        """Seconds that files of a class take.

        A class that is new is entered: the file at hand took `took` seconds while all took `slowdown` times as long
        as they should, and larger files do not take less than smaller ones.
        """
        known = self._classes.get(size_class)
        if known is not None:
            return known[1]
        smaller = max((of for of in self._classes if of < size_class), default=None)
        least = self._classes[smaller][1] if smaller is not None else _INSTANT
        seconds = min(max(took / max(slowdown, 1.0), least), max(took, _INSTANT))
        self._classes[size_class] = (1.0, seconds)
        return seconds

    def learn(self, sample: Sample) -> float:
        """Take it that the files of a sample did not wait for others; return the factor by which all times change.

        Down at once, up by `_RISE` at most: what looks like slower service may be the queue of another client, and
        two that took each other's queue for service would raise their windows in turns, without end.
        """
        factor = min(sample.slowdown, _RISE)
        for size_class, (weight, known) in self._classes.items():
            seconds = known * factor
            files, took = sample.by_class.get(size_class, (0, 0.0))
            if files:
                weight = min(weight, _WEIGHT) + files  # noqa: PLW2901 - the pair is replaced as a whole
                seconds += (took / files * factor / sample.slowdown - seconds) * files / weight
            self._classes[size_class] = (weight, max(seconds, _INSTANT))
        return factor

    def scale(self, factor: float) -> None:
        """Change all times by a factor."""
        for size_class, (weight, seconds) in self._classes.items():
            self._classes[size_class] = (weight, max(seconds * factor, _INSTANT))

    def saw(self, nbytes: int) -> None:
        """Remember how large files are."""
        keep = 1 - 1 / 1024
        self._bytes = keep * self._bytes + nbytes
        self._files = keep * self._files + 1

    @property
    def typical(self) -> float:
        """Seconds over all classes, weighted by how often each was seen; 0 while nothing is known."""
        weight = sum(weight for weight, _ in self._classes.values())
        return sum(weight * seconds for weight, seconds in self._classes.values()) / weight if weight else 0.0

    @property
    def lasting(self) -> float:
        """Seconds that a file takes which is found running at a random moment: long ones are found more often."""
        seconds = sum(weight * seconds for weight, seconds in self._classes.values())
        squares = sum(weight * seconds**2 for weight, seconds in self._classes.values())
        return squares / seconds if seconds else 0.0

    @property
    def longest(self) -> float:
        """Seconds of the slowest class; 0 while nothing is known."""
        return max((seconds for _, seconds in self._classes.values()), default=0.0)

    @property
    def limit(self) -> str:
        """What binds: "files/s" where a file's size hardly matters to its time, "bytes/s" where it does."""
        if self._files < _FEW or not self._classes:
            return "unknown"
        if len(self._classes) > 1:
            least = min(seconds for _, seconds in self._classes.values())
            return "bytes/s" if least < 0.5 * self.lasting else "files/s"
        return "bytes/s" if self._bytes / self._files > _STREAM * self.typical else "files/s"


class Throughput:
    """Files and bytes per second, smoothed over some seconds; for slow ones, over two restores' time."""

    def __init__(self, now: float) -> None:
        self.files = 0.0
        self.bytes = 0.0
        self._new_files = 0
        self._new_bytes = 0
        self._since = now
        self._known = False

    def add(self, nbytes: int) -> None:
        """Count a file."""
        self._new_files += 1
        self._new_bytes += nbytes

    def settle(self, service_time: float, now: float) -> None:
        """Take what was counted since the last time into the rates."""
        passed = now - self._since
        if passed < _INSTANT or not (self._known or self._new_files):
            return
        share = 1.0 if not self._known else 1 - math.exp(-passed / max(_SMOOTHED, 2 * service_time))
        self.files += share * (self._new_files / passed - self.files)
        self.bytes += share * (self._new_bytes / passed - self.bytes)
        self._known, self._since, self._new_files, self._new_bytes = True, now, 0, 0
