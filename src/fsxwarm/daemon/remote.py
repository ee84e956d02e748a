"""The listener for other machines: requests sealed with MUNGE, over TCP. Off unless the configuration names an address.

Whoever connects from an allowed network may send credentials; who he is, each request proves anew.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import islice
from typing import Any, Final, cast
from urllib.parse import unquote

from aiohttp import web

from fsxwarm.client import sealed
from fsxwarm.daemon.access import Caller, Circle, Rule
from fsxwarm.daemon.api import Api, Call
from fsxwarm.daemon.gate import Gate, GateLimits, error_body
from fsxwarm.daemon.munge import Munge, Unsealed
from fsxwarm.daemon.people import groups_of
from fsxwarm.daemon.routes import ROUTES, Route
from fsxwarm.daemon.server import checked, checked_json, in_one_form, parse_query, visit_of
from fsxwarm.daemon.speaking import HEADERS, Speakers
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.address import Address
from fsxwarm.model.job import Identity

Network = IPv4Network | IPv6Network

_OLDEST: Final = 120
"""Seconds after which a credential is not taken any more; munged itself takes it for five minutes."""
_LONGEST: Final = 2 * sealed.PART
"""Bytes of one credential: its payload in base64, and a little."""
_HEAD: Final = 8 << 10
_BACKLOG: Final = 1024
_OF_ROUTES: Final = [(route, re.compile(route.path.replace("{id}", "(?P<id>[^/]+)"))) for route in ROUTES]


@dataclass(slots=True)
class RemoteGate(Gate):
    """Lets connections in from `networks`; each address counts as one user of the gate."""

    networks: Sequence[Network] = ()

    def admit(self, transport: asyncio.Transport) -> Caller:
        """An address, of which nothing else is known yet. FsxwarmError NO_PERMISSION, TOO_MANY."""
        address = ip_address(transport.get_extra_info("peername")[0].partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        address = mapped or address
        if not any(address in network for network in self.networks):
            raise FsxwarmError(Kind.NO_PERMISSION, f"{address} is in no allowed network", hint="see remote.networks")
        stranger = Caller(Identity(int(address)), admin=False)
        if self.count >= self.limits.connections or self.by_user[stranger.uid] >= self.limits.connections_each:
            raise FsxwarmError(Kind.TOO_MANY, "too many connections", hint="close some, then try again")
        return stranger


@dataclass(slots=True)
class Nonces:
    """Remembers requests for as long as their credentials may be good, so that none is carried out twice.

    munged remembers them too, but forgets when it is started anew.
    """

    seen: dict[tuple[int, str], int] = field(default_factory=dict)

    def take(self, uid: int, nonce: str, now: int) -> None:
        """Take a request on. FsxwarmError NO_PERMISSION for one that was taken on before."""
        for old in [one for one, taken in islice(self.seen.items(), 2) if now - taken > 2 * _OLDEST]:
            del self.seen[old]  # two go for each that comes: there are never many too old ones
        if (uid, nonce) in self.seen:
            raise FsxwarmError(Kind.NO_PERMISSION, "the credential is refused: this request was made before", hint="")
        self.seen[uid, nonce] = now


class Remote:
    """Serves `api` at an address to those of the `circle` who come from `networks`.

    `circle` is asked each time; `request_size` in bytes. `wall` tells seconds since the epoch.
    """

    def __init__(
        self,
        api: Api,
        circle: Callable[[], Circle],
        limits: GateLimits,
        networks: Sequence[Network],
        munge: Munge,
        wall: Callable[[], float],
        request_size: int,
    ) -> None:
        self.request_size = request_size
        self._api = api
        self._circle = circle
        self._munge = munge
        self._wall = wall
        self._started = int(wall())
        self._nonces = Nonces()
        app = web.Application(middlewares=[in_one_form], client_max_size=0)
        app.router.add_post(sealed.ROUTE, self._handle)
        self._speakers = Speakers(app, keepalive_timeout=limits.patience, max_line_size=_HEAD, max_field_size=_HEAD)
        self.gate = RemoteGate(Circle(-1, None, None), limits, self._speakers, networks=networks)

    async def start(self, address: Address) -> Address:
        """Listen; returns where. FsxwarmError CONFLICT says why that cannot be."""
        return await self._speakers.listen(self.gate, address, "remote.listen", _BACKLOG)

    async def close(self) -> None:
        """Take no more connections, let answers that are on their way go out, and hang up."""
        await self._speakers.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """One sealed request: open it, carry it out, seal the answer."""
        visit = visit_of(request)
        lines = _Lines(request.content, self.request_size)
        first, part = await self._open(await lines.next() or b"")
        caller = await self._caller(first)
        self._nonces.take(caller.uid, part.nonce, int(self._wall()))
        parts = [part]
        while (line := await lines.next()) is not None:
            more, part = await self._open(line)
            if (more.uid, more.gid) != (first.uid, first.gid):
                raise FsxwarmError(Kind.NO_PERMISSION, "the credentials are of different users", hint="")
            parts.append(part)
        visit.heard()
        try:
            status, answer = await self._carried_out(caller, parts)
        except FsxwarmError as error:
            status, answer = error.http, error_body(error) + b"\n"
        payloads = sealed.cut({"nonce": parts[0].nonce, "status": status}, answer)
        credentials = [await self._munge.seal(payload, caller.uid) for payload in payloads]
        return web.Response(body=b"\n".join(credentials) + b"\n", content_type="application/x-munge", headers=HEADERS)

    async def _open(self, credential: bytes) -> tuple[Unsealed, sealed.Part]:
        found = await self._munge.unseal(credential)
        if found.age > _OLDEST:
            raise FsxwarmError(Kind.NO_PERMISSION, f"the credential is refused: it is {found.age} s old", hint="")
        if found.made < self._started:
            raise FsxwarmError(Kind.RESTARTING, "the request was made before the daemon started", hint="make it anew")
        try:
            return found, sealed.read(found.payload)
        except sealed.SealError as error:
            raise FsxwarmError(Kind.NO_PERMISSION, f"the credential is refused: {error}", hint="") from None

    async def _caller(self, found: Unsealed) -> Caller:
        """Who made a credential: uid and gid as munged says, and the groups that this machine knows of."""
        try:
            identity = await asyncio.to_thread(groups_of, found.uid, found.gid)
        except KeyError:
            identity = Identity(found.uid, (found.gid,))
        caller = self._circle().admit_remote(identity)
        if caller is None:
            raise FsxwarmError(Kind.NO_PERMISSION, "the daemon is not for this user", hint="ask to join its group")
        return caller

    async def _carried_out(self, caller: Caller, parts: Sequence[sealed.Part]) -> tuple[int, bytes]:
        """A request's status and answer."""
        try:
            body = sealed.join(parts)
        except sealed.SealError as error:
            raise FsxwarmError(Kind.USAGE, str(error), hint="") from None
        route, of, query = _route(parts[0].head)
        call = Call(
            caller,
            checked(route.query, parse_query(query)),
            None if route.body is None else checked_json(route.body, body),
            of,
        )
        if route.rule is Rule.OWNER and route.owner is not None:
            route.owner(self._api, caller, of)
        answer = await cast("Awaitable[object]", route.handler(self._api, call))
        return route.status, b"" if answer is None else json.dumps(answer).encode() + b"\n"


class _Lines:
    """The lines of a request's body, each read only when it is asked for, and all of them only up to a size."""

    def __init__(self, content: Any, most: int) -> None:
        self._chunks = content.iter_any()
        self._held = bytearray()
        self._left = most + most // 2  # base64, and a head for each part
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line that is not empty; None at the end. FsxwarmError TOO_LARGE."""
        while True:
            line, newline, rest = self._held.partition(b"\n")
            if newline or self._ended:
                self._held = rest
                if line or self._ended:
                    return bytes(line) or None
                continue
            await self._read()

    async def _read(self) -> None:
        chunk = await anext(self._chunks, None)
        if chunk is None:
            self._ended = True
            return
        self._held += chunk
        self._left -= len(chunk)
        too_long = b"\n" not in self._held and len(self._held) > _LONGEST
        if too_long or self._left < 0:
            raise FsxwarmError(Kind.TOO_LARGE, "the request is too large")


def _route(head: Any) -> tuple[Route, str, str]:
    """The route that a head names, the job or lease in its path, and its query."""
    method, path = head.get("method"), head.get("path")
    if not isinstance(method, str) or not isinstance(path, str):
        raise FsxwarmError(Kind.USAGE, "a request has a method and a path", hint="")
    plain, _, query = path.partition("?")
    for route, pattern in _OF_ROUTES:
        if route.method == method and (found := pattern.fullmatch(plain)) is not None and not route.stream:
            return route, unquote(found.groupdict().get("id", "")), query
    raise FsxwarmError(Kind.USAGE, f"there is no {method} {plain} over the network", hint="see /v1/openapi.json")
