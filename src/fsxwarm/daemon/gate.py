"""The gate of the socket: who is let in, how many, and how long they may take."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

from fsxwarm.daemon.access import Caller, Circle
from fsxwarm.daemon.rights import peer
from fsxwarm.errors import FsxwarmError, Kind

_MOST_WAITING: Final = 100
"""Clients that may be told why they are turned away once they have spoken; others are told at once, and may miss it."""
_REASONS: Final = {403: "Forbidden", 429: "Too Many Requests", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Connections at a time, in all and each user's; root is not counted out. `patience` in seconds."""

    connections: int
    connections_each: int
    patience: float
    """How long a client may take to say what it wants, to say the next thing, and to take in an answer."""


@dataclass(slots=True)
class Gate:
    """Lets connections in. `inner` makes the protocol that serves one."""

    circle: Circle
    limits: GateLimits
    inner: Callable[[], asyncio.Protocol]
    count: int = 0
    by_user: Counter[int] = field(default_factory=Counter)
    turned_away: int = 0
    waiting: int = 0
    """Clients that will be turned away as soon as they have spoken."""

    def __call__(self) -> Visit:
        """The protocol of one more connection."""
        return Visit(self)

    def admit(self, transport: asyncio.Transport) -> Caller:
        """Find out who it is. FsxwarmError NO_PERMISSION, TOO_MANY."""
        try:
            identity = peer(transport.get_extra_info("socket"))
        except OSError as error:
            raise FsxwarmError(Kind.NO_PERMISSION, f"the kernel does not say who you are: {error.strerror}") from None
        caller = self.circle.admit(identity)
        if caller is None:
            raise FsxwarmError(Kind.NO_PERMISSION, "the daemon is not for this user", hint="ask to join its group")
        if caller.uid != 0 and (
            self.count >= self.limits.connections or self.by_user[caller.uid] >= self.limits.connections_each
        ):
            raise FsxwarmError(Kind.TOO_MANY, "too many connections", hint="close some, then try again")
        return caller


class Visit(asyncio.Protocol):
    """One connection: an identity, a clock, and the protocol within that speaks HTTP.

    The clock runs while the client is to send a request and while it is to take an answer in, not while it waits for
    one. When it has run out the connection is cut.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._caller: Caller | None = None
        self._refusal: bytes | None = None

    @property
    def caller(self) -> Caller:
        """Who it is."""
        if self._caller is None:
            raise FsxwarmError(Kind.NO_PERMISSION, "the connection is closed", hint="")
        return self._caller

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, or turn it away with a reason."""
        self._transport = cast("asyncio.Transport", transport)
        try:
            self._caller = self._gate.admit(self._transport)
        except FsxwarmError as error:
            self._turn_away(_refusal(error))
            return
        self._gate.count += 1
        self._gate.by_user[self._caller.uid] += 1
        self._inner = self._gate.inner()
        self._inner.connection_made(transport)
        self.expect()

    def _turn_away(self, refusal: bytes) -> None:
        """Say no, once the client has spoken: one that is hung up on before that may not hear why."""
        self._gate.turned_away += 1
        self._refusal = refusal
        if self._gate.waiting >= _MOST_WAITING:
            self._refuse()
            return
        self._gate.waiting += 1
        self.expect()

    def _refuse(self) -> None:
        if self._transport is not None and self._refusal is not None and not self._transport.is_closing():
            self._transport.write(self._refusal)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._stop(self._clock)
        self._stop(self._stalled)
        if self._refusal is not None and self._clock is not None:
            self._gate.waiting -= 1
        if self._caller is None or self._inner is None:
            return
        self._gate.count -= 1
        self._gate.by_user[self._caller.uid] -= 1
        if not self._gate.by_user[self._caller.uid]:
            del self._gate.by_user[self._caller.uid]
        self._caller = None
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on what the client says."""
        if self._inner is not None:
            self._inner.data_received(data)
        else:
            self._refuse()

    def eof_received(self) -> bool | None:
        """A client that says no more has gone: nobody waits for an answer without an ear."""
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        """The client does not take its answer in."""
        if self._inner is not None:
            self._inner.pause_writing()
        self._stalled = self._start()

    def resume_writing(self) -> None:
        """It does again."""
        self._stop(self._stalled)
        if self._inner is not None:
            self._inner.resume_writing()

    def expect(self) -> None:
        """The client is to speak: let the clock run."""
        self._stop(self._clock)
        self._clock = self._start()

    def heard(self) -> None:
        """The client has said all of what it wants: stop the clock."""
        self._stop(self._clock)
        self._clock = None

    def _start(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._gate.limits.patience, self._cut)

    @staticmethod
    def _stop(clock: asyncio.TimerHandle | None) -> None:
        if clock is not None:
            clock.cancel()

    def _cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def error_body(error: FsxwarmError) -> bytes:
    """An error as the JSON that answers with it."""
    return json.dumps({"error": {"kind": error.kind.value, "message": error.message, "hint": error.hint}}).encode()


def _refusal(error: FsxwarmError) -> bytes:
    body = error_body(error) + b"\n"
    status = f"HTTP/1.1 {error.http} {_REASONS.get(error.http, 'Refused')}\r\n"
    head = f"{status}Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
