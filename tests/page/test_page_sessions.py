"""One-time addresses, and sessions that belong to one browser for a time."""

from __future__ import annotations

import itertools

import pytest

from fsxwarm.daemon.page.sessions import SESSION_LASTS, TICKET_LASTS, Sessions
from fsxwarm.errors import FsxwarmError, Kind
from page.stand import ALICE, BOB, Clock


def made() -> tuple[Sessions, Clock]:
    clock, words = Clock(), itertools.count()
    return Sessions(clock, lambda: f"w{next(words)}"), clock


def refused(act: object) -> bool:
    with pytest.raises(FsxwarmError) as caught:
        act()  # type: ignore[operator]  # each test hands in what is to be refused
    return caught.value.kind is Kind.NO_PERMISSION


def test_an_address_works_once() -> None:
    sessions, _ = made()
    word = sessions.ticket(ALICE)
    assert sessions.open(word).identity == ALICE
    assert refused(lambda: sessions.open(word))


def test_an_address_that_was_not_opened_in_time_opens_nothing() -> None:
    sessions, clock = made()
    word = sessions.ticket(ALICE)
    clock.seconds += TICKET_LASTS
    assert refused(lambda: sessions.open(word))


def test_a_session_ends() -> None:
    sessions, clock = made()
    session = sessions.open(sessions.ticket(ALICE))
    clock.seconds += SESSION_LASTS - 1
    assert sessions.find(session.place, session.secret) == session
    clock.seconds += 1
    assert refused(lambda: sessions.find(session.place, session.secret))


def test_a_place_without_its_secret_is_closed() -> None:
    sessions, _ = made()
    one, other = sessions.open(sessions.ticket(ALICE)), sessions.open(sessions.ticket(BOB))
    for place, secret in ((one.place, ""), (one.place, other.secret), (one.place, "\udcff\u00e9"), ("", one.secret)):
        assert refused(lambda place=place, secret=secret: sessions.find(place, secret))


def test_nobody_takes_anothers_place_by_asking_often() -> None:
    sessions, _ = made()
    mine = sessions.open(sessions.ticket(BOB))
    for _ in range(100):
        sessions.open(sessions.ticket(ALICE))
    assert sessions.find(mine.place, mine.secret) == mine


def test_of_ones_own_the_oldest_end() -> None:
    sessions, _ = made()
    all_of_them = [sessions.open(sessions.ticket(ALICE)) for _ in range(50)]
    assert refused(lambda: sessions.find(all_of_them[0].place, all_of_them[0].secret))
    assert sessions.find(all_of_them[-1].place, all_of_them[-1].secret)
