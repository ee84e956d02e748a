"""A daemon's core over a simulated FSx in virtual time, that can be killed at any moment and started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aws.paper_cloud import PaperCloud
from fsxwarm.engine.means import Means
from fsxwarm.engine.service import Service, ServicePlan
from fsxwarm.model.job import ROOT, Identity, JobOptions, JobRequest, JobView, Kind
from fsxwarm.sim.calls import Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.faults import Faults
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World
from fsxwarm.store.sqlite import SqliteStore
from paper_archive import PaperLog, paper_archive

MB = 10**6
EPOCH = 1_700_000_000.0
ANN, BOB = Identity(1000, (1000,)), Identity(1001, (1001,))


class Stage:
    """A world that outlives the services over it. `folder` holds the store."""

    def __init__(self, folder: Path, faults: Faults | None = None, **spec: Any) -> None:
        self.path = str(folder / "state.db")
        self.world = World(WorldSpec(**spec), faults)
        self.names = VirtualNamespace(self.world)
        self.clockwork = Clockwork(self.world)
        self.paths: list[bytes] = []
        self.cloud: PaperCloud | None = None
        """None: there are no credentials."""
        self.log = PaperLog()
        self.said: list[str] = []

    def fill(self, files: int, size: int = MB, **more: Any) -> None:
        self.paths = make(self.names, Dataset(files, fixed(size), **{"time": int(EPOCH) - 7 * 86400, **more}))

    def wall(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()

    # The Access port

    def tree(self, identity: Identity) -> SimTree:
        return SimTree(self.clockwork, self.names, _caller(identity))

    def hsm(self, identity: Identity) -> SimHsm:
        return SimHsm(self.clockwork, self.names, _caller(identity))

    # Services

    def _new(self, store: SqliteStore, plan: ServicePlan) -> Service:
        return Service(self.means(store), plan)

    def means(self, store: SqliteStore) -> Means:
        archive = paper_archive(self.cloud, self.log, self.said)
        return Means(self.tree(ROOT), self.hsm(ROOT), self, store, archive, self.wall)

    @asynccontextmanager
    async def service(self, **plan: Any) -> AsyncIterator[Service]:
        """A service until the end of the block, which then drains; what broke in it is raised."""
        store = await SqliteStore.open(self.path)
        service = self._new(store, ServicePlan(**plan))
        try:
            async with service:
                yield service
                await asyncio.sleep(0)
                broken = [task for task in service._background if task.done() and not task.cancelled()]
                assert not broken, [task.exception() for task in broken]
        finally:
            await store.close()

    async def start(self, **plan: Any) -> Service:
        """A service that ends by `kill`."""
        store = await SqliteStore.open(self.path)
        service = self._new(store, ServicePlan(**plan))
        await service.__aenter__()
        return service

    async def kill(self, service: Service) -> None:
        """End a service as SIGKILL does: nothing more is stored."""
        store = service._store
        assert isinstance(store, SqliteStore)
        database, store._db = store._db, None
        for task in service._background:
            task.cancel()
        await asyncio.gather(*service._background, return_exceptions=True)
        assert database is not None
        database.close()
        store._thread.shutdown(wait=False)

    # What is there

    def resident(self, paths: Sequence[bytes] | None = None) -> int:
        return sum(not self.names.file(p).node.flags.released for p in (self.paths if paths is None else paths))

    @property
    def duplicates(self) -> int:
        return self.world.counts["duplicates"]


def _caller(identity: Identity) -> Caller:
    return Caller(identity.uid, frozenset(identity.gids))


def request(*paths: bytes, identity: Identity = ANN, kind: Kind = Kind.PRELOAD, **more: Any) -> JobRequest:
    """A request with options among its fields."""
    known = {name: more.pop(name) for name in list(more) if name in JobOptions.__dataclass_fields__}
    return JobRequest(kind, identity, paths or (b"/fsx",), options=JobOptions(**known), **more)


async def ended(service: Service, job_id: str, seconds: float = 10_000.0) -> JobView:
    """Wait for a job's end."""
    async with asyncio.timeout(seconds):
        while not (view := await service.wait(job_id, 600.0)).job.phase.final:
            pass
    return view


def play(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on a virtual loop."""
    run(act())
