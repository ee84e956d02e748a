"""Whose file is next: fairness between owners, priority within, and each file once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.entry import Entry
from fsxwarm.model.file import File
from fsxwarm.model.schedule import Rank, Turns

ANN, BOB = 1000, 1001


def file(number: int, *jobs: int, size: int = 0) -> File:
    made = File(Entry(b"/f/%d" % number, 7, number, size, 0, 0, 0, 0, 1, 0, 0o644), jobs[0], 50)
    made.wanted_by.update(jobs)
    return made


def waiting(ranks: dict[int, Rank], *files: File) -> Turns[File]:
    turns: Turns[File] = Turns(ranks)
    for each in files:
        turns.put(each)
    return turns


def served(turns: Turns[File], most: int = 10**6) -> list[int]:
    return [turns.pop().key.ino for _ in range(min(most, len(turns)))]


def test_one_job_keeps_its_order() -> None:
    assert served(waiting({}, *(file(n, 1) for n in range(5)))) == [0, 1, 2, 3, 4]


def test_owners_take_turns_whoever_came_first_and_with_more() -> None:
    ranks = {1: Rank(ANN), 2: Rank(BOB)}
    turns = waiting(ranks, *(file(n, 1) for n in range(100)))
    served(turns, 50)
    for number in range(200, 210):
        turns.put(file(number, 2))
    assert sorted(n for n in served(turns, 20) if n >= 200) == list(range(200, 210))


def test_many_jobs_get_an_owner_no_more_than_one_does() -> None:
    ranks = {job: Rank(ANN) for job in range(9)} | {9: Rank(BOB)}
    turns = waiting(ranks, *(file(100 * job + n, job) for job in range(10) for n in range(30)))
    assert Counter(n >= 900 for n in served(turns, 40)) == {True: 20, False: 20}


def test_a_higher_priority_overtakes_the_same_owners_jobs_at_once() -> None:
    ranks = {1: Rank(ANN), 2: Rank(ANN, 51)}
    turns = waiting(ranks, *(file(n, 1) for n in range(50)))
    turns.put(file(99, 2))
    assert turns.pop().key.ino == 99


def test_priority_is_a_share_between_owners_and_starves_nobody() -> None:
    ranks = {1: Rank(ANN, 100), 2: Rank(BOB, 0)}
    turns = waiting(ranks, *(file(n, 1) for n in range(3000)), *(file(10_000 + n, 2) for n in range(3000)))
    low = sum(n >= 10_000 for n in served(turns, 2050))
    assert 1 <= low <= 4


def test_large_files_cost_their_owner_more_turns() -> None:
    ranks = {1: Rank(ANN), 2: Rank(BOB)}
    big = [file(n, 1, size=900_000_000) for n in range(20)]
    turns = waiting(ranks, *big, *(file(1000 + n, 2) for n in range(1000)))
    assert sum(n < 1000 for n in served(turns, 500)) == 5


def test_a_changed_rank_holds_for_those_who_wait() -> None:
    ranks = {1: Rank(ANN), 2: Rank(ANN)}
    turns = waiting(ranks, file(1, 1), file(2, 2), file(3, 2))
    ranks[2] = Rank(ANN, 80)
    assert served(turns) == [2, 3, 1]


def test_a_file_that_two_want_waits_in_the_better_place_and_is_served_once() -> None:
    ranks = {1: Rank(ANN, 10), 2: Rank(ANN, 90)}
    shared = file(5, 1)
    turns = waiting(ranks, *(file(n, 1) for n in range(3)), shared, file(9, 2))
    shared.wanted_by.add(2)
    turns.join(shared, 2)
    assert served(turns) == [9, 5, 0, 1, 2]


def test_when_a_job_leaves_a_shared_file_stays_for_the_other() -> None:
    ranks = {1: Rank(ANN, 90), 2: Rank(BOB)}
    shared = file(1, 1, 2)
    turns = waiting(ranks, shared)
    shared.wanted_by.discard(1)
    assert served(turns) == [1]


def test_an_owner_who_was_away_does_not_catch_up() -> None:
    ranks = {1: Rank(ANN), 2: Rank(BOB)}
    turns = waiting(ranks, file(900, 2), *(file(n, 1) for n in range(100)))
    served(turns, 60)
    for number in range(1000, 1050):
        turns.put(file(number, 2))
    assert sum(n >= 1000 for n in served(turns, 20)) == 10


@st.composite
def _deeds(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    deed = st.tuples(st.sampled_from(["put", "ahead", "pop", "discard", "join", "leave", "rank"]), st.integers(0, 12),
                     st.integers(0, 4))  # fmt: skip
    return draw(st.lists(deed, max_size=80))


@given(_deeds())
def test_whatever_happens_each_waiting_file_is_served_once(deeds: list[tuple[str, int, int]]) -> None:
    ranks: dict[int, Rank] = {}
    turns: Turns[File] = Turns(ranks)
    inside: dict[int, File] = {}
    for what, number, job in deeds:
        known = inside.get(number)
        if what in {"put", "ahead"} and known is None:
            inside[number] = file(number, job, size=number * 10**7)
            turns.put(inside[number], ahead=what == "ahead")
        elif what == "pop" and inside:
            assert turns.peek() is (popped := turns.pop())
            assert inside.pop(popped.key.ino) is popped
        elif what == "discard" and known is not None:
            turns.discard(inside.pop(number))
        elif what == "join" and known is not None and job not in known.wanted_by:
            known.wanted_by.add(job)
            turns.join(known, job)
        elif what == "leave" and known is not None and len(known.wanted_by) > 1:
            known.wanted_by.discard(job)
        elif what == "rank":
            ranks[job] = Rank(ANN if number % 2 else BOB, number * 8)
        assert len(turns) == len(inside)
        assert all(turns.serves(job) == any(job in f.wanted_by for f in inside.values()) for job in range(5))
    assert sorted(served(turns)) == sorted(inside)
