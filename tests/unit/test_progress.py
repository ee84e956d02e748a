"""Counting a warming: what is ready, how fast it goes, how long it takes."""

from __future__ import annotations

import pytest

from fsxwarm.model.entry import Entry, Resident
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.progress import Progress
from fsxwarm.model.tally import Tally

JOB = frozenset({0})


def entry(number: int, size: int = 100) -> Entry:
    return Entry(b"/f/%d" % number, 1, number, size, 0, 1, 1, 1, 1, 0, 0o644)


def scanned(*found: Entry | Resident) -> Progress:
    progress = Progress(0.0)
    for item in found:
        progress.scanned_item(item)
        progress.passed(item)
    progress.scan_ended = 1.0
    return progress


def settle(progress: Progress, number: int, outcome: Outcome = Outcome.RESTORED, reason: Reason | None = None) -> None:
    progress.finished(Finish(entry(number), outcome, JOB, reason))


def test_ready_means_the_head_of_the_order_and_not_any_bytes() -> None:
    progress = scanned(*(entry(number) for number in range(10)))
    for number in (9, 8, 7, 1):
        settle(progress, number)
    assert not progress.ready(0.2)
    settle(progress, 0)
    assert progress.ready(0.2)
    assert not progress.ready(0.3)


def test_files_proved_resident_count_towards_ready_at_their_place() -> None:
    progress = scanned(Resident(3, 300), entry(1), Resident(6, 600))
    assert progress.ready(0.3)
    assert not progress.ready(0.31)
    settle(progress, 1)
    assert progress.ready(1.0)


def test_nothing_is_ready_before_the_walk_has_ended() -> None:
    progress = scanned(Resident(3, 300))
    progress.scan_ended = None
    assert not progress.ready(0.1)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.BLOCKED, Outcome.CANCELLED])
def test_a_hole_in_the_order_is_never_ready(outcome: Outcome) -> None:
    progress = scanned(*(entry(number) for number in range(10)))
    for number in range(10):
        settle(progress, number, outcome if number == 3 else Outcome.RESTORED, Reason.LOST if number == 3 else None)
    assert progress.ready(0.3)
    assert not progress.ready(0.4)


def test_a_vanished_file_is_no_hole() -> None:
    progress = scanned(entry(0), entry(1))
    settle(progress, 0, Outcome.VANISHED)
    settle(progress, 1)
    assert progress.ready(1.0)


def test_the_time_left_is_the_later_of_files_and_bytes() -> None:
    progress = scanned(*(entry(number, 1000) for number in range(100)), entry(1000, 10**6))
    for second in range(1, 11):
        settle_sized(progress, second)
        progress.sample(float(second))
    assert progress.rate() == (1.0, 1000.0)
    assert progress.remaining == Tally(91, 90 * 1000 + 10**6)
    assert progress.eta() == pytest.approx((90 * 1000 + 10**6) / 1000)


def settle_sized(progress: Progress, number: int) -> None:
    progress.finished(Finish(entry(number, 1000), Outcome.RESTORED, JOB))


def test_without_a_rate_the_time_left_is_unknown() -> None:
    progress = scanned(entry(1))
    assert progress.eta() is None
    settle(progress, 1)
    assert progress.eta() == 0.0
