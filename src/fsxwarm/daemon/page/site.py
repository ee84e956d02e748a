"""The page's addresses on the TCP listener: the public front, one-time addresses, and what each session may see."""

from __future__ import annotations

import asyncio
import os
import posixpath
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from importlib.resources import files
from itertools import islice
from typing import Any, Final, cast

from aiohttp import web

from fsxwarm.client import wire
from fsxwarm.client.glance import user
from fsxwarm.client.missing import filed_under, latest
from fsxwarm.daemon.access import NOBODY, Caller, Circle
from fsxwarm.daemon.api import Api, Call
from fsxwarm.daemon.logs import log
from fsxwarm.daemon.page import folders, parts
from fsxwarm.daemon.page.markup import Markup, document, join, tag
from fsxwarm.daemon.page.sessions import COOKIE, SESSION_LASTS, TICKET_LASTS, Session, Sessions
from fsxwarm.daemon.server import parse_query, visit_of
from fsxwarm.daemon.speaking import HEADERS
from fsxwarm.daemon.vocabulary import Line
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.address import Address
from fsxwarm.model.job import Identity

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    **HEADERS,
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_ANY: Final = {"0.0.0.0", "::"}  # noqa: S104 - nothing is bound here
_AT_MOST_EVERY: Final = 1.0
"""Seconds between two updates that a page is told of, however much happens."""
_AT_LEAST_EVERY: Final = 5.0
_STREAMS, _STREAMS_EACH = 128, 10
"""Pages that are kept fresh, in all and each user's."""
_JOBS_EXPLAINED: Final = 10
_FAILURES_OF_A_JOB: Final = 100
_EXAMPLES: Final = 10

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Shown = Callable[[web.Request, Caller, str], Awaitable[web.StreamResponse]]


class Door:
    """Hands out one-time addresses of the page that is served at `where`. `wall` in seconds since the epoch."""

    def __init__(self, sessions: Sessions, where: Address, wall: Callable[[], float]) -> None:
        self._sessions = sessions
        self._base = f"http://{where._replace(host=socket.gethostname()) if where.host in _ANY else where}"
        self._wall = wall

    def address(self, identity: Identity) -> wire.PageAddress:
        """An address that opens a session with somebody's rights, once."""
        word = self._sessions.ticket(identity)
        return {"address": f"{self._base}/in/{word}", "expires": self._wall() + TICKET_LASTS}


class Site:
    """Answers browsers. `api` gives what a caller may see, `circle` whom the daemon serves at that moment."""

    def __init__(self, api: Api, sessions: Sessions, counts: folders.Counts, circle: Callable[[], Circle]) -> None:
        self._api = api
        self._sessions = sessions
        self._counts = counts
        self._circle = circle
        self._streams: Counter[int] = Counter()
        self._assets = {name: files(__package__).joinpath(name).read_bytes() for name in _ASSETS}

    @property
    def pages(self) -> Sequence[tuple[str, Answer]]:
        """What answers which address."""
        private = {"": self._page, "events": self._events, "folders": self._folders}
        return [
            ("/", self._open(self._page)),
            ("/events", self._open(self._events)),
            ("/in/{word}", self._guarded(self._enter)),
            ("/static/{name}", self._guarded(self._asset)),
            *((f"/s/{{place}}/{name}", self._of_session(shown)) for name, shown in private.items()),
        ]

    async def close(self) -> None:
        """End what was begun for those who look."""
        await self._counts.close()

    # ---- who looks ---------------------------------------------------------------------------------------------

    def _open(self, shown: _Shown) -> Answer:
        return self._guarded(lambda request: shown(request, NOBODY, "what everybody may see"))

    def _of_session(self, shown: _Shown) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            session = self._session(request)
            caller = self._circle().admit(session.identity)
            if caller is None:
                raise FsxwarmError(Kind.NO_PERMISSION, "the daemon is not for you any more", hint="")
            return await shown(request, caller, f"as {user(caller.uid)}{' (administrator)' * caller.admin}")

        return self._guarded(answer)

    def _session(self, request: web.Request) -> Session:
        return self._sessions.find(request.match_info["place"], request.cookies.get(COOKIE, ""))

    def _guarded(self, answer: Answer) -> Answer:
        """Refusals are pages too."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            visit_of(request).heard()
            try:
                return await answer(request)
            except FsxwarmError as error:
                said = tag("p", error.message), tag("p", error.hint) if error.hint else Markup("")
                body = document("fsxwarm", tag("main", tag("h1", HTTPStatus(error.http).phrase), *said))
                return _html(body, error.http)

        return guarded

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":  # a look ahead must not use the address up
            raise FsxwarmError(Kind.USAGE, "open it in a browser", hint="")
        session = self._sessions.open(request.match_info["word"])
        place = f"/s/{session.place}/"
        log(Line.PAGE_OPENED, uid=session.identity.uid)
        answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**_HEADERS, "Location": place})
        answer.set_cookie(
            COOKIE, session.secret, path=place, max_age=int(SESSION_LASTS), httponly=True, samesite="Strict"
        )
        return answer

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in _ASSETS:
            raise FsxwarmError(Kind.NO_SUCH_PATH, "there is no such page", hint="")
        headers = {**_HEADERS, "Content-Type": _ASSETS[name], "Cache-Control": "max-age=300"}
        return web.Response(body=self._assets[name], headers=headers)

    # ---- what is shown -----------------------------------------------------------------------------------------

    async def _page(self, request: web.Request, caller: Caller, viewer: str) -> web.StreamResponse:
        overview = self._api.seen_by(caller)
        own = caller is not NOBODY
        shown = [parts.warm(overview, links=own), parts.now(overview), parts.spaces(overview["rooms"])]
        if not own:
            shown.append(tag("p", "Your own jobs and files: run ", tag("code", "fsxwarm page"), " in a terminal."))
        else:
            examples = await self._examples(overview["jobs"])
            shown = [
                parts.jobs(overview),
                parts.failures(overview["jobs"], examples),
                *shown,
                parts.slowest(overview["slowest"]),
                _asking_for_folders(""),
            ]
        return _html(
            _document("fsxwarm", parts.header(overview, viewer), tag("main", parts.problems(overview), *shown), request)
        )

    async def _examples(self, jobs: Sequence[wire.Job]) -> dict[str, list[wire.Failure]]:
        """Some files for each reason, of the newest jobs that have any."""
        found: dict[str, list[wire.Failure]] = {}
        missing = (job for job in latest(jobs) if job["counters"]["reasons"] or job["counters"]["unreadable"])
        for job in islice(missing, _JOBS_EXPLAINED):
            for failure in await self._api.some_failures(job["id"], _FAILURES_OF_A_JOB):
                some = found.setdefault(filed_under(failure), [])
                if len(some) < _EXAMPLES:
                    some.append(failure)
        return found

    async def _folders(self, request: web.Request, caller: Caller, viewer: str) -> web.StreamResponse:
        query = parse_query(request.rel_url.raw_query_string)
        named, sort = query.get("path", ""), query.get("sort", "size")
        if not named.startswith("/") or "\0" in named or sort not in folders.SORTS:
            raise FsxwarmError(Kind.USAGE, "name a folder by its whole path", hint="it begins with /")
        path = _normal(named)
        count = self._counts.of(path, caller.identity)
        with suppress(TimeoutError):  # a small folder is shown whole at once
            async with asyncio.timeout(_AT_MOST_EVERY):
                await asyncio.shield(count.task)
        head = tag("header", tag("h1", tag("a", "fsxwarm", href="./")), tag("p", viewer))
        shown = folders.show(path, count, sort, self._counts.now())
        return _html(_document("folders - fsxwarm", head, tag("main", shown, _asking_for_folders(named)), request))

    async def _events(self, request: web.Request, caller: Caller, _viewer: str) -> web.StreamResponse:
        """Tell a page when to look anew: soon after something happens to its viewer's jobs, and now and then."""
        if self._streams[caller.uid] >= _STREAMS_EACH or self._streams.total() >= _STREAMS:
            raise FsxwarmError(Kind.TOO_MANY, "too many pages are open", hint="close some")
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._streams[caller.uid] += 1
        try:
            await response.prepare(request)
            async for _ in self._beats(caller):
                if caller is not NOBODY:
                    self._session(request)  # which may have ended meanwhile
                await response.write(b"data: anew\n\n")
        except FsxwarmError:
            with suppress(ConnectionError):
                await response.write(b"event: over\ndata: over\n\n")
        finally:
            self._streams[caller.uid] -= 1
        return response

    async def _beats(self, caller: Caller) -> AsyncIterator[None]:
        """A beat soon after news, one now and then without any, until the daemon stops."""
        news = asyncio.Event()
        listening = asyncio.create_task(self._listen(caller, news))
        listening.add_done_callback(lambda _: news.set())
        try:
            while not listening.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AT_LEAST_EVERY):
                        await news.wait()
                news.clear()
                yield
                await asyncio.sleep(_AT_MOST_EVERY)
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _listen(self, caller: Caller, news: asyncio.Event) -> None:
        async with aclosing(cast("Any", self._api.events(Call(caller, None, None)))) as events:
            async for _ in events:
                news.set()


def _normal(path: str) -> bytes:
    return os.fsencode(posixpath.normpath(path))


def _asking_for_folders(path: str) -> Markup:
    return tag(
        "form",
        tag("label", "How warm are the folders below ", for_="path"),
        tag("input", type="text", id="path", name="path", value=path, placeholder="/fsx/dataset", required=True),
        tag("button", "count"),
        action="folders",
        method="get",
    )


def _document(title: str, header: Markup, main: Markup, request: web.Request) -> str:
    """A page that looks anew by itself: by script as things happen, or every so often where there is none."""
    head = join(
        tag("script", src="/static/page.js", defer=True),
        tag("noscript", tag("meta", http_equiv="refresh", content="10")),
    )
    skip = tag("a", "to the contents", href="#contents", class_="skip")
    stream = "events" if request.match_info.get("place") else "/events"
    return document(title, skip, header, tag("div", main, id="contents", data_stream=stream), head=head)


def _html(body: str, status: int = 200) -> web.Response:
    headers = {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}
    return web.Response(body=body.encode("utf-8", "backslashreplace"), status=status, headers=headers)
