"""The warming machine with several jobs: single flight, jobs that leave, jobs that overtake."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import IDLE, Flags
from fsxwarm.model.messages import (
    Answered,
    Finish,
    Found,
    Instruction,
    Look,
    LookAt,
    Looked,
    Ranked,
    Room,
    Sight,
    Stop,
    Submit,
    WalkEnded,
)
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.schedule import Rank
from fsxwarm.model.warming import Warming
from unit.test_warming_random_orders import COLD, Run


def entries(first: int, count: int, size: int = 10**6) -> list[Entry]:
    base = 0x200000402 << 24
    return [Entry(b"/f/%d" % n, 7, base + n, size, 0, 1, 1, 1, 1, 0, 0o644) for n in range(first, first + count)]


class Desk:
    """Answers looks at once, for files that are all cold, and keeps what is asked for until told that it ended."""

    def __init__(self, **policy: object) -> None:
        self.machine = Warming(Policy(WindowPolicy(fixed=50), stat_settles=False, **policy))  # type: ignore[arg-type]
        self.now = 0.0
        self.submits: list[Submit] = []
        self.finished: list[Finish] = []
        self.warm: set[bytes] = set()
        self.gone: set[bytes] = set()
        self.also: tuple[Found, bytes] | None = None
        """What is found right before a name is looked at."""

    def tell(self, event: object) -> None:
        self._carry_out(self.machine.handle(event, self.now))  # type: ignore[arg-type]
        self.machine.validate()

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, LookAt):
                if self.also is not None and self.also[1] in {e.path for e in instruction.files}:
                    found, self.also = self.also[0], None
                    self.tell(found)
                self.tell(Looked(instruction.how, {e.key: self._sight(instruction.how, e) for e in instruction.files},
                                 self.now))  # fmt: skip
            elif isinstance(instruction, Submit):
                self.submits.append(instruction)
                self.tell(Answered(instruction.request, 0))
            elif isinstance(instruction, Finish):
                self.finished.append(instruction)

    def _sight(self, how: Look, entry: Entry) -> Sight:
        if entry.path in self.gone:
            return Sight(trouble=Trouble(entry.path, 2))
        flags = COLD if entry.path not in self.warm else Flags.EXISTS | Flags.ARCHIVED
        return Sight(flags=None if how is Look.ACTION else flags, action=None if how is Look.STATE else IDLE)

    def asked(self) -> list[bytes]:
        return [entry.path for submit in self.submits for entry in submit.files]


def test_a_new_job_of_high_priority_overtakes_within_one_batch() -> None:
    desk = Desk(lookahead=2000)
    desk.tell(Ranked(1, Rank(1000, 50)))
    desk.tell(Found(entries(0, 2000), job=1))
    assert desk.machine.appetite == 50
    desk.tell(Ranked(2, Rank(1000, 90)))
    assert desk.machine.appetite_of(2) > 0
    desk.tell(Found(entries(5000, 20), job=2))
    desk.tell(WalkEnded(2))
    urgent = {e.path for e in entries(5000, 20)}
    for _ in range(2):  # what was in flight ends; the next batch brings them, or the one after what was ready
        desk.warm |= set(desk.asked())
        desk.now += 700.0
        desk.tell(WalkEnded(9))
    assert urgent <= set(desk.asked()[:150])


def test_a_file_that_two_jobs_want_is_asked_for_once_and_settles_for_both() -> None:
    desk = Desk()
    some = entries(0, 10)
    desk.tell(Found(some, job=1))
    desk.tell(Found(some, job=2))
    desk.tell(WalkEnded(1))
    desk.tell(WalkEnded(2))
    desk.warm |= {e.path for e in some}
    desk.now += 700.0
    desk.tell(WalkEnded(1))
    assert len(desk.asked()) == 10
    assert all(finish.jobs == {1, 2} for finish in desk.finished)
    assert len(desk.finished) == 10


@pytest.mark.parametrize("flown", [False, True], ids=["before it is asked for", "while it is in flight"])
def test_a_name_that_goes_takes_the_file_from_nobody_who_knows_another(*, flown: bool) -> None:
    """The first to find a file may move it, or hold a hard link that he removes."""
    desk = Desk()
    (one,) = entries(0, 1)
    if not flown:
        desk.gone.add(one.path)
        desk.also = (Found([one._replace(path=b"/f/other")], job=2), one.path)
    desk.tell(Found([one], job=1))
    if flown:
        desk.tell(Found([one._replace(path=b"/f/other")], job=2))
        desk.gone.add(one.path)
    for number in (1, 2):
        desk.tell(WalkEnded(number))
    for _ in range(20):
        desk.warm |= set(desk.asked()) | {b"/f/other"} if desk.asked() else set()
        desk.now += 60.0
        desk.tell(WalkEnded(1))
    assert [(finish.outcome, finish.jobs) for finish in desk.finished] == [(Outcome.RESTORED, {1, 2})]
    assert desk.finished[0].entry.path == b"/f/other"
    assert desk.asked() == [one.path if flown else b"/f/other"]


def test_cancelling_one_job_leaves_the_others_files_and_its_own_that_are_at_fsx() -> None:
    desk = Desk()
    desk.tell(Found(entries(0, 100), job=1))
    desk.tell(Found(entries(60, 100), job=2))
    asked = set(desk.asked())
    desk.tell(Stop(Reason.INTERRUPTED, job=1))
    cancelled = {finish.entry.path for finish in desk.finished}
    assert cancelled == {e.path for e in entries(0, 60)} - asked
    assert desk.machine.in_flight == len(asked)
    desk.tell(WalkEnded(2))
    for _ in range(10):
        desk.warm |= set(desk.asked())
        desk.now += 700.0
        desk.tell(WalkEnded(2))
    assert desk.machine.idle
    restored = {f.entry.path for f in desk.finished if f.outcome is Outcome.RESTORED and 2 in f.jobs}
    assert restored == {e.path for e in entries(60, 100)}


def test_a_file_nobody_wants_any_more_is_not_asked_for_again() -> None:
    desk = Desk()
    desk.tell(Found(entries(0, 5), job=1))
    desk.tell(WalkEnded(1))
    desk.tell(Stop(Reason.INTERRUPTED, job=1))
    assert not desk.machine.idle
    for _ in range(20):  # its restore has failed: no action, and still released
        desk.now += 700.0
        desk.tell(WalkEnded(1))
    assert desk.machine.idle
    assert len(desk.asked()) == 5
    assert all(not finish.jobs for finish in desk.finished)


def test_a_file_wanted_anew_before_its_cancelled_request_came_back_is_the_same_file() -> None:
    desk = Desk()
    desk.tell(Found(entries(0, 5), job=1))
    desk.tell(WalkEnded(1))
    desk.tell(Stop(Reason.INTERRUPTED, job=1))
    desk.tell(Found(entries(0, 5), job=2))
    desk.tell(WalkEnded(2))
    desk.warm |= {e.path for e in entries(0, 5)}
    desk.now += 700.0
    desk.tell(WalkEnded(2))
    assert len(desk.asked()) == 5
    assert [finish.jobs for finish in desk.finished] == [{2}] * 5


def test_a_file_system_that_was_full_is_open_again_once_there_is_room() -> None:
    desk = Desk()
    desk.tell(Room(7, 10))
    desk.tell(Found(entries(0, 3), job=1))
    assert [finish.reason for finish in desk.finished] == [Reason.NO_ROOM] * 3
    desk.tell(Room(7, 100))
    desk.tell(Found(entries(3, 1), job=1))
    assert len(desk.finished) == 4
    desk.tell(Room(7, 10**9))
    desk.tell(Found(entries(0, 3), job=2))
    desk.tell(WalkEnded(2))
    assert len(desk.asked()) == 3


class ManyJobs(Run):
    """Several jobs find parts of the same files, and some of them leave."""

    def go_with(self, jobs: int) -> None:
        everything = list(self.fsx.entries.values())
        self.left: set[int] = set()
        for job in range(1, jobs + 1):
            self.tell(Ranked(job, Rank(self.rng.randint(1000, 1002), self.rng.randint(0, 100))))
            self.tell(Found([entry for entry in everything if (entry.ino + job) % 3], job=job))
            for _ in range(self.rng.randint(0, 20)):
                self.step()
            if self.rng.random() < 0.4:
                leaving = self.rng.randint(1, job)
                self.left.add(leaving)
                self.tell(Stop(Reason.INTERRUPTED, job=leaving))
        for job in range(1, jobs + 1):
            self.tell(WalkEnded(job))
        for _ in range(60_000):
            if self.machine.idle:
                return
            self.step()
        raise AssertionError("not settled")

    def tell(self, event: object) -> None:
        if isinstance(event, Found):  # a file may be wanted anew after it has settled
            self.finished.clear()
        before = set(self.finished)
        super().tell(event)  # type: ignore[arg-type]
        assert all(self.finished[key].jobs.isdisjoint(self.left) for key in self.finished.keys() - before)


@given(seed=st.integers(0, 2**32), jobs=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_with_jobs_that_come_and_go_no_promise_is_broken(seed: int, jobs: int) -> None:
    ManyJobs(seed).go_with(jobs)


@pytest.mark.parametrize("outcome", [Reason.NO_ROOM, Reason.INTERRUPTED])
def test_a_job_that_leaves_tells_why(outcome: Reason) -> None:
    desk = Desk()
    desk.tell(Room(7, 10**6))
    desk.tell(Found(entries(0, 5), job=1))
    desk.tell(Stop(outcome, job=1))
    assert {finish.reason for finish in desk.finished} == {outcome}
