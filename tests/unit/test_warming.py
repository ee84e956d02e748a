"""The warming machine, case by case: what it is told, what it wants done."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from fsxwarm.model.entry import Entry, Key, Trouble
from fsxwarm.model.hsm import IDLE, WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.model.messages import (
    Answered,
    Cancel,
    Cancelled,
    Event,
    Finish,
    Found,
    Full,
    Instruction,
    Look,
    LookAt,
    Looked,
    Overdue,
    Room,
    Say,
    Sight,
    Stale,
    Stop,
    Submit,
    Tick,
    WalkEnded,
    Word,
)
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.warming import Warming

COLD = Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED
WARM = Flags.EXISTS | Flags.ARCHIVED
WAITING = Action(Verb.RESTORE)
RUNNING = Action(Verb.RESTORE, running=True, moved=10)
WEDGED = Action(Verb.RESTORE, running=True, moved=WEDGED_MOVED)
FIRST_INO = 0x200000402 << 24


def entry(number: int, size: int = 10_000, mdt: int = 0) -> Entry:
    ino = FIRST_INO + (mdt << 54) + number
    return Entry(b"/fsx/%d" % number, 9, ino, size, 0, 1, 1, 1, 1, 0, 0o644)


class Bench:
    """A machine on the bench: every look is answered by `sight`, requests only when the test says so."""

    def __init__(self, **policy: object) -> None:
        window = WindowPolicy(fixed=policy.pop("window", 100))  # type: ignore[arg-type]
        self.machine = Warming(Policy(window, **policy))  # type: ignore[arg-type]
        self.now = 0.0
        self.flags: dict[Key, Flags] = {}
        self.action: dict[Key, Action] = {}
        self.trouble: dict[Key, int] = {}
        self.submits: list[Submit] = []
        self.cancels: list[Cancel] = []
        self.finished: dict[bytes, Finish] = {}
        self.words: list[Word] = []
        self.looks: list[LookAt] = []
        self.stat_proves = True
        self.hangs: Callable[[LookAt], bool] = lambda _: False

    def sight(self, how: Look, key: Key) -> Sight:
        if key in self.trouble and how is not Look.RELEASED:
            return Sight(trouble=Trouble(b"", self.trouble[key]))
        flags, action = self.flags.get(key, COLD), self.action.get(key, IDLE)
        match how:
            case Look.STATE:
                return Sight(flags=flags)
            case Look.ACTION:
                return Sight(action=action)
            case Look.BOTH:
                return Sight(flags=flags, action=action, resident=None if flags.released else self.stat_proves)
            case Look.STAT:
                return Sight(resident=self.stat_proves and not flags.released)
            case Look.RELEASED:
                return Sight(resident=not flags.released)

    def tell(self, event: Event) -> None:
        queue: list[Instruction] = self.machine.handle(event, self.now)
        while queue:
            instruction = queue.pop(0)
            match instruction:
                case LookAt():
                    self.looks.append(instruction)
                    if self.hangs(instruction):
                        continue
                    sights = {e.key: self.sight(instruction.how, e.key) for e in instruction.files}
                    queue += self.machine.handle(Looked(instruction.how, sights, self.now), self.now)
                case Submit():
                    self.submits.append(instruction)
                case Cancel():
                    self.cancels.append(instruction)
                case Finish():
                    assert instruction.entry.path not in self.finished
                    self.finished[instruction.entry.path] = instruction
                case Say():
                    self.words.append(instruction.word)
        if len(self.machine._book.files) < 200:
            self.machine.validate()

    def want(self, entries: Iterable[Entry]) -> None:
        self.tell(Found(list(entries)))
        self.tell(WalkEnded())

    def take_all(self) -> list[Submit]:
        """Have all requests made so far taken; their files show as waiting."""
        taken, self.submits = self.submits, []
        for submit in taken:
            for file in submit.files:
                self.action[file.key] = WAITING
            self.tell(Answered(submit.request, 0))
        return taken

    def take_all_as_they_are(self) -> None:
        """Have all requests made so far taken; what their files show is the test's."""
        taken, self.submits = self.submits, []
        for submit in taken:
            self.tell(Answered(submit.request, 0))

    def pass_time(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + seconds
        while self.now < end and not until():
            self.now = min(end, max(self.machine.wake_at(self.now), self.now + 0.001))
            self.tell(Tick())

    def outcome(self, number: int) -> Outcome:
        return self.finished[b"/fsx/%d" % number].outcome

    def reason(self, number: int) -> Reason | None:
        return self.finished[b"/fsx/%d" % number].reason


def test_a_cold_file_is_looked_at_asked_for_watched_and_restored() -> None:
    bench = Bench()
    bench.want([entry(1)])
    assert [look.how for look in bench.looks] == [Look.STATE, Look.ACTION]
    assert [file.path for file in bench.submits[0].files] == [b"/fsx/1"]
    bench.take_all()
    assert bench.machine.in_flight == 1
    bench.pass_time(3)
    assert not bench.finished
    bench.flags[entry(1).key] = WARM
    bench.action[entry(1).key] = IDLE
    bench.pass_time(1)
    assert bench.outcome(1) is Outcome.RESTORED
    assert bench.machine.idle
    assert {look.how for look in bench.looks[2:]} == {Look.STAT}


def test_older_clients_are_polled_by_state_never_by_stat() -> None:
    bench = Bench(stat_settles=False)
    bench.want([entry(1)])
    bench.take_all()
    bench.pass_time(3)
    bench.flags[entry(1).key] = WARM
    bench.pass_time(3)
    assert bench.outcome(1) is Outcome.RESTORED
    assert Look.STAT not in {look.how for look in bench.looks}


def test_tiny_files_are_polled_by_state_because_a_stat_proves_nothing() -> None:
    bench = Bench()
    bench.want([entry(1, size=0), entry(2, size=512)])
    bench.take_all()
    bench.flags = {entry(1).key: WARM, entry(2).key: WARM}
    bench.pass_time(3)
    assert bench.outcome(1) is bench.outcome(2) is Outcome.RESTORED
    assert Look.STAT not in {look.how for look in bench.looks}


def test_a_size_whose_stat_never_proves_anything_is_looked_at_by_flags_after_a_while() -> None:
    bench = Bench(window=1)
    bench.want([entry(number) for number in range(12)])
    waits = []
    bench.stat_proves = False
    while not bench.machine.idle:
        began, (submit,) = bench.now, bench.take_all()
        key = submit.files[0].key
        bench.flags[key], bench.action[key] = WARM, IDLE
        bench.pass_time(60, until=lambda: bool(bench.submits) or bench.machine.idle)
        waits.append(bench.now - began)
    assert max(waits[-3:]) < min(waits[:3])


def test_late_files_that_have_just_become_resident_are_no_reason_to_distrust_stat() -> None:
    bench = Bench(window=1)
    bench.want([entry(number) for number in range(30)])
    plain = bench.sight

    def just_in_time(how: Look, key: Key) -> Sight:
        if how is Look.BOTH:
            bench.flags[key], bench.action[key] = WARM, IDLE
        return plain(how, key)

    bench.sight = just_in_time  # type: ignore[method-assign]  # the world changes right before a late file is asked after
    while not bench.machine.idle:
        bench.take_all()
        bench.looks.clear()
        bench.pass_time(60, until=lambda: bool(bench.submits) or bench.machine.idle)
        assert {Look.STAT, Look.BOTH} <= {look.how for look in bench.looks}


def test_files_that_are_late_are_watched_while_others_are_asked_after() -> None:
    bench = Bench(window=2000)
    bench.want([entry(number) for number in range(2000)])
    for submit in bench.take_all():
        for file in submit.files:
            bench.action[file.key] = Action(Verb.RESTORE, running=True, moved=0)  # so that none is known to wait
    bench.pass_time(10.3)
    for number in range(2000):
        bench.flags[entry(number).key] = WARM
    bench.pass_time(1)
    assert len(bench.finished) == 2000


def test_one_in_five_is_watched_until_it_ends_which_tells_of_those_asked_for_before() -> None:
    bench = Bench(window=100)
    bench.want([entry(number) for number in range(300)])
    asked = [file.key for submit in bench.take_all() for file in submit.files]
    bench.looks.clear()

    def statted() -> set[Key]:
        return {file.key for look in bench.looks if look.how is Look.STAT for file in look.files}

    bench.pass_time(0.5)
    scouts = [place for place, key in enumerate(asked) if key in statted()]
    assert len(scouts) == 20
    news = scouts[10]
    bench.flags[asked[news]] = WARM
    bench.pass_time(0.11)
    assert statted() == set(asked[:news]) | {asked[place] for place in scouts}
    assert len(bench.finished) == 1
    for key in asked:
        bench.flags[key] = WARM
    bench.pass_time(0.2)
    assert set(asked[: scouts[-1] + 1]) == {finish.entry.key for finish in bench.finished.values()}


def test_what_ends_tells_nothing_of_much_larger_files() -> None:
    bench = Bench(window=100)
    sizes = [10_000 if number % 2 else 10_000_000 for number in range(300)]
    bench.want([entry(number, size=size) for number, size in enumerate(sizes)])
    asked = [file for submit in bench.take_all() for file in submit.files]
    bench.pass_time(0.3)
    bench.looks.clear()
    for file in asked:
        if file.size == 10_000:
            bench.flags[file.key] = WARM
    bench.pass_time(0.3)
    looked_at = {file.key for look in bench.looks for file in look.files}
    assert len([file for file in asked if file.size == 10_000 and file.key in looked_at]) > 40
    assert len([file for file in asked if file.size != 10_000 and file.key in looked_at]) <= 10, "their scouts"


def test_the_last_are_all_watched() -> None:
    bench = Bench(window=100)
    bench.want([entry(number) for number in range(100)])
    bench.take_all()
    bench.looks.clear()
    bench.pass_time(0.2)
    assert len({file.path for look in bench.looks for file in look.files}) == 100


def test_where_few_are_in_flight_all_are_watched() -> None:
    bench = Bench(window=30)
    bench.want([entry(number) for number in range(30)])
    bench.take_all()
    bench.looks.clear()
    bench.pass_time(0.2)
    assert {file.path for look in bench.looks for file in look.files} == {b"/fsx/%d" % number for number in range(30)}


def test_without_news_of_others_a_file_is_looked_at_when_its_time_has_come() -> None:
    bench = Bench(window=100)
    bench.want([entry(number) for number in range(300)])
    first = bench.take_all()[0].files[0].key
    bench.flags[first] = WARM
    bench.pass_time(0.9)
    assert not bench.finished
    bench.pass_time(0.2)
    assert [finish.entry.key for finish in bench.finished.values()] == [first]


def test_the_window_is_never_exceeded_and_requests_hold_at_most_fifty() -> None:
    bench = Bench(window=150)
    bench.want([entry(number) for number in range(500)])
    assert [len(submit.files) for submit in bench.submits] == [50, 50, 50]
    for submit in bench.take_all():
        for file in submit.files:
            bench.flags[file.key] = WARM
            bench.pass_time(0.5)
            assert bench.machine.in_flight <= 150
    assert {len(submit.files) for submit in bench.submits} == {50}


def test_each_metadata_target_has_a_window_of_its_own() -> None:
    bench = Bench(window=10)
    bench.want([entry(number, mdt=number % 2) for number in range(100)])
    assert [len(submit.files) for submit in bench.submits] == [10, 10]
    assert len(bench.machine.lanes) == 2


@pytest.mark.parametrize(
    ("flags", "outcome", "reason"),
    [
        (WARM, Outcome.RESIDENT, None),
        (Flags(0), Outcome.RESIDENT, None),
        (WARM | Flags.DIRTY, Outcome.RESIDENT, None),
        (COLD | Flags.LOST, Outcome.BLOCKED, Reason.LOST),
        (COLD | Flags.DIRTY, Outcome.BLOCKED, Reason.DIRTY),
        (Flags.RELEASED | Flags.EXISTS, Outcome.BLOCKED, Reason.NOT_ARCHIVED),
        (COLD | Flags(0x100), None, None),
        (COLD | Flags.NORELEASE, None, None),
    ],
)
def test_the_flags_decide_who_is_asked_for(flags: Flags, outcome: Outcome | None, reason: Reason | None) -> None:
    bench = Bench()
    bench.flags[entry(1).key] = flags
    bench.want([entry(1)])
    assert bool(bench.submits) is (outcome is None)
    if outcome is not None:
        assert (bench.outcome(1), bench.reason(1)) == (outcome, reason)


def test_what_somebody_else_has_in_flight_is_watched_and_never_asked_for() -> None:
    bench = Bench()
    bench.action[entry(1).key] = RUNNING
    bench.want([entry(1)])
    bench.pass_time(300)
    assert not bench.submits
    bench.flags[entry(1).key] = WARM
    bench.pass_time(2)
    assert bench.outcome(1) is Outcome.RESTORED
    assert bench.finished[b"/fsx/1"].attempts == 0


def test_when_somebody_elses_restore_fails_it_is_our_turn() -> None:
    bench = Bench()
    bench.action[entry(1).key] = RUNNING
    bench.want([entry(1)])
    bench.pass_time(5)
    bench.action[entry(1).key] = IDLE
    bench.pass_time(60, until=lambda: bool(bench.submits))
    assert [file.path for file in bench.submits[0].files] == [b"/fsx/1"]


def test_no_action_and_still_released_is_a_failed_attempt_not_a_success() -> None:
    bench = Bench(attempts=3)
    bench.want([entry(1)])
    for _ in range(3):
        assert not bench.finished
        assert len(bench.take_all()) == 1
        bench.action[entry(1).key] = IDLE
        bench.pass_time(120, until=lambda: bool(bench.submits or bench.finished))
    assert (bench.outcome(1), bench.reason(1)) == (Outcome.FAILED, Reason.RESTORE_FAILED)
    assert bench.finished[b"/fsx/1"].attempts == 3


def seconds_of_waves(bench: Bench, waves: int) -> list[float]:
    """How long each wave of files in flight took, none of which is ever restored."""
    seconds = []
    for _ in range(waves):
        began = bench.now
        bench.take_all_as_they_are()
        bench.pass_time(60, until=lambda: bool(bench.submits) or bench.machine.idle)
        seconds.append(bench.now - began)
    return seconds


def test_the_more_restores_fail_the_sooner_those_in_flight_are_asked_after() -> None:
    bench = Bench(window=10, attempts=1)
    bench.want([entry(number) for number in range(200)])
    seconds = seconds_of_waves(bench, 20)
    assert len(bench.finished) == 200
    assert seconds[0] > 9
    assert max(seconds[-5:]) < 2


def test_a_refused_batch_loses_only_its_culprit() -> None:
    """The server queues what comes before the refused file; the message names another, so looking decides."""
    bench = Bench()
    bench.want([entry(number) for number in range(50)])
    (submit,) = bench.submits
    bench.submits = []
    for file in submit.files[:20]:
        bench.action[file.key] = WAITING
    bench.tell(Answered(submit.request, 1, "Cannot send HSM request (use of /fsx/0): Operation not permitted"))
    assert bench.machine.in_flight - sum(len(s.files) for s in bench.submits) == 20
    alone, *others = bench.submits
    assert [file.path for file in alone.files] == [b"/fsx/20"]
    assert [file.path for other in others for file in other.files] == [b"/fsx/%d" % number for number in range(21, 50)]
    bench.tell(Answered(alone.request, 1, "Operation not permitted"))
    assert (bench.outcome(20), bench.reason(20)) == (Outcome.FAILED, Reason.REFUSED)
    for other in others:
        for file in other.files:
            bench.action[file.key] = WAITING
        bench.tell(Answered(other.request, 0))
    assert bench.machine.in_flight == 49


def test_a_file_lost_between_look_and_request_is_named_by_its_flags() -> None:
    bench = Bench()
    bench.want([entry(number) for number in range(3)])
    (submit,) = bench.submits
    bench.submits = []
    bench.action[entry(0).key] = WAITING
    bench.flags[entry(1).key] = COLD | Flags.LOST
    bench.tell(Answered(submit.request, 1))
    assert bench.reason(1) is Reason.LOST
    assert [file.path for submit in bench.submits for file in submit.files] == [b"/fsx/2"]


def test_a_file_that_vanished_from_a_batch_costs_the_others_nothing() -> None:
    bench = Bench()
    bench.want([entry(number) for number in range(5)])
    (submit,) = bench.submits
    bench.submits = []
    bench.trouble[entry(3).key] = 2
    bench.tell(Answered(submit.request, 2, "Cannot stat /fsx/3: No such file or directory"))
    assert bench.outcome(3) is Outcome.VANISHED
    asked_again = {file.path for submit in bench.submits for file in submit.files}
    assert asked_again == {b"/fsx/0", b"/fsx/1", b"/fsx/2", b"/fsx/4"}


def test_a_single_file_that_the_tool_cannot_ask_for_fails_after_its_attempts() -> None:
    bench = Bench(attempts=2)
    bench.want([entry(1)])
    for _ in range(2):
        (submit,) = bench.submits
        bench.submits = []
        bench.tell(Answered(submit.request, 22, "All files should be on the same filesystem"))
        bench.pass_time(30, until=lambda: bool(bench.submits or bench.finished))
    assert (bench.outcome(1), bench.reason(1)) == (Outcome.FAILED, Reason.REQUEST_FAILED)
    assert bench.finished[b"/fsx/1"].errno == 22


def test_eagain_pauses_the_asking_and_counts_as_nobodys_attempt() -> None:
    bench = Bench()
    bench.want([entry(number) for number in range(3)])
    for _ in range(10):
        (submit,) = bench.submits
        bench.submits = []
        bench.tell(Answered(submit.request, 11))
        assert not bench.submits, "asked again at once"
        bench.pass_time(600, until=lambda: bool(bench.submits))
    bench.take_all()
    bench.flags = {entry(number).key: WARM for number in range(3)}
    bench.pass_time(1)
    assert all(finish.attempts == 1 for finish in bench.finished.values())
    assert bench.words.count(Word.PAUSED) == 10


def test_a_user_whom_the_server_refuses_everything_is_told_so_after_a_few_files() -> None:
    bench = Bench(window=1, hopeless=20)
    bench.want([entry(number) for number in range(1000)])
    for _ in range(20):
        (submit,) = bench.submits
        bench.submits = []
        bench.tell(Answered(submit.request, 1))
    assert Word.NOT_ALLOWED in bench.words


def test_a_wedged_request_is_cancelled_and_asked_for_again_by_root() -> None:
    bench = Bench(may_cancel=True)
    bench.want([entry(1)])
    bench.take_all()
    bench.action[entry(1).key] = WEDGED
    bench.pass_time(60, until=lambda: bool(bench.cancels))
    assert Word.FILE_WEDGED in bench.words
    bench.tell(Cancelled([entry(1).key], 0))
    bench.pass_time(10)
    assert not bench.submits, "asked again while the action exists"
    bench.action[entry(1).key] = IDLE
    bench.pass_time(10, until=lambda: bool(bench.submits))
    bench.take_all()
    bench.flags[entry(1).key] = WARM
    bench.pass_time(1)
    assert bench.outcome(1) is Outcome.RESTORED
    assert Word.CURED in bench.words


def test_root_cures_what_an_earlier_run_has_left_behind_stuck() -> None:
    bench = Bench(may_cancel=True)
    bench.action = {entry(1).key: WEDGED, entry(2).key: RUNNING}
    bench.want([entry(1), entry(2)])
    bench.pass_time(60, until=lambda: bool(bench.cancels))
    assert [file.path for cancel in bench.cancels for file in cancel.files] == [b"/fsx/1"]
    assert not bench.submits
    bench.tell(Cancelled([entry(1).key], 0))
    bench.action[entry(1).key] = IDLE
    bench.pass_time(10, until=lambda: bool(bench.submits))
    bench.take_all()
    bench.pass_time(400, until=lambda: len(bench.cancels) > 1)  # the other one has not moved for too long, either
    bench.action[entry(2).key] = IDLE
    bench.tell(Cancelled([entry(2).key], 0))
    bench.pass_time(10, until=lambda: bool(bench.submits))
    bench.take_all()
    bench.flags = {entry(1).key: WARM, entry(2).key: WARM}
    bench.pass_time(60)
    assert bench.outcome(1) is bench.outcome(2) is Outcome.RESTORED
    assert [bench.finished[b"/fsx/%d" % number].attempts for number in (1, 2)] == [1, 1]


def test_where_restores_are_quick_a_frozen_one_is_cured_sooner() -> None:
    bench = Bench(may_cancel=True, patience=120.0, cure_patience=300.0)
    bench.want([entry(number) for number in range(30)])
    bench.take_all()
    for number in range(29):
        bench.flags[entry(number).key], bench.action[entry(number).key] = WARM, IDLE
    bench.action[entry(29).key] = Action(Verb.RESTORE, running=True, moved=0)
    bench.pass_time(12)
    lane = next(iter(bench.machine.lanes.values()))
    assert (lane.window.stuck, lane.stalled) == (1, 0)  # others may go past it already
    bench.pass_time(100, until=lambda: Word.FILE_STALLED in bench.words)
    assert (lane.window.stuck, lane.stalled) == (1, 1)
    assert 30 < bench.now < 30 + 12
    bench.pass_time(100, until=lambda: bool(bench.cancels))
    assert 75 < bench.now < 75 + 12


def test_others_go_past_what_is_stuck_but_never_more_than_the_window_again() -> None:
    bench = Bench(window=None)
    bench.want([entry(number) for number in range(500)])
    asked: list[Entry] = []
    for _ in range(600):
        for submit in bench.submits:
            asked += submit.files
            bench.action |= {file.key: Action(Verb.RESTORE, running=True, moved=0) for file in submit.files}
        bench.take_all_as_they_are()
        bench.pass_time(1)
        if bench.now < 100:
            assert len(asked) == 64
    assert Word.FILE_STALLED in bench.words
    assert 64 < len(asked) == bench.machine.in_flight <= 128
    for file in asked[:70]:
        bench.flags[file.key], bench.action[file.key] = WARM, IDLE
    bench.pass_time(1)
    assert bench.submits


def test_others_go_past_files_whose_request_hangs() -> None:
    bench = Bench(window=None)
    bench.want([entry(number) for number in range(400)])
    hung, *others = bench.submits
    bench.submits = others
    for file in hung.files:
        bench.action[file.key] = IDLE
    for submit in others:
        bench.flags |= {file.key: WARM for file in submit.files}
    bench.take_all_as_they_are()
    bench.pass_time(1)
    bench.tell(Overdue(hung.request))
    lane = next(iter(bench.machine.lanes.values()))
    assert lane.window.stuck == len(hung.files)
    assert lane.window.size == lane.window.moving + len(hung.files)
    bench.tell(Answered(hung.request, 0))
    assert lane.window.stuck == 0


@pytest.mark.parametrize(("together", "held_up"), [(500, 20), (5, 5)])
def test_a_look_that_hangs_holds_up_its_own_files_only(together: int, held_up: int) -> None:
    bench = Bench(window=20, together=together)
    bench.hangs = lambda look: look.how is Look.ACTION and look.files[0].path == b"/fsx/0"
    bench.want([entry(number) for number in range(100)])
    for _ in range(100):
        for submit in bench.submits:
            bench.flags |= {file.key: WARM for file in submit.files}
        bench.take_all_as_they_are()
        bench.pass_time(0.5)
    assert len(bench.finished) == 100 - held_up


def test_room_that_stands_open_while_nothing_comes_is_filled_in_the_end() -> None:
    bench = Bench(window=100)
    bench.want([entry(number) for number in range(200)])
    bench.take_all()
    for number in range(30):
        bench.flags[entry(number).key] = WARM
    bench.pass_time(1.5)
    assert len(bench.finished) == 30
    assert not bench.submits  # half of the window makes a request
    bench.pass_time(4)
    assert [len(submit.files) for submit in bench.submits] == [30]


def test_a_large_file_is_given_time_to_be_moved_before_anybody_asks() -> None:
    bench = Bench()
    bench.want([entry(1, size=8 * 10**9)])
    bench.take_all()
    bench.pass_time(89)
    assert Look.BOTH not in {look.how for look in bench.looks}
    bench.pass_time(2)
    assert Look.BOTH in {look.how for look in bench.looks}


@pytest.mark.parametrize("policy", [{"may_cancel": False}, {"may_cancel": True, "cures": 0}])
def test_a_wedged_request_is_waited_out_where_it_may_not_be_cancelled(policy: dict[str, object]) -> None:
    bench = Bench(**policy)
    bench.want([entry(1)])
    bench.take_all()
    bench.action[entry(1).key] = WEDGED
    bench.pass_time(3600)
    assert not bench.cancels
    assert bench.words.count(Word.FILE_WEDGED) == 1
    bench.action[entry(1).key] = IDLE  # the coordinator's own timeout
    bench.pass_time(300, until=lambda: bool(bench.submits))
    assert len(bench.submits) == 1


def test_frozen_bytes_are_stalled_then_cured_and_growing_bytes_are_left_alone() -> None:
    bench = Bench(may_cancel=True, patience=120.0, cure_patience=300.0)
    bench.want([entry(1), entry(2)])
    bench.take_all()
    bench.action[entry(1).key] = RUNNING
    cancelled_at = None
    for second in range(1000):
        bench.action[entry(2).key] = replace(RUNNING, moved=second)
        bench.pass_time(1)
        if bench.cancels and cancelled_at is None:
            cancelled_at = bench.now
    assert Word.FILE_STALLED in bench.words
    assert cancelled_at is not None
    assert cancelled_at > 300
    assert {file.path for cancel in bench.cancels for file in cancel.files} == {b"/fsx/1"}


def test_a_deep_queue_is_asked_after_sparingly() -> None:
    """The server scans its log for each action look, so one waiting file speaks for all behind it."""
    bench = Bench(window=1000)
    bench.want([entry(number) for number in range(800)])
    bench.take_all()
    bench.looks.clear()
    bench.pass_time(120)
    asked_after = sum(len(look.files) for look in bench.looks if look.how is Look.BOTH)
    assert 50 <= asked_after <= 50 * 120 / 5
    assert bench.machine.in_flight == 800


def test_a_request_that_hangs_costs_its_own_files_only_and_is_never_repeated() -> None:
    bench = Bench(limbo=120.0)
    bench.want([entry(number) for number in range(3)])
    (submit,) = bench.submits
    bench.submits = []
    bench.action[entry(0).key] = WAITING  # queued by this call; 1 is somebody else's and holds it up; 2 is unknown
    bench.action[entry(1).key] = RUNNING
    bench.tell(Overdue(submit.request))
    bench.pass_time(1000)
    assert Word.CALL_HUNG in bench.words
    assert not bench.submits
    assert not bench.finished
    for number in (0, 1):
        bench.flags[entry(number).key] = WARM
        bench.action[entry(number).key] = IDLE
    bench.pass_time(10)
    assert bench.outcome(0) is bench.outcome(1) is Outcome.RESTORED
    bench.action[entry(2).key] = WAITING
    bench.tell(Answered(submit.request, 0))
    bench.flags[entry(2).key] = WARM
    bench.pass_time(2)
    assert bench.outcome(2) is Outcome.RESTORED


def test_a_request_that_hangs_for_ever_lets_the_run_end() -> None:
    bench = Bench(limbo=120.0)
    bench.want([entry(1)])
    bench.tell(Overdue(bench.submits[0].request))
    bench.pass_time(600, until=lambda: bench.machine.idle)
    assert (bench.outcome(1), bench.reason(1)) == (Outcome.FAILED, Reason.HUNG)


def test_a_look_older_than_two_seconds_is_not_trusted() -> None:
    bench = Bench(fresh=2.0)
    bench.want([entry(1)])
    (submit,) = bench.submits
    assert submit.fresh_until == 2.0
    bench.submits = []
    bench.now = 3.0
    bench.tell(Stale(submit.request))
    assert [look.how for look in bench.looks] == [Look.STATE, Look.ACTION, Look.ACTION]
    assert bench.submits[0].fresh_until == 5.0


def test_a_file_without_read_permission_is_settled_by_its_layout_in_requests_of_its_kind() -> None:
    bench = Bench()
    bench.trouble[entry(1).key] = 13
    bench.want([entry(0), entry(1), entry(2)])
    groups = [{file.path for file in submit.files} for submit in bench.submits]
    assert {b"/fsx/1"} in groups
    bench.take_all()
    bench.flags = {entry(number).key: WARM for number in range(3)}
    bench.pass_time(3)
    assert {bench.outcome(number) for number in range(3)} == {Outcome.RESTORED}


def test_space_is_claimed_before_asking_and_what_does_not_fit_is_blocked() -> None:
    bench = Bench()
    bench.tell(Room(9, 25_000))
    bench.want([entry(number) for number in range(4)])
    assert [file.path for submit in bench.submits for file in submit.files] == [b"/fsx/0", b"/fsx/1"]
    assert not bench.finished, "nobody is blocked while bytes are on their way that may explain the lack of room"
    bench.take_all()
    bench.flags = {entry(0).key: WARM, entry(1).key: WARM}
    bench.pass_time(2)
    assert [bench.reason(number) for number in (2, 3)] == [Reason.NO_ROOM] * 2
    assert Word.NO_ROOM in bench.words


def test_full_blocks_only_what_was_not_asked_for() -> None:
    bench = Bench(window=2)
    bench.want([entry(number) for number in range(4)])
    bench.take_all()
    bench.tell(Full(9))
    assert {bench.reason(number) for number in (2, 3)} == {Reason.NO_ROOM}
    bench.flags = {entry(0).key: WARM, entry(1).key: WARM}
    bench.pass_time(2)
    assert bench.outcome(0) is Outcome.RESTORED


def test_a_stop_lets_go_and_says_what_goes_on_at_fsx() -> None:
    bench = Bench(window=2)
    bench.want([entry(number) for number in range(4)])
    bench.take_all()
    bench.tell(Stop(Reason.INTERRUPTED))
    assert {finish.outcome for finish in bench.finished.values()} == {Outcome.CANCELLED}
    assert [bench.finished[b"/fsx/%d" % number].in_flight for number in range(4)] == [True, True, False, False]
    assert bench.machine.idle


def test_a_file_wanted_by_two_jobs_is_asked_for_once() -> None:
    bench = Bench()
    bench.tell(Found([entry(1)], job=1))
    bench.tell(Found([entry(1)], job=2))
    bench.take_all()
    bench.flags[entry(1).key] = WARM
    bench.pass_time(1)
    assert bench.finished[b"/fsx/1"].jobs == {1, 2}


def test_silence_of_the_whole_system_is_told_once_and_so_is_its_end() -> None:
    bench = Bench(system_stall=60.0)
    bench.want([entry(1), entry(2)])
    bench.take_all()
    bench.pass_time(300)
    assert bench.words.count(Word.SYSTEM_STALLED) == 1
    bench.flags[entry(1).key] = WARM
    bench.pass_time(1)
    assert bench.words.count(Word.SYSTEM_MOVES) == 1


def test_looks_that_keep_failing_end_in_a_failure_that_says_so() -> None:
    bench = Bench()
    bench.trouble[entry(1).key] = 5
    bench.want([entry(1)])
    bench.pass_time(60)
    assert (bench.outcome(1), bench.reason(1)) == (Outcome.FAILED, Reason.IO_ERROR)
    assert bench.finished[b"/fsx/1"].errno == 5


def test_a_path_too_long_for_the_kernel_says_so() -> None:
    bench = Bench()
    bench.trouble[entry(1).key] = 36
    bench.want([entry(1)])
    assert bench.reason(1) is Reason.NAME_TOO_LONG


def test_a_cured_file_waits_for_its_turn_and_for_no_older_look() -> None:
    """The cancellation is answered only after a look has seen it work: the look planned on it must be forgotten."""
    bench = Bench(may_cancel=True, window=1)
    bench.want([entry(1), entry(2)])
    bench.take_all()
    bench.action[entry(1).key] = WEDGED
    bench.pass_time(60, until=lambda: bool(bench.cancels))
    bench.tell(Cancelled([entry(1).key], 0))
    bench.pass_time(3)
    bench.action[entry(1).key] = IDLE
    bench.tell(Cancelled([entry(1).key], 0))
    bench.pass_time(30)
    assert [file.path for submit in bench.submits for file in submit.files] == [b"/fsx/1"]


def test_a_file_that_fails_where_there_is_no_room_any_more_waits_for_none() -> None:
    bench = Bench()
    bench.want([entry(1)])
    bench.take_all()
    bench.tell(Room(9, 5))
    bench.tell(Full(9))
    bench.action.clear()
    bench.pass_time(60)
    assert (bench.outcome(1), bench.reason(1)) == (Outcome.BLOCKED, Reason.NO_ROOM)


def test_a_file_that_cannot_be_looked_at_is_not_asked_for_again_after_an_error_that_proves_nothing() -> None:
    """Its request may have been queued before the answer was lost; asked again, it would hang in the kernel."""
    bench = Bench()
    file = entry(1)
    bench.trouble[file.key] = errno.EACCES
    bench.want([file])
    (submit,) = bench.submits
    bench.submits.clear()
    bench.tell(Answered(submit.request, errno.EIO, "Input/output error"))
    bench.pass_time(60)
    assert not bench.submits
    bench.flags[file.key] = WARM
    bench.pass_time(60)
    assert bench.outcome(1) is Outcome.RESTORED


def test_the_last_ones_are_not_left_waiting_for_news_of_others() -> None:
    bench = Bench(window=40, convinced=1)
    first, then, small = range(1, 41), range(41, 80), range(81, 85)
    bench.want([entry(number, size=10**9) for number in first])
    bench.take_all()
    bench.pass_time(60)
    bench.flags = {entry(number).key: WARM for number in first}
    bench.pass_time(5)
    assert len(bench.finished) == 40  # such files take a minute
    bench.want([*(entry(number, size=10**9) for number in then), *(entry(number) for number in small)])
    bench.take_all()
    bench.flags |= {entry(number).key: WARM for number in then[:-1]}
    bench.pass_time(5)
    bench.take_all()
    bench.flags |= {entry(number).key: WARM for number in small}
    bench.pass_time(5)
    assert len(bench.finished) == 82
    bench.flags |= {entry(number).key: WARM for number in then}
    bench.pass_time(1)
    assert bench.machine.idle
