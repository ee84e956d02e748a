"""HTTP as the daemon speaks it: what cannot be read as HTTP is answered in the API's own form, too."""

from __future__ import annotations

import asyncio
import logging
import os
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from fsxwarm.daemon.gate import Gate, error_body
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.address import Address

HEADERS: Final = {"Server": "fsxwarm", "Cache-Control": "no-store"}
_LONGEST: Final = 200
"""Characters of what is said of a request that is none: it quotes the client."""
_LOG: Final = logging.getLogger("fsxwarm.daemon.http")
_LOG.setLevel(logging.CRITICAL)  # what clients say wrong is answered, and is no matter for the log


class Speakers:
    """Makes what speaks HTTP on a connection, for `app`. `options` are those of aiohttp's RequestHandler."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        self._options = {**options, "logger": _LOG, "access_log": None, "auto_decompress": False}
        self._runner = web.AppRunner(app, handle_signals=False, handler_cancellation=True, shutdown_timeout=1.0)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """To be awaited before the first connection."""
        await self._runner.setup()

    async def listen(self, gate: Gate, address: Address, key: str, backlog: int = 100) -> Address:
        """Start, and take connections at an address that `gate` lets in; returns where.

        FsxwarmError CONFLICT says why that cannot be, and by which `key` of the configuration to name another address.
        """
        await self.start()
        try:
            self._server = await asyncio.get_running_loop().create_server(gate, *address, backlog=backlog)
        except OSError as error:
            await self.close()
            why = os.strerror(error.errno) if error.errno else str(error)  # asyncio's own words name the address again
            raise FsxwarmError(
                Kind.CONFLICT, f"cannot listen at {address}: {why}", hint=f"name another address ({key})"
            ) from None
        return Address(*self._server.sockets[0].getsockname()[:2])

    async def close(self) -> None:
        """Take no more connections, let answers that are on their way go out, and hang up."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def __call__(self) -> asyncio.Protocol:
        """The protocol of one connection. FsxwarmError RESTARTING once closed."""
        manager = self._runner.server
        if manager is None:
            raise FsxwarmError(Kind.RESTARTING, "the daemon is stopping")
        return _Speaker(manager, loop=asyncio.get_running_loop(), **self._options)


class _Speaker(RequestHandler):
    """Says in JSON what the parser of HTTP did not like; aiohttp's own says it in plain text."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what never came as far as a route."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            error = FsxwarmError(Kind.UNFORESEEN, "the daemon failed at this", hint="see its log")
            self.log_exception("Error handling request", exc_info=exc)
        else:
            what = " ".join((message or "").split())[:_LONGEST]
            error = FsxwarmError(Kind.USAGE, f"this is no HTTP request: {what}", hint="see /v1/openapi.json")
        body = error_body(error) + b"\n"
        response = web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)
        response.force_close()
        return response
