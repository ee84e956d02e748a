"""What must hold in a warming at any time, checked by tests after each event."""

from __future__ import annotations

from collections import Counter

from fsxwarm.model.asking import Asking
from fsxwarm.model.book import Book
from fsxwarm.model.file import ASKED_OR_NEXT, File, Phase
from fsxwarm.model.lane import Lane

_WATCHED_OVER = frozenset({Phase.IN_FLIGHT, Phase.WATCHED, Phase.LIMBO, Phase.REFUSED, Phase.BACKOFF})


class BrokenPromiseError(AssertionError):
    """The state machine is in a state that it promised never to be in."""


def _must(truth: object, what: str, *about: object) -> None:
    """Raise unless it is true; the words are only put together then, for this runs after each event."""
    if not truth:
        raise BrokenPromiseError(what.format(*about))


def validate(book: Book, asking: Asking) -> None:
    """Raise `BrokenPromiseError` when a file is in no place or in two, is waited for by nobody, or miscounted."""
    for key, file in book.files.items():
        _must(file.key == key, "{} is filed under {}", file, key)
        _must(0 <= file.attempts <= book.policy.attempts, "{} was asked for too often", file)
        _must(file.wanted_by or file.at_fsx, f"{file} is wanted by nobody")
        if file.phase in _WATCHED_OVER:
            looked_after = file.looking is not None or file.due is not None
            _must(looked_after or file.request in asking.requests, "{} is waited for by nobody", file)
        if file.phase is Phase.SUBMITTED:
            _must(file.request in asking.requests, "{} waits for no request", file)
    for lane_id, lane in book.lanes.items():
        files = [file for file in book.files.values() if file.lane == lane_id]
        counted = Counter(file.phase for file in files)
        _must(+lane.counts == counted, "{} counts {}, holds {}", lane_id, lane.counts, counted)
        stuck = sum(file.stuck and file.at_fsx for file in files)
        _must(lane.window.stuck == stuck, "{} takes {} files for stuck, {} are", lane_id, lane.window.stuck, stuck)
        stalled = sum(file.stalled and file.at_fsx for file in files)
        _must(lane.stalled == stalled, "{} counts {} stalled files, there are {}", lane_id, lane.stalled, stalled)
        _validate_queues(lane, files)
    claimed: Counter[int] = Counter()
    for file in book.files.values():
        if file.phase in ASKED_OR_NEXT:
            claimed[file.entry.dev] += file.entry.size
    _must(+book.claimed == +claimed, "{} bytes claimed, {} on their way", book.claimed, claimed)


def _validate_queues(lane: Lane, files: list[File]) -> None:
    for queue, phase in ((lane.unseen, Phase.QUEUED), (lane.cold, Phase.QUEUED), (lane.ready, Phase.READY)):
        _must(len({id(file) for file in queue}) == len(queue), "a file waits twice in a queue")
        for file in queue:
            _must(file.phase is phase and file.looking is None, "{} waits in the wrong queue", file)
    waiting = {id(file) for file in lane.unseen} | {id(file) for file in lane.cold}
    for file in files:
        if file.phase is Phase.QUEUED:
            placed = (id(file) in waiting) is (file.looking is None)
            _must(placed, "{} is in no queue, or in one while looked at", file)
