"""The plain TCP listener: nobody is asked who he is, so it tells nothing that names users, jobs or files.

By default on the loopback interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from fsxwarm.daemon.access import NOBODY, Caller, Circle
from fsxwarm.daemon.gate import Gate, GateLimits
from fsxwarm.daemon.server import in_one_form, visit_of
from fsxwarm.daemon.speaking import HEADERS, Speakers
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.metrics.exposition import Exposition
from fsxwarm.model.address import Address
from fsxwarm.model.measures import Measures
from fsxwarm.model.meter import Meter

_LIMITS: Final = GateLimits(connections=256, connections_each=256, patience=20.0)
_HEAD: Final = 8 << 10
"""Bytes that a request's first line, and each of its headers, may have."""
_LAG_EVERY: Final = 1.0

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def metrics_answer(measure: Callable[[], Measures]) -> Answer:
    """What answers `GET /metrics`, here and on the socket."""
    exposition = Exposition(measure)

    async def answer(request: web.Request) -> web.StreamResponse:
        visit_of(request).heard()
        body, content_type = exposition.answer(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={**HEADERS, "Content-Type": content_type})
        response.enable_compression()
        return response

    return answer


@dataclass(slots=True)
class OpenGate(Gate):
    """Lets everybody in, as nobody in particular, up to so many connections."""

    def admit(self, transport: asyncio.Transport) -> Caller:  # noqa: ARG002 - it does not matter who it is
        """FsxwarmError TOO_MANY."""
        if self.count >= self.limits.connections:
            raise FsxwarmError(Kind.TOO_MANY, "too many connections", hint="close some, then try again")
        return NOBODY


class Public:
    """Listens at an address and answers `GET` for `pages`, path by path."""

    def __init__(self, address: Address, pages: Sequence[tuple[str, Answer]]) -> None:
        self._address = address
        app = web.Application(middlewares=[in_one_form], client_max_size=0)
        for path, answer in pages:
            app.router.add_get(path, answer)
        self._speakers = Speakers(app, keepalive_timeout=_LIMITS.patience, max_line_size=_HEAD, max_field_size=_HEAD)
        self._gate = OpenGate(Circle(-1, None, None), _LIMITS, self._speakers)

    async def start(self) -> Address:
        """Listen; returns where. FsxwarmError CONFLICT says why that cannot be."""
        return await self._speakers.listen(self._gate, self._address, "metrics.listen")

    async def close(self) -> None:
        """Take no more connections, and hang up."""
        await self._speakers.close()


async def watch_loop(meter: Meter) -> None:
    """Measure by how much the event loop is late, until cancelled."""
    now = asyncio.get_running_loop().time
    while True:
        due = now() + _LAG_EVERY
        await asyncio.sleep(_LAG_EVERY)
        meter.loop_lag.observe(max(0.0, now() - due))
