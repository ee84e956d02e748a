"""HTTP on the socket: the table of routes behind the gate, with every error in one form."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from aiohttp import web
from pydantic import BaseModel, ValidationError

from fsxwarm.daemon import mistakes
from fsxwarm.daemon.access import Circle, Rule
from fsxwarm.daemon.api import Api, Call
from fsxwarm.daemon.gate import Gate, GateLimits, Visit, error_body
from fsxwarm.daemon.logs import log
from fsxwarm.daemon.openapi import document
from fsxwarm.daemon.routes import ROUTES, Route
from fsxwarm.daemon.speaking import HEADERS, Speakers
from fsxwarm.daemon.vocabulary import Line
from fsxwarm.errors import FsxwarmError, Kind

_HEAD: Final = 64 << 10
"""Bytes of a request's first line: a path in it may be percent-encoded."""
_MOST_PARAMETERS: Final = 20
_BACKLOG: Final = 1024
_LINGER: Final = 2.0
"""Seconds in which what is left of a refused request is read and dropped, so that its sender gets to see the answer."""
_OF_HTTP: Final = {413: Kind.TOO_LARGE, 404: Kind.USAGE}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Serves `api` to the `circle` on listening sockets. `request_size` in bytes; `close` ends it all.

    `circle`, `limits` and `request_size` may be replaced while it runs.
    """

    def __init__(self, api: Api, circle: Circle, limits: GateLimits, request_size: int) -> None:
        self.request_size = request_size
        self._api = api
        self._app = web.Application(middlewares=[in_one_form], client_max_size=0)
        for route in ROUTES:
            self._app.router.add_route(route.method, route.path, self._handler(route))
        self._app.router.add_get("/v1/openapi.json", self._openapi)
        self._speakers = Speakers(
            self._app, keepalive_timeout=limits.patience, max_line_size=_HEAD, lingering_time=_LINGER
        )
        self.gate = Gate(circle, limits, self._speakers)
        self._servers: list[asyncio.Server] = []

    def add_page(self, path: str, answer: Handler) -> None:
        """Answer `GET path` with something else than JSON; before `start`."""
        self._app.router.add_get(path, answer)

    async def start(self, sock: socket.socket) -> None:
        """Listen on a bound unix socket."""
        await self._speakers.start()
        options: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self.gate, sock=sock, backlog=_BACKLOG, **options))

    async def close(self) -> None:
        """Take no more connections, let answers that are on their way go out, and hang up."""
        for server in self._servers:
            server.close()
        await self._speakers.close()

    def _handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            visit = visit_of(request)
            query = checked(route.query, parse_query(request.rel_url.raw_query_string))
            body = await self._body(route.body, request) if route.body is not None else None
            visit.heard()
            call = Call(visit.caller, query, body, request.match_info.get("id", ""))
            if route.rule is Rule.OWNER and route.owner is not None:
                route.owner(self._api, call.caller, call.of)
            if route.stream:
                return await _stream(request, cast("AsyncIterator[object]", route.handler(self._api, call)))
            answer = await cast("Awaitable[object]", route.handler(self._api, call))
            return _json(answer, route.status)

        return handle

    async def _body(self, model: type[BaseModel], request: web.Request) -> BaseModel:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise FsxwarmError(Kind.USAGE, "bodies are taken as they are, not compressed", hint="")
        too_large = FsxwarmError(Kind.TOO_LARGE, f"a request may have {self.request_size:,} bytes at most")
        if (request.content_length or 0) > self.request_size:
            raise too_large
        data = bytearray()
        async for chunk in request.content.iter_any():
            data += chunk
            if len(data) > self.request_size:
                raise too_large
        return checked_json(model, bytes(data))

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        visit_of(request).heard()
        return _json(document(), 200)


@web.middleware
async def in_one_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever is raised into an answer. The one supervisor of requests."""
    try:
        response = await handler(request)
    except FsxwarmError as error:
        response = _refused(error)
    except web.HTTPException as error:
        response = _refused_by_http(error)
    except ConnectionError:
        raise  # the client has gone: there is nobody to answer
    except Exception as error:  # noqa: BLE001 - a bug in one request must not end the others
        log(Line.REQUEST_FAILED, method=request.method, path=request.path, error=repr(error), exc_info=error)
        response = _refused(FsxwarmError(Kind.UNFORESEEN, "the daemon failed at this", hint="see its log"))
    visit_of(request).expect()
    return response


def visit_of(request: web.Request) -> Visit:
    """The connection that a request came by. ConnectionResetError when it is gone."""
    transport = request.transport
    visit = transport.get_protocol() if transport is not None else None
    if not isinstance(visit, Visit):
        raise ConnectionResetError("the client has gone")
    return visit


def parse_query(text: str) -> dict[str, str]:
    """The parameters of a request's address; bytes that are no UTF-8 are kept as surrogates. FsxwarmError USAGE."""
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="surrogateescape",
            max_num_fields=_MOST_PARAMETERS,
        )  # fmt: skip
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, f"the query is none: {error}", hint="") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise FsxwarmError(Kind.USAGE, "a parameter is given twice", hint="")
    return parameters


def checked(model: type[BaseModel], values: dict[str, str]) -> BaseModel:
    """The parameters of a request, as a route takes them. FsxwarmError USAGE says what is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise mistakes.of_request(error) from None


def checked_json(model: type[BaseModel], data: bytes) -> BaseModel:
    """The body of a request, as a route takes it. FsxwarmError USAGE says what is wrong."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise mistakes.of_request(error) from None


def _json(answer: object, status: int) -> web.Response:
    if answer is None:
        return web.Response(status=status, headers=HEADERS)
    body = json.dumps(answer).encode() + b"\n"
    return web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)


def _refused(error: FsxwarmError) -> web.Response:
    body = error_body(error) + b"\n"
    response = web.Response(body=body, status=error.http, content_type="application/json", headers=HEADERS)
    if error.kind in {Kind.TOO_LARGE, Kind.RESTARTING}:
        response.force_close()  # what is left of the request is not read
    return response


def _refused_by_http(error: web.HTTPException) -> web.Response:
    """What the router refuses: there is no such route, or not with this method."""
    kind = _OF_HTTP.get(error.status, Kind.USAGE)
    body = error_body(FsxwarmError(kind, (error.reason or "").lower(), hint="see /v1/openapi.json")) + b"\n"
    headers = dict(HEADERS)
    if isinstance(error, web.HTTPMethodNotAllowed):
        headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    return web.Response(body=body, status=error.status, content_type="application/json", headers=headers)


async def _stream(request: web.Request, items: AsyncIterator[object]) -> web.StreamResponse:
    """Answer with one JSON object a line, as they come, until there are no more or the client hangs up."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    async with aclosing(cast("Any", items)) as lines:
        async for line in lines:
            await response.write(json.dumps(line).encode() + b"\n")
    await response.write_eof()
    return response
