"""What watching costs: processor time of the daemon's core over warms of 100,000 files in all, seen and unseen.

Seen: every call to the file system is counted, every event written down at level info, and metrics are scraped every
15 s. Unseen: none of this; the core's own count of settled files (0.3 µs each) is in both. Each is done again and again
in small warms, in turn, and the quickest of each counts: what else the machine does only adds. Time is virtual, and
more than half of the processor's is the simulator's.
"""

from __future__ import annotations

import asyncio
import gc
import io
import tempfile
import time
from pathlib import Path

from bench.tables import table
from fsxwarm.daemon.chronicle import Chronicle
from fsxwarm.daemon.logs import log, set_up, writes
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import ServicePlan
from fsxwarm.engine.service import Service
from fsxwarm.metrics.exposition import Exposition
from fsxwarm.model.meter import Meter
from fsxwarm.model.outcome import Outcome
from fsxwarm.sim.vloop import run
from fsxwarm.store.sqlite import SqliteStore
from service_stage import Stage, ended, request

FILES = 100_000
WARMS = 20
SIZE = 100_000
SCRAPE_EVERY = 15.0
TARGET = 0.03


class Unmetered(Means):
    """Ports whose calls nobody counts."""

    def metered(self, meter: Meter) -> Means:
        return self


async def _scrape(service: Service) -> None:
    exposition = Exposition(service.measures)
    while True:
        exposition.text()
        await asyncio.sleep(SCRAPE_EVERY)


async def _seen(stage: Stage, store: SqliteStore) -> float:
    chronicle = Chronicle(log, time.monotonic, writes)
    service = Service(stage.means(store), ServicePlan(), hears=chronicle.hear, wants=chronicle.wants)
    chronicle.view = service.job
    began = time.process_time()
    async with service:
        scraping = asyncio.create_task(_scrape(service))
        await ended(service, (await service.submit(request())).id)
        scraping.cancel()
    assert service.meter.settled_files[Outcome.RESTORED].files == FILES // WARMS
    assert service.meter.calls
    return time.process_time() - began


async def _unseen(stage: Stage, store: SqliteStore) -> float:
    means = stage.means(store)
    unmetered = Unmetered(means.tree, means.hsm, means.access, means.store, means.archive, means.wall)
    service = Service(unmetered, ServicePlan(), wants=lambda _kind: False)
    began = time.process_time()
    async with service:
        await ended(service, (await service.submit(request())).id)
    assert service.meter.settled_files[Outcome.RESTORED].files == FILES // WARMS
    assert not service.meter.calls
    return time.process_time() - began


def _once(*, seen: bool) -> float:
    async def act() -> float:
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(Path(folder))
            stage.fill(FILES // WARMS, SIZE)
            store = await SqliteStore.open(stage.path)
            spent = await (_seen if seen else _unseen)(stage, store)
            await store.close()
            return spent

    gc.collect()
    return run(act())


def main() -> bool:
    """Print the table; returns whether the target is kept."""
    set_up("info", io.StringIO())
    spent: dict[bool, list[float]] = {False: [], True: []}
    for warm in range(WARMS):
        for seen in (False, True) if warm % 2 else (True, False):
            spent[seen].append(_once(seen=seen))
    unseen, seen_ = (WARMS * min(spent[seen]) for seen in (False, True))
    share = seen_ / unseen - 1
    table(
        f"What metrics and log cost on warms of {FILES:,} files (target < {TARGET:.0%})",
        ["", "processor time", "a file"],
        [
            ["unseen", f"{unseen:.2f} s", f"{unseen / FILES * 1e6:.1f} µs"],
            ["seen", f"{seen_:.2f} s", f"{seen_ / FILES * 1e6:.1f} µs"],
            ["share", f"{share:+.1%}", ""],
        ],
    )
    return share < TARGET
