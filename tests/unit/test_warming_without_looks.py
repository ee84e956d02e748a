"""The warming machine where servers skip what is in flight already: no look before asking for the first time."""

from __future__ import annotations

import errno
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.model.hsm import IDLE
from fsxwarm.model.messages import Answered, Look, Overdue, Room
from fsxwarm.model.outcome import Outcome, Reason
from unit.test_warming import RUNNING, WAITING, WARM, Bench, entry
from unit.test_warming_random_orders import Run

DEV = entry(0).dev


def bench(**policy: object) -> Bench:
    return Bench(skip_duplicates=frozenset({DEV}), **policy)


def ways(a_bench: Bench) -> set[Look]:
    return {look.how for look in a_bench.looks}


def test_cold_files_are_asked_for_without_a_look() -> None:
    at = bench(window=100)
    at.want([entry(number) for number in range(100)])
    assert sum(len(submit.files) for submit in at.submits) == 100
    assert Look.ACTION not in ways(at)
    at.take_all()
    at.looks.clear()
    at.flags = {entry(number).key: WARM for number in range(100)}
    at.action.clear()
    at.pass_time(5)
    assert {finish.outcome for finish in at.finished.values()} == {Outcome.RESTORED}
    assert ways(at) == {Look.STAT}


def test_the_window_holds() -> None:
    at = bench(window=70)
    at.want([entry(number) for number in range(500)])
    for _ in range(5):
        at.take_all()
        at.pass_time(1)
    assert not at.submits
    assert at.machine.in_flight == 70


def test_on_another_file_system_files_are_looked_at() -> None:
    at = Bench(skip_duplicates=frozenset({DEV + 1}))
    at.want([entry(1), entry(2)._replace(dev=DEV + 1)])
    asked = [file.path for submit in at.submits for file in submit.files]
    assert sorted(asked) == [b"/fsx/1", b"/fsx/2"]
    assert [[file.path for file in look.files] for look in at.looks if look.how is Look.ACTION] == [[b"/fsx/1"]]


def test_what_somebody_else_has_in_flight_is_asked_for_once_and_waited_for() -> None:
    at = bench()
    at.action[entry(1).key] = RUNNING
    at.want([entry(1)])
    assert len(at.submits) == 1
    at.tell(Answered(at.submits.pop().request, 0))
    for second in range(600):
        at.action[entry(1).key] = replace(RUNNING, moved=20 + second)
        at.pass_time(1)
    assert not at.submits
    at.flags[entry(1).key] = WARM
    at.action[entry(1).key] = IDLE
    at.pass_time(60)
    assert at.outcome(1) is Outcome.RESTORED
    assert at.finished[b"/fsx/1"].attempts == 1


def test_before_it_is_asked_for_again_a_file_is_looked_at() -> None:
    at = bench(attempts=3)
    at.want([entry(1)])
    for _ in range(3):
        assert len(at.take_all()) == 1
        at.looks.clear()
        at.action[entry(1).key] = IDLE
        at.pass_time(120, until=lambda: bool(at.submits or at.finished))
        assert at.finished or Look.ACTION in ways(at)
    assert (at.outcome(1), at.reason(1)) == (Outcome.FAILED, Reason.RESTORE_FAILED)


def test_after_a_refusal_each_file_is_looked_at_and_the_queued_ones_are_not_asked_for_again() -> None:
    at = bench()
    at.want([entry(number) for number in range(3)])
    at.action[entry(0).key] = WAITING
    at.trouble[entry(1).key] = errno.ENOENT
    at.tell(Answered(at.submits.pop().request, errno.ENOENT))
    at.pass_time(30)
    assert at.outcome(1) is Outcome.VANISHED
    assert [[file.path for file in submit.files] for submit in at.submits] == [[b"/fsx/2"]]
    assert Look.ACTION in ways(at)


def test_a_request_that_hangs_is_followed_by_looks() -> None:
    at = bench()
    at.want([entry(1), entry(2)])
    at.tell(Overdue(at.submits.pop().request))
    at.action[entry(1).key] = WAITING
    at.pass_time(20)
    assert Look.BOTH in ways(at)
    assert not at.submits
    assert at.machine.in_flight == 2


def test_an_empty_file_that_is_blocked_with_a_big_one_is_not_asked_for() -> None:
    at = bench()
    at.tell(Room(DEV, 1_000))
    at.want([entry(1, size=0), entry(2, size=1_000_000)])
    assert not at.submits
    assert {at.reason(1), at.reason(2)} == {Reason.NO_ROOM}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_in_any_order_every_file_settles_and_none_is_asked_for_while_in_flight_for_us(seed: int) -> None:
    run = Run(seed, skip_duplicates=frozenset({7}))
    run.fsx.skips = True
    run.go()
    assert set(run.finished) == set(run.fsx.entries)
