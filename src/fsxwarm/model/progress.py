"""How far a warming has come, in numbers that progress, report and exit status share."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from fsxwarm.model.entry import Entry, Key, Resident
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.tally import Tally

_RATE_OVER: Final = 30.0
"""Seconds that the rates shown look back."""


class Progress:
    """Counts files and bytes as they are found, passed on and settled.

    Sizes in bytes, times in seconds on the engine's clock. The order of `passed` calls is the order in which the job
    wants its files; `ready` measures along it.
    """

    def __init__(self, now: float) -> None:
        self.started = now
        self.scan_ended: float | None = None
        self.ended: float | None = None
        self.first_asked: float | None = None
        self.found = Tally()
        self.held = Tally()
        """Files found whose objects have to be thawed first."""
        self.scanned = 0
        """Files that the walk has seen, wanted or proved resident alike."""
        self.settled: dict[Outcome, Tally] = {outcome: Tally() for outcome in Outcome}
        self.reasons: Counter[Reason] = Counter()
        self.left_in_flight = Tally()
        """Not settled for good: we let go of them, and their restores go on at FSx."""
        self.unreadable = 0
        """Folders and list entries that could not be looked at."""
        self.skipped = 0
        """Names that are no regular files."""
        self._passed = 0
        self._open: dict[Key, int] = {}
        self._broken: int | None = None
        self._history: deque[tuple[float, int, int]] = deque([(now, 0, 0)])

    # ---- what happens ------------------------------------------------------------------------------------------

    def scanned_item(self, item: Entry | Resident) -> None:
        """The walk came upon a file, or a run of files proved resident."""
        if isinstance(item, Resident):
            self.found.add(item.bytes, item.files)
            self.scanned += item.files
        else:
            self.found.add(item.size)
            self.scanned += 1

    def passed(self, item: Entry | Resident) -> None:
        """Its turn has come, in the order in which files are wanted."""
        if isinstance(item, Resident):
            self.settled[Outcome.RESIDENT].add(item.bytes, item.files)
            self._passed += item.bytes
        else:
            self._open.setdefault(item.key, self._passed)
            self._passed += item.size

    def finished(self, finish: Finish) -> None:
        """A file has settled."""
        size = finish.entry.size
        self.settled[finish.outcome].add(size)
        offset = self._open.pop(finish.entry.key, None)
        if finish.reason is not None:
            self.reasons[finish.reason] += 1
        if finish.in_flight:
            self.left_in_flight.add(size)
        if not finish.outcome.warm and finish.outcome is not Outcome.VANISHED and offset is not None:
            self._broken = offset if self._broken is None else min(self._broken, offset)

    def explained(self, reason: Reason) -> None:
        """Why one of the restores failed has been found out."""
        self.reasons[Reason.RESTORE_FAILED] -= 1
        if not self.reasons[Reason.RESTORE_FAILED]:
            del self.reasons[Reason.RESTORE_FAILED]
        self.reasons[reason] += 1

    def sample(self, now: float) -> None:
        """Note the counts for the rates, at most once a second."""
        if now - self._history[-1][0] < 1.0:
            return
        restored = self.settled[Outcome.RESTORED]
        self._history.append((now, restored.files, restored.bytes))
        while len(self._history) > 2 and now - self._history[0][0] > _RATE_OVER:  # noqa: PLR2004 - a rate needs two
            self._history.popleft()

    # ---- what follows ------------------------------------------------------------------------------------------

    @property
    def resident(self) -> Tally:
        """Wanted files that are resident by now."""
        return self.settled[Outcome.RESIDENT] + self.settled[Outcome.RESTORED]

    @property
    def done(self) -> Tally:
        """Wanted files that have settled, in whatever way."""
        total = Tally()
        for tally in self.settled.values():
            total += tally
        return total

    @property
    def open(self) -> int:
        """Files passed on that have not settled."""
        return len(self._open)

    @property
    def remaining(self) -> Tally:
        """Wanted files that were found and have not settled."""
        done = self.done
        return Tally(self.found.files - done.files, self.found.bytes - done.bytes)

    @property
    def frontier(self) -> int:
        """Bytes at the head of the order that are resident without a gap."""
        frontier = next(iter(self._open.values()), self._passed)
        return frontier if self._broken is None else min(frontier, self._broken)

    def ready(self, share: float) -> bool:
        """Whether the first `share` (0 to 1) of the bytes, in order, is resident; never before the walk has ended."""
        return self.scan_ended is not None and self.frontier >= share * self.found.bytes

    def rate(self) -> tuple[float, float]:
        """Files and bytes restored per second, over the last half minute."""
        (then, files, size), (now, files_now, size_now) = self._history[0], self._history[-1]
        span = now - then
        return ((files_now - files) / span, (size_now - size) / span) if span > 0 else (0.0, 0.0)

    def mean_rate(self, now: float) -> tuple[float, float]:
        """Files and bytes restored per second since the first request."""
        if self.first_asked is None or now <= self.first_asked:
            return 0.0, 0.0
        span = (now if self.ended is None else self.ended) - self.first_asked
        restored = self.settled[Outcome.RESTORED]
        return (restored.files / span, restored.bytes / span) if span > 0 else (0.0, 0.0)

    def eta(self) -> float | None:
        """Seconds until all is settled at the present rate: the later of files and bytes; None when unknown."""
        files_rate, bytes_rate = self.rate()
        left = self.remaining
        if not left.files:
            return 0.0
        if files_rate <= 0 or self.held.files:
            return None
        by_files = left.files / files_rate
        return max(by_files, left.bytes / bytes_rate) if bytes_rate > 0 else by_files
