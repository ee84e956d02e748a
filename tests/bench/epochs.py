"""The first epoch of a training, warmed in three ways, on the simulated FSx in virtual time.

32 readers take 37,000 files of 9.3 MB in random order, as data loaders do. They are calibrated to published rates of a
cold epoch, 287 MB/s, and of a warm one, 619 MB/s; FSx restores 1 GB/s at most. Nodes are idle, from their allocation
on, for as long as it takes longer than a warm epoch.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.tables import table
from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.policy import Policy
from fsxwarm.model.units import format_duration
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import Costs, WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

FILES, SIZE = 37_000, 9_300_000
READERS, COLD, WARM = 32, 287e6, 619e6
RESTORE = READERS * SIZE * (1 / COLD - 1 / WARM)
"""Seconds of one restore by which readers that wait for each file come to the rate of a cold epoch."""
SPEC = WorldSpec(agents=64, latency=RESTORE, bandwidth=1e9, ost_size=10**17, costs=Costs(process=0.03))
NODES = 8


@dataclass(frozen=True)
class Epoch:
    """Seconds: before the nodes were allocated, before the training began on them, and of its first epoch."""

    staged: float
    prolog: float
    epoch: float

    @property
    def idle(self) -> float:
        return self.prolog + self.epoch - FILES * SIZE / WARM


class Scene:
    """A released dataset, and those who read and warm it."""

    def __init__(self) -> None:
        self.world = World(SPEC)
        self.names = VirtualNamespace(self.world)
        self.paths = make(self.names, Dataset(FILES, fixed(SIZE)))
        self.clockwork = Clockwork(self.world)

    async def read_all(self) -> None:
        """One epoch: each reader takes the next file as soon as it has the one before."""
        left = deque(random.Random(1).sample(self.paths, len(self.paths)))

        async def reader() -> None:
            while left:
                await self._read(left.popleft())

        await asyncio.gather(*(reader() for _ in range(READERS)))

    async def _read(self, path: bytes) -> None:
        here: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.names.read(path, self.clockwork.now()).when_done(here.set_result)
        await here
        await asyncio.sleep(READERS * SIZE / WARM)

    async def one_liner(self) -> None:
        """`find … | xargs -n 1 -P 32 lfs hsm_restore`: it ends when all have been asked for."""
        hsm, left = SimHsm(self.clockwork, self.names), deque(self.paths)

        async def asker() -> None:
            while left:
                await hsm.restore([left.popleft()])

        await asyncio.gather(*(asker() for _ in range(READERS)))

    async def fsxwarm(self) -> None:
        hsm, tree = SimHsm(self.clockwork, self.names), SimTree(self.clockwork, self.names)
        await Warmer(tree, hsm, Selection(tree, [self.names.mount.path]), Policy(), Wish(), Quiet()).run()


async def _nothing(_: Scene) -> None: ...


Work = Callable[[Scene], Coroutine[Any, Any, None]]


def epoch(staging: Work, prolog: Work) -> Epoch:
    """What it takes with this done before the allocation, and that in the Prolog."""

    async def go() -> Epoch:
        scene = Scene()
        now = asyncio.get_running_loop().time
        times = [now()]
        for work in (staging, prolog, Scene.read_all):
            await work(scene)
            times.append(now())
        return Epoch(*(after - before for before, after in pairwise(times)))

    return run(go())


def main() -> bool:
    """Print the table; returns whether staging leaves no node idle."""
    ways = {
        "lazy: nothing is warmed": epoch(_nothing, _nothing),
        "the one-liner in a Prolog": epoch(_nothing, Scene.one_liner),
        "fsxwarm before allocation": epoch(Scene.fsxwarm, _nothing),
    }
    rows = [
        [
            name, format_duration(it.staged) if it.staged else "", format_duration(it.prolog) if it.prolog else "",
            format_duration(it.epoch), f"{FILES * SIZE / it.epoch / 1e6:,.0f} MB/s",
            f"{max(0, it.idle) / 60:.1f} min", f"{max(0, it.idle) / 60 * NODES:,.0f} min",
        ]
        for name, it in ways.items()
    ]  # fmt: skip
    table(
        f"The first epoch of {FILES:,} files, {FILES * SIZE / 1e9:.0f} GB: simulated; readers as published,"
        f" {COLD / 1e6:.0f} MB/s cold and {WARM / 1e6:.0f} MB/s warm",
        ["", "while pending", "in the Prolog", "epoch", "at", "idle", f"of {NODES} nodes"],
        rows,
    )
    return ways["fsxwarm before allocation"].idle < 1.0


if __name__ == "__main__":
    sys.exit(not main())
