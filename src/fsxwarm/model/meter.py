"""What is counted while it happens, for metrics: plain numbers, none of which grows with files, jobs or users."""

from __future__ import annotations

import errno as errnos
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from fsxwarm.model.messages import Finish, Say, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.tally import Tally

RESTORE_BOUNDS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
CALL_BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
LAG_BOUNDS: Final = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_SIZES: Final = (64 * _KIB, _MIB, 16 * _MIB, 256 * _MIB, 4 * _GIB)
SIZE_CLASSES: Final = ("64KiB", "1MiB", "16MiB", "256MiB", "4GiB", "larger")
"""Files of up to so many bytes, and more than the class before."""

_WITH_REASON: Final = frozenset({Outcome.FAILED, Outcome.BLOCKED})

HUNG: Final = "hung"
"""The error of a call that did not come back in time."""


class Histogram:
    """How often a value fell where: `counts[i]` are those up to `bounds[i]`, the last those beyond; `sum` of all."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Take a value in."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


class Meter:
    """Hears what happens and adds it up, from the start of the process on."""

    def __init__(self) -> None:
        self.settled_files: dict[Outcome, Tally] = {outcome: Tally() for outcome in Outcome}
        self.reasons: Counter[tuple[Outcome, Reason]] = Counter()
        """Failed and blocked files."""
        self.words: Counter[Word] = Counter()
        """How often each word was said, by file where it is said of files."""
        self.restores = [Histogram(RESTORE_BOUNDS) for _ in SIZE_CLASSES]
        """Seconds from asking until a file was seen resident, by `SIZE_CLASSES`."""
        self.requests = 0
        """Restore requests."""
        self.requested_files = 0
        self.scanned_files = 0
        """Files that walks came upon."""
        self.calls: dict[str, Histogram] = {}
        """Seconds that calls to the file system took, by their name in the ports."""
        self.call_errors: Counter[tuple[str, str]] = Counter()
        """Their failures, by name and by errno (one for each file that a call could not do), or `HUNG`."""
        self.loop_lag = Histogram(LAG_BOUNDS)
        """Seconds by which the event loop was late."""

    def settled(self, finish: Finish) -> None:
        """A file has settled."""
        size = finish.entry.size
        tally = self.settled_files[finish.outcome]
        tally.files += 1  # not by a call: this is done for each file
        tally.bytes += size
        if finish.took is not None:
            self.restores[bisect_left(_SIZES, size)].observe(finish.took)
        if finish.reason is not None and finish.outcome in _WITH_REASON:
            self.reasons[finish.outcome, finish.reason] += 1

    def said(self, say: Say) -> None:
        """Something was said of the whole, or of some files."""
        self.words[say.word] += max(1, len(say.files))

    def asked(self, files: int) -> None:
        """A restore request for so many files was sent."""
        self.requests += 1
        self.requested_files += files

    def called(self, call: str, seconds: float) -> None:
        """A call has come to its end, whatever that was."""
        known = self.calls.get(call)
        if known is None:
            known = self.calls[call] = Histogram(CALL_BOUNDS)
        known.observe(seconds)

    def failed(self, call: str, error: int | str, times: int = 1) -> None:
        """A call, or one file of it, has failed: an errno, or a word of a closed set."""
        name = error if isinstance(error, str) else errnos.errorcode.get(error, "other")
        self.call_errors[call, name] += times
