"""The state machine that warms files: events in, instructions out, no I/O and no clock of its own.

What it promises, and `validate.py` checks after each event of a test: never more files at FSx than the window allows
when asking; never a file asked for while its restore is queued or running, nor without a fresh look that showed none;
every file settles exactly once. Where servers skip duplicates a file needs no look before it is asked for the first
time, and one whose action nobody lets us see may be asked for again after a refusal in company.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from math import inf

from fsxwarm.model.asking import Asking
from fsxwarm.model.book import Book
from fsxwarm.model.entry import Key
from fsxwarm.model.file import File, Phase
from fsxwarm.model.judging import Judging
from fsxwarm.model.lane import Lane
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import (
    Answered,
    Cancelled,
    Event,
    Finish,
    Found,
    Full,
    Instruction,
    Looked,
    Overdue,
    Ranked,
    Room,
    Say,
    Stale,
    Stop,
    Tick,
    WalkEnded,
    Word,
)
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.model.validate import validate


class Warming:
    """Warms files for any number of jobs; a file wanted by several is asked for once.

    `handle` takes one event and the time (seconds on one steady clock) and returns what to do. `wake_at` says when
    to send the next `Tick`; `appetite` how many more files it wants to be told of.
    """

    def __init__(self, policy: Policy, now: float = 0.0) -> None:
        self.policy = policy
        self._book = Book(policy, now)
        self._asking = Asking(self._book)
        self._judging = Judging(self._book, self._asking)
        self._ticked = now

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Take in one event at time `now` and return what is to be done about it, in order."""
        self._book.out = []
        match event:
            case Found():
                self._found(event, now)
            case WalkEnded():
                self._book.walking.discard(event.job)
            case Looked():
                self._judging.looked(event, now)
            case Answered():
                self._asking.answered(event, now)
            case Overdue():
                self._asking.overdue(event, now)
            case Stale():
                self._asking.stale(event)
            case Cancelled():
                self._judging.cancelled(event, now)
            case Room() | Full():
                self._space(event)
            case Stop():
                self._stop(event)
            case Ranked():
                self._ranked(event)
            case Tick():
                pass
        self._pump(now)
        return self._book.out

    @property
    def appetite(self) -> int:
        """How many more files it makes sense to tell of now."""
        waiting = sum(lane.waiting for lane in self._book.lanes.values())
        return max(0, self.policy.lookahead - waiting)

    def appetite_of(self, job: int) -> int:
        """How many more files of one job it makes sense to tell of: some even when others fill the queues."""
        waits = any(lane.unseen.serves(job) or lane.cold.serves(job) for lane in self._book.lanes.values())
        return self.appetite or (0 if waits else self.policy.look_batch)

    def at_fsx_for(self, job: int) -> tuple[int, int]:
        """Files and bytes that one job wants and that are, or may be, on their way at FSx for it."""
        sizes = [file.entry.size for file in self._book.files.values() if job in file.wanted_by and file.at_fsx]
        return len(sizes), sum(sizes)

    def let_go_of(self, job: int, reason: Reason) -> Iterator[Finish]:
        """How the files that one job wants settle for it when it is stopped now, also those that go on for others."""
        outcome = _let_go(reason)
        for file in self._book.files.values():
            if job in file.wanted_by:
                yield Finish(file.entry, outcome, frozenset({job}), reason, flags=file.flags, attempts=file.attempts,
                             in_flight=file.on_its_way)  # fmt: skip

    def on_their_way(self, jobs: AbstractSet[int]) -> Iterator[File]:
        """Files that these jobs want and that are at FSx, whoever asked for them; to look at, not to touch."""
        for file in self._book.files.values():
            if file.asked and file.on_its_way and not jobs.isdisjoint(file.wanted_by):
                yield file

    def wanted_by(self, key: Key) -> frozenset[int]:
        """The jobs that want a file that has not settled."""
        file = self._book.files.get(key)
        return frozenset() if file is None else frozenset(file.wanted_by)

    @property
    def idle(self) -> bool:
        """Every file told of has settled."""
        return not self._book.files

    def claimed(self, dev: int) -> int:
        """Bytes of a file system asked for or about to be, and not seen resident yet."""
        return self._book.claimed[dev]

    @property
    def stalled(self) -> bool:
        """Files are in flight and none has become resident for a while."""
        return self._book.stalled

    @property
    def lanes(self) -> Mapping[LaneId, Lane]:
        """The metadata targets seen so far, with their windows; to look at, not to touch."""
        return self._book.lanes

    @property
    def in_flight(self) -> int:
        """Files of ours that may be queued or running at FSx."""
        return self._book.in_flight

    @property
    def watched(self) -> int:
        """Files that somebody else has in flight, and that we wait for."""
        return self._book.count(Phase.WATCHED)

    def wake_at(self, now: float) -> float:
        """When the next `Tick` is due at the latest."""
        due = self._book.rounds.next_due
        wake = self._ticked + 1.0
        return max(now, wake if due is None else min(wake, due))

    def _found(self, event: Found, now: float) -> None:
        book = self._book
        book.walking.add(event.job)
        for entry in event.entries:
            known = book.files.get(entry.key)
            if known is not None:
                self._want(known, event.job, entry.path)
                continue
            file = book.add(entry, event.job, now)
            file.barred = event.barred.get(entry.key)
            file.aged = event.aged
            if entry.proves_resident:
                book.finish(file, Outcome.RESIDENT)
            elif book.stopped is not None:
                book.finish(file, Outcome.CANCELLED, book.stopped)
            elif entry.dev in book.full:
                book.finish(file, Outcome.BLOCKED, Reason.NO_ROOM)
            else:
                book.lane(file).unseen.put(file)

    def _ranked(self, event: Ranked) -> None:
        if event.rank is not None:
            self._book.ranks[event.job] = event.rank
        else:
            self._book.ranks.pop(event.job, None)
            self._book.walking.discard(event.job)

    def _want(self, file: File, job: int, name: bytes) -> None:
        file.also_named(name)
        if job not in file.wanted_by:
            file.wanted_by.add(job)
            lane = self._book.lane(file)
            lane.unseen.join(file, job)
            lane.cold.join(file, job)

    def _space(self, event: Room | Full) -> None:
        if isinstance(event, Full):
            self._book.block_the_rest(event.dev, inf)
            return
        self._book.room[event.dev] = event.available
        if event.available >= self._book.full.get(event.dev, inf):
            del self._book.full[event.dev]

    def _leave(self, job: int, reason: Reason) -> None:
        book = self._book
        book.walking.discard(job)
        outcome = _let_go(reason)
        for file in list(book.files.values()):
            if job in file.wanted_by:
                file.wanted_by.discard(job)
                if not file.wanted_by and not file.at_fsx:
                    book.lane(file).forget(file)
                    book.finish(file, outcome, reason)
        book.ranks.pop(job, None)

    def _stop(self, event: Stop) -> None:
        if event.job is not None:
            self._leave(event.job, event.reason)
            return
        reason = self._book.stopped = event.reason
        for file in list(self._book.files.values()):
            self._book.finish(file, Outcome.CANCELLED, reason)
        self._book.clear_queues(self._book.lanes.values())
        self._asking.requests.clear()

    def _pump(self, now: float) -> None:
        book = self._book
        book.rounds.make(book.files, book.lanes, now, book.out, self._woken)
        for lane in book.lanes.values():
            self._asking.fill(lane, now)
        if now >= self._ticked + 1.0:  # as `wake_at` has it, to the last bit
            self._second(now)

    def _woken(self, file: File) -> None:
        """A file's backoff is over."""
        self._book.move(file, Phase.QUEUED)
        lane = self._book.lane(file)
        (lane.unseen if file.flags is None and not file.unreadable else lane.cold).put(file, ahead=True)

    def _second(self, now: float) -> None:
        self._ticked = now
        book = self._book
        on_their_way = 0
        for lane in book.lanes.values():
            on_their_way += lane.at_fsx + lane.counts[Phase.WATCHED]
            lane.window.tick(lane.at_fsx, lane.limited_by_window, now)
            if lane.ends:
                book.look_at_once(lane.scouts.release(), now)
        if not on_their_way:
            book.last_completion = now
        elif not book.stalled and now - book.last_completion > self.policy.system_stall:
            book.stalled = True
            book.out.append(Say(Word.SYSTEM_STALLED, seconds=now - book.last_completion))

    def validate(self) -> None:
        """Raise AssertionError when a promise is broken; for tests, after each event."""
        validate(self._book, self._asking)


def _let_go(reason: Reason) -> Outcome:
    return Outcome.BLOCKED if reason is Reason.NO_ROOM else Outcome.CANCELLED
