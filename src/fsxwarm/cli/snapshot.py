"""One look at a running warming, for whatever shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

from fsxwarm.engine.account import Account
from fsxwarm.engine.warm import Warmer
from fsxwarm.model.lane import Lane
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import Word
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.tally import Tally

_ENOUGH: Final = 500
_LOPSIDED: Final = 0.95


class LaneView(NamedTuple):
    """A metadata target: files of ours there, and how many there may be."""

    mdt: int
    in_flight: int
    window: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts of one moment. Rates per second over the last half minute, times in seconds.

    `done` has settled in whatever way; `already` counts files that were resident before; `asked` tells that the first
    request was sent; `limit` is files/s, bytes/s or unknown; `lopsided` the metadata target on which nearly all
    files lie, where there are several; `thawing` counts files whose objects have to be thawed first. `stalled` counts
    those in flight whose restores do not move; `standstill` tells that nothing has become resident for long.
    """

    found: Tally
    done: Tally
    resident: Tally
    restored: Tally
    already: int
    failed: int
    blocked: int
    scanning: bool
    scan_seconds: float
    asked: bool
    restore_seconds: float
    files_rate: float
    bytes_rate: float
    eta: float | None
    limit: str
    in_flight: int
    watched: int
    window: int
    lanes: tuple[LaneView, ...]
    retries: int
    stalled: int
    lopsided: int | None
    standstill: bool = False
    thawing: int = 0

    @property
    def share(self) -> float:
        """How much of the bytes found has settled, between 0 and 1."""
        if self.found.bytes:
            return self.done.bytes / self.found.bytes
        return 1.0 if self.found.files and self.done.files >= self.found.files else 0.0


def snapshot(warmer: Warmer, account: Account, now: float) -> Snapshot:
    """Look at a warming at time `now` of its clock."""
    progress, machine = warmer.progress, warmer.machine
    lanes = sorted(machine.lanes.items())
    files_rate, bytes_rate = progress.rate()
    settled = progress.settled
    return Snapshot(
        found=progress.found,
        done=progress.done,
        resident=progress.resident,
        restored=settled[Outcome.RESTORED],
        already=settled[Outcome.RESIDENT].files,
        failed=settled[Outcome.FAILED].files,
        blocked=settled[Outcome.BLOCKED].files,
        scanning=progress.scan_ended is None,
        scan_seconds=(now if progress.scan_ended is None else progress.scan_ended) - progress.started,
        asked=progress.first_asked is not None,
        restore_seconds=0.0 if progress.first_asked is None else now - progress.first_asked,
        files_rate=files_rate,
        bytes_rate=bytes_rate,
        eta=None if progress.scan_ended is None else progress.eta(),
        limit=limit_of([lane for _, lane in lanes]),
        in_flight=machine.in_flight,
        watched=machine.watched,
        window=sum(lane.window.size for _, lane in lanes),
        lanes=tuple(LaneView(name.mdt, lane.at_fsx, lane.window.size) for name, lane in lanes),
        retries=account.words[Word.RETRY],
        stalled=sum(lane.stalled for _, lane in lanes),
        lopsided=busiest(account.lanes),
        standstill=machine.stalled,
        thawing=progress.held.files,
    )


def limit_of(lanes: list[Lane]) -> str:
    """What binds, over all metadata targets: what most of those say that know it."""
    known = Counter(lane.window.limit for lane in lanes if lane.window.limit != "unknown")
    return known.most_common(1)[0][0] if known else "unknown"


def busiest(lanes: Counter[LaneId]) -> int | None:
    """The metadata target that nearly all of many files lie on, where there are several; else None."""
    if len(lanes) < 2 or lanes.total() < _ENOUGH:  # noqa: PLR2004 - of one there is no lopsidedness
        return None
    name, files = lanes.most_common(1)[0]
    return name.mdt if files >= _LOPSIDED * lanes.total() else None
