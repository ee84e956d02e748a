"""The page over a core on paper, at a port of its own, in the test's event loop."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from daemon.conftest import Face, serving
from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.page.folders import Counts
from fsxwarm.daemon.page.sessions import Sessions
from fsxwarm.daemon.page.site import Door, Site
from fsxwarm.daemon.public import Public
from fsxwarm.engine.overview import Overview, Room, Sample, Slow, Stock
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.status import Survey
from fsxwarm.model.address import Address
from fsxwarm.model.job import Count, Counters, Failure, Identity, JobRequest, Kind
from paper import GONE, File, Paper

GB = 10**9
USERS, ADMINS = 70_001, 70_002
ALICE, BOB, ADA = Identity(60_001, (USERS,)), Identity(60_002, (USERS,)), Identity(60_004, (USERS, ADMINS))

NASTY = (
    b"<script>alert(1)</script>",
    b"<img src=x onerror=alert(2)>",
    b'"><svg/onload=alert(3)>',
    b"' onmouseover='alert(4)",
    b"</bdi></td></table><h1>owned</h1>",
    b"javascript:alert(5)",
    b"&lt;b&gt;&#60;b&#62;",
    b"<!-- --><![CDATA[x]]>",
    b"\xff\xfe<b>\x80",
    b"a\nb\tc\rd\x1b[31m\x07",
    "\u202egnp.exe\u2066\u200b".encode(),
    b"{{7*7}}${7*7}<%= 7 %>",
    b"\xef\xbf\xbd\xed\xa0\x80",
    b"`-alert(6)-`",
    b"</script><script>alert(7)</script>",
    b"--",
    b"..",
    b"%3Cscript%3E",
    "\u00e9\u0301\u05d0\u05d1".encode(),
    b"x" * 250,
    b"<iframe srcdoc='<script>parent.alert(8)</script>'>",
    b"</title><style>*{display:none}</style>",
    b"<base href=//evil.example>",
    b"<meta http-equiv=refresh content=0;//evil.example>",
)
"""Names of files that mean something to a browser, a terminal, or a template."""


@dataclass
class Clock:
    """A clock that stands until it is set."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Stand:
    """The page, and what stands behind it. `base` is where it is."""

    face: Face
    base: str
    door: Door
    circle: Circle
    clock: Clock
    paper: Paper
    asked: list[tuple[bytes, Identity]] = field(default_factory=list)

    def address(self, identity: Identity) -> str:
        return self.door.address(identity)["address"]

    async def busy(self, owner: Identity = ALICE) -> None:
        """Three jobs of somebody with nasty paths and labels, with failures, slow files, space and a past."""
        core = self.face.core
        failures = [
            Failure(n + 1, 1.0, b"/fsx/data/" + name, "failed", ("lost", "storage_class")[n % 2], detail=_text(name))
            for n, name in enumerate(NASTY)
        ]
        counters = Counters(Count(1000, 100 * GB), restored=Count(400, 40 * GB), failed=Count(24, GB), scanned=True)
        for label, paths in (("", (b"/fsx/data",)), (_text(NASTY[0]), (b"/fsx/data/" + NASTY[1],)), ("", NASTY)):
            full = tuple(path if path.startswith(b"/fsx") else b"/fsx/" + path for path in paths)
            job = await core.submit(JobRequest(Kind.PRELOAD, owner, full, label=label))
            await core.progress(job.id, replace(counters, reasons={"storage_class": 12, "lost": 12}))
            core.misses[job.id] = failures
        slow = [Slow(b"/fsx/data/" + name, GB, (job.id,), "in_flight", 75.0, -1, 2) for name in NASTY]
        past = [Sample(1000.0 + 10 * n, 200, 150 - n, 100 * n, n * GB) for n in range(100)]
        rooms = [Room(b"/fsx", 2 * GB, 40 * GB, 4 * GB, 8 * GB, dry_run=False)]
        stocks = [Stock(b"/fsx/data", 3, 3 * GB, 1, GB, 1940.0), Stock(b"/fsx/<b>", 0, 0, 9, GB, 900.0)]
        core.glance = Overview(2000.0, "bytes/s", slow, rooms, stocks, past)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


@asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[Stand]:
    """Serve the page."""
    circle = Circle(0, USERS, ADMINS)
    async with serving(folder) as face:
        clock, words = Clock(), itertools.count(1)
        sessions = Sessions(clock, lambda: f"word{next(words):04}")
        paper = Paper(
            {
                **{b"/fsx/data/cold/%d" % n: File(GONE, size=GB) for n in range(4)},
                **{b"/fsx/data/hot/%d" % n: File(size=GB) for n in range(5)},
                b"/fsx/data/hot/deep/er/still/x": File(GONE, size=GB),
                **{b"/fsx/data/" + name.replace(b"/", b"|") + b"/f": File(GONE, size=10) for name in NASTY},
            }
        )
        asked: list[tuple[bytes, Identity]] = []

        def begin(path: bytes, identity: Identity, depth: int) -> Survey:
            asked.append((path, identity))
            return Survey(paper, Selection(paper, [path]), depth=depth)

        counts = Counts(begin, clock)
        site = Site(face.api, sessions, counts, lambda: stand.circle)
        public = Public(Address("127.0.0.1", 0), site.pages)
        where = await public.start()
        door = face.api.door = Door(sessions, where, lambda: 5000.0)
        stand = Stand(face, f"http://{where}", door, circle, clock, paper, asked)
        try:
            yield stand
        finally:
            await face.core.drain()
            await public.close()
            await site.close()
