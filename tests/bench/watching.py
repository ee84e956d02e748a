"""What watching costs: how much processor time metrics and the log take of a warm of 100,000 files, in virtual time.

The warm tells how often each thing is done, and what all of it takes; each thing is then done by itself, again and
again. (The difference of two warms, seen and unseen, is less than what two alike differ by.) More than half of the
warm's time is the simulator's.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.tables import table
from fsxwarm.daemon.chronicle import Chronicle
from fsxwarm.daemon.logs import log, set_up, writes
from fsxwarm.engine.metered import MeteredTree
from fsxwarm.engine.plan import ServicePlan
from fsxwarm.engine.service import Service
from fsxwarm.metrics.exposition import Exposition
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.messages import Finish
from fsxwarm.model.meter import Meter
from fsxwarm.model.outcome import Outcome
from fsxwarm.ports.tree import Stat
from fsxwarm.sim.vloop import run
from fsxwarm.store.sqlite import SqliteStore
from paper import Paper
from service_stage import Stage, ended, request

FILES = 100_000
SIZE = 100_000
SCRAPE_EVERY = 15.0
ANSWERS = 200
"""Files that a call answers for, at most."""
TARGET = 0.03


class Row(NamedTuple):
    """A thing that is done so many times, `each` in seconds."""

    what: str
    times: int
    each: float

    @property
    def spent(self) -> float:
        return self.times * self.each


class Answering(Paper):
    """Answers at once, and all is well."""

    def __init__(self) -> None:
        super().__init__({})
        self.answers: list[Stat | Trouble] = [Stat(7, number, SIZE, 200) for number in range(ANSWERS)]

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        return self.answers


def timed(work: Callable[[], object], times: int) -> float:
    """Seconds of processor time that one piece of work takes: the quickest of some rounds."""
    rounds = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - began) / times)
    return min(rounds)


async def timed_call(call: Callable[[], Awaitable[object]], times: int = 5000) -> float:
    """The same of a call that waits for nothing."""
    rounds = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(times):
            await call()
        rounds.append((time.process_time() - began) / times)
    return min(rounds)


async def measured(folder: Path) -> tuple[float, list[Row]]:
    """Warm, and do again what was done to watch it; returns the warm's processor seconds too."""
    stage = Stage(folder)
    stage.fill(FILES, SIZE)
    store = await SqliteStore.open(stage.path)
    chronicle = Chronicle(log, time.monotonic, writes)
    service = Service(stage.means(store), ServicePlan(), hears=chronicle.hear, wants=chronicle.wants)
    chronicle.view = service.job
    began, loop = time.process_time(), asyncio.get_running_loop()
    async with service:
        await ended(service, (await service.submit(request())).id)
        spent, seconds = time.process_time() - began, loop.time()
        meter = service.meter
        assert meter.settled_files[Outcome.RESTORED].files == FILES
        exposition = Exposition(service.measures)
        scrape = timed(exposition.text, 20)
    await store.close()
    calls = sum(times.count for times in meter.calls.values())
    entry = Entry(b"/fsx/a", 7, 1, SIZE, 0, 0, 0, 0, 1, 0, 0o100644)
    finish = Finish(entry, Outcome.RESTORED, frozenset({1}), took=3.0)
    bare = Answering()
    tree = MeteredTree(bare, Meter())
    counting = await timed_call(lambda: tree.stat(())) - await timed_call(lambda: bare.stat(()))
    return spent, [
        Row("a settled file is counted", FILES, timed(lambda: meter.settled(finish), 20_000)),
        Row("no line is written of it", FILES, timed(lambda: chronicle.wants("file_restored"), 20_000)),
        Row("a call and its answers are counted", calls, counting),
        Row("a scrape", int(seconds / SCRAPE_EVERY), scrape),
    ]


def main() -> bool:
    """Print the table; returns whether the target is kept."""
    set_up("info", io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        spent, rows = run(measured(Path(folder)))
    watching = sum(row.spent for row in rows)
    share = watching / (spent - watching)
    table(
        f"What metrics and log add to a warm of {FILES:,} files, {spent:.1f} s (target < {TARGET:.0%})",
        ["", "times", "each", "in all"],
        [
            *([row.what, f"{row.times:,}", f"{row.each * 1e6:.1f} µs", f"{row.spent:.3f} s"] for row in rows),
            ["share", "", "", f"{share:.2%}"],
        ],
    )
    return all(row.times > 0 and row.each > 0 for row in rows) and share < TARGET
