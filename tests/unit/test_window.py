"""The adaptive window: its promises in any order of events, and what it reaches in a small model of FSx."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fsxwarm.model.policy import WindowPolicy
from fsxwarm.model.window import Window
from queueing import Client, Facility, Model, warm

MB = 1_000_000
GB = 1_000 * MB

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("submitted"), st.integers(1, 50)),
        st.tuples(st.just("settled"), st.integers(0, 2**40), st.floats(0, 1e5)),
        st.tuples(st.just("refused")),
        st.tuples(st.just("tick"), st.booleans()),
        st.tuples(st.just("time"), st.floats(0, 1e4)),
    ),
    max_size=200,
)
POLICIES = st.builds(
    lambda floor, more, most, fixed: WindowPolicy(floor + more, floor, floor + more + most, fixed),
    st.integers(1, 20),
    st.integers(0, 200),
    st.integers(0, 5000),
    st.none() | st.integers(1, 500),
)


@given(POLICIES, EVENTS)
@example(WindowPolicy(), [("submitted", 1), ("time", 1e-320), ("settled", 1, 0.0), ("tick", True)])
def test_stays_within_its_bounds_whatever_happens(policy: WindowPolicy, events: list[tuple[object, ...]]) -> None:
    now, in_flight, paused = 0.0, 0, 0.0
    window = Window(policy, now)
    for what, *more in events:
        match what, more:
            case "submitted", [int(files)]:
                in_flight += files
                window.submitted(files, in_flight, now)
            case "settled", [int(nbytes), float(took)] if in_flight:
                in_flight -= 1
                window.settled(nbytes=nbytes, took=min(took, now), in_flight=in_flight, now=now)
            case "refused", _:
                window.refused(now)
            case "tick", [bool(hungry)]:
                window.tick(in_flight, hungry, now)
            case "time", [float(seconds)]:
                now += seconds
        if policy.fixed is None:
            assert policy.floor <= window.size <= policy.ceiling
        else:
            assert window.size == policy.fixed
        assert window.paused_until >= paused
        paused = window.paused_until
        for rate in (window.rate_files, window.rate_bytes, window.service_time):
            assert math.isfinite(rate)
            assert rate >= 0
        assert window.limit in {"files/s", "bytes/s", "unknown"}


def test_refusals_pause_longer_each_time_and_ask_for_less() -> None:
    window = Window(WindowPolicy(), 100.0)
    pauses, sizes = [], []
    now = 100.0
    for _ in range(7):
        window.refused(now)
        window.refused(now)  # the other requests of the same moment are no news
        pauses.append(window.paused_until - now)
        sizes.append(window.size)
        now = window.paused_until
    assert pauses == [2, 4, 8, 16, 32, 60, 60]
    assert sizes == [32, 16, 8, 4, 4, 4, 4]


def test_pauses_are_short_again_once_a_file_settled() -> None:
    window = Window(WindowPolicy(), 0.0)
    window.refused(0.0)
    window.refused(10.0)
    window.settled(nbytes=1, took=1.0, in_flight=3, now=20.0)
    window.refused(30.0)
    assert window.paused_until == 32.0


def test_a_window_that_is_not_the_limit_does_not_grow() -> None:
    window = Window(WindowPolicy(), 0.0)
    now = 0.0
    for _ in range(500):
        window.submitted(8, 8, now)
        now += 1.0
        for left in reversed(range(8)):
            window.settled(nbytes=MB, took=1.0, in_flight=left, now=now)
        window.tick(0, hungry=False, now=now)
    assert window.size == 64


def mix(files: int) -> list[int]:
    chance = random.Random(1)
    return [int(min(2e9, max(4096, chance.lognormvariate(16, 2.2)))) for _ in range(files)]


ROWS = {
    "4 agents, 20 ms, 10 MB": (Facility(4, 0.02), [10 * MB] * 3000),
    "4 agents, 200 ms, 2 GB": (Facility(4, 0.2), [2 * GB] * 300),
    "4 agents, 2 s, 100 KB": (Facility(4, 2.0), [MB // 10] * 400),
    "4 agents, 200 ms, mix": (Facility(4, 0.2), mix(1000)),
    "32 agents, 200 ms, 100 KB": (Facility(32, 0.2), [MB // 10] * 12_000),
    "32 agents, 2 s, mix": (Facility(32, 2.0), mix(2500)),
    "256 agents, 2 s, 10 MB": (Facility(256, 2.0), [10 * MB] * 18_000),
    "32 agents sharing 1 GB/s, 2 GB": (Facility(32, 0.02, total=1e9), [2 * GB] * 900),
    "32 agents sharing what one could use, 2 GB": (Facility(32, 0.02, stream=3.2e9, total=3.2e9), [2 * GB] * 1300),
    "half the agents leave": (Facility(32, 2.0, changes=((200, 16),)), [10 * MB] * 4000),
    "as many agents come": (Facility(16, 2.0, changes=((200, 32),)), [10 * MB] * 4000),
    "stopped for 60 s": (Facility(32, 2.0, stopped=(100, 160)), [10 * MB] * 4000),
}


@pytest.mark.parametrize("row", ROWS)
def test_reaches_what_the_best_fixed_window_does(row: str) -> None:
    facility, sizes = ROWS[row]
    fixed = {window: warm(facility, sizes, fixed=window).ended for window in (4, 6, 10, 20, 48, 80, 128, 320)}
    quickest = min(fixed.values())
    best = min(window for window, ended in fixed.items() if ended <= quickest / 0.985)
    client = warm(facility, sizes)
    assert quickest / client.ended >= 0.92
    assert client.mean_in_flight(0.4 * client.ended, 0.95 * client.ended) <= 2.5 * best


@pytest.mark.parametrize(("agents", "latency"), [(32, 2.0), (32, 0.2), (128, 2.0)])
@pytest.mark.parametrize("late", [0.0, 40.0])
def test_two_clients_share(agents: int, latency: float, late: float) -> None:
    files = int(300 * agents / (latency + 0.1))
    one, other = (Client(Window(WindowPolicy(), 0.0), [10 * MB] * files, begins) for begins in (0.0, late))
    end = Model(Facility(agents, latency), [one, other]).run()
    assert end <= 1.1 * 2 * files * (latency + 0.1) / agents
    both_by = min(one.ended, other.ended)
    shares = [client.seen_by(both_by) - client.seen_by(late + 50) for client in (one, other)]
    assert max(shares) <= 2 * min(shares)
    assert one.mean_in_flight(late + 50, both_by) + other.mean_in_flight(late + 50, both_by) <= 4 * agents


def test_a_stop_neither_collapses_nor_blows_up_the_window() -> None:
    client = warm(Facility(32, 2.0, stopped=(100, 160)), [10 * MB] * 4000)
    during = [size for when, _, size, _ in client.trace if 110 < when < 160]
    after = [size for when, _, size, _ in client.trace if 160 <= when < 200]
    assert min(during) >= 16
    assert max(during) <= 160
    assert min(after) >= 16


def test_files_that_are_stuck_for_good_do_not_stop_the_others() -> None:
    window = Window(WindowPolicy(), 0.0)
    now, in_flight = 0.0, 0
    while in_flight < window.size:  # 64 restores that never end
        in_flight += 1
    window.submitted(in_flight, in_flight, now)
    window.settled(nbytes=MB, took=0.1, in_flight=in_flight, now=0.5)
    passed = 0
    for _ in range(600):
        now += 1.0
        while in_flight < window.size:
            in_flight += 1
            window.submitted(1, in_flight, now)
            in_flight -= 1
            window.settled(nbytes=MB, took=0.1, in_flight=in_flight, now=now + 0.1)
            passed += 1
            if passed % 50 == 0:
                break
        window.tick(in_flight, hungry=True, now=now + 0.2)
    assert passed > 100


def test_others_go_past_what_is_stuck_as_long_as_some_get_through() -> None:
    window = Window(WindowPolicy(start=20), 0.0)
    window.submitted(20, 20, 0.0)
    for number in range(3):
        window.settled(nbytes=MB, took=0.5, in_flight=19 - number, now=0.5)
    window.stuck = 17
    window.tick(17, hungry=True, now=1.0)
    window.stuck = 100  # so many have been asked for, one by one, and are stuck as well
    while_some_come = window.size
    assert while_some_come == window.moving + 100
    window.tick(100, hungry=True, now=10.0)
    assert window.size == 2 * window.moving  # nobody has come for long
    opened = []
    for second in range(11, 200):
        before = window.size
        window.tick(max(100, before), hungry=True, now=float(second))
        opened.append(window.size - before)
    assert 0 < sum(opening > 0 for opening in opened) < 8  # now and then a few, to see whether they get through


@pytest.mark.parametrize(("size", "limit"), [(MB // 10, "files/s"), (2 * GB, "bytes/s")])
def test_tells_which_limit_binds(size: int, limit: str) -> None:
    window = warm(Facility(8, 0.2), [size] * 200).window
    assert window.limit == limit


def test_tells_that_bytes_bind_in_a_mix_and_how_long_files_take() -> None:
    assert warm(Facility(8, 0.02), mix(600)).window.limit == "bytes/s"
    small = warm(Facility(8, 2.0), [MB // 10] * 400).window
    assert 2.0 <= small.service_time <= 2.6
    assert small.rate_files == pytest.approx(4.0, rel=0.3)
    assert small.rate_bytes == pytest.approx(small.rate_files * MB / 10)


def test_nothing_is_claimed_before_anything_was_seen() -> None:
    window = Window(WindowPolicy(), 0.0)
    assert (window.rate_files, window.rate_bytes, window.service_time, window.limit) == (0, 0, 0, "unknown")
