"""Who looks at the page: one-time addresses, and the sessions that browsers get for them.

A session is a place that nobody can guess and a cookie that browsers send to that place alone: cookies do not know
ports, and another user's server on this host must not be sent ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import Identity

TICKET_LASTS: Final = 120.0
"""Seconds in which a one-time address must be opened."""
SESSION_LASTS: Final = 8 * 3600.0
COOKIE: Final = "fsxwarm"
_MOST_EACH: Final = 20
"""Sessions of one user, and addresses not opened yet: of more, the oldest end."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that may see what `identity` may. `place` is in its addresses, `secret` in its cookie."""

    place: str
    secret: str
    identity: Identity
    expires: float


@dataclass(frozen=True, slots=True)
class _Ticket:
    identity: Identity
    expires: float


class Sessions:
    """Hands out one-time addresses and turns each into one session. `now` in seconds, `random` makes a long word."""

    def __init__(self, now: Callable[[], float], random: Callable[[], str]) -> None:
        self._now = now
        self._random = random
        self._tickets: dict[str, _Ticket] = {}
        self._sessions: dict[str, Session] = {}

    def ticket(self, identity: Identity) -> str:
        """A word that opens one session, once, for a short time."""
        self._forget()
        mine = [word for word, one in self._tickets.items() if one.identity.uid == identity.uid]
        for word in mine[: max(0, len(mine) - _MOST_EACH + 1)]:
            del self._tickets[word]
        word = self._random()
        self._tickets[word] = _Ticket(identity, self._now() + TICKET_LASTS)
        return word

    def open(self, word: str) -> Session:
        """The session that a word opens. FsxwarmError NO_PERMISSION when it was used, has run out, or never was."""
        self._forget()
        ticket = self._tickets.pop(word, None)
        if ticket is None:
            raise FsxwarmError(
                Kind.NO_PERMISSION, "this address opens nothing (any more)", hint="ask for another: `fsxwarm page`"
            )
        mine = [one.place for one in self._sessions.values() if one.identity.uid == ticket.identity.uid]
        for place in mine[: max(0, len(mine) - _MOST_EACH + 1)]:
            del self._sessions[place]
        session = Session(self._random(), self._random(), ticket.identity, self._now() + SESSION_LASTS)
        self._sessions[session.place] = session
        return session

    def find(self, place: str, secret: str) -> Session:
        """The session at a place, for a browser with its cookie. FsxwarmError NO_PERMISSION for all others."""
        self._forget()
        session = self._sessions.get(place)
        if session is None or not hmac.compare_digest(session.secret.encode(), secret.encode("utf-8", "replace")):
            raise FsxwarmError(
                Kind.NO_PERMISSION, "this session has ended, or is another browser's", hint="run `fsxwarm page` again"
            )
        return session

    def _forget(self) -> None:
        now = self._now()
        self._tickets = {word: one for word, one in self._tickets.items() if now < one.expires}
        self._sessions = {place: one for place, one in self._sessions.items() if now < one.expires}
