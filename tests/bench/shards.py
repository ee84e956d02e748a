"""What shards gain where one client cannot ask as fast as the file system restores; virtual time.

One client gets 110 files/s through, the file system restores 345 files/s (both as published of real ones: 85 to 170,
and about 345 with four clients). Each shard is a client of its own, with the command's own window divided by shards.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bench.tables import table
from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.shard import Shard
from fsxwarm.model.units import format_duration
from fsxwarm.ports.tree import Filters
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

CLIENT, FILE_SYSTEM = 110.0, 345.0
SPEC = WorldSpec(agents=69, latency=69 / FILE_SYSTEM, bandwidth=1e12, client_rate=CLIENT)
DATASET = Dataset(20_000, fixed(1_000_000), associations=4)
SHARDS = (1, 2, 4, 8)
TARGET = {1: 1.0, 2: 1.4, 4: 2.3, 8: 3.0}
"""Gain over one client, by shards."""


@dataclass(frozen=True)
class Shared:
    """What a preload by several shards was like. Seconds are virtual; `largest` is the part of the largest shard."""

    seconds: float
    restored: int
    asked_twice: int
    largest: float


def warm(count: int) -> Shared:
    """Warm the dataset by so many shards at once."""

    async def go() -> Shared:
        world = World(SPEC)
        names = VirtualNamespace(world)
        files = len(make(names, DATASET))
        clockwork = Clockwork(world)
        bounds = WindowPolicy()

        def warmer(index: int) -> Warmer:
            shard = Shard(index, count)
            hsm, tree = SimHsm(clockwork, names), SimTree(clockwork, names)
            window = WindowPolicy(shard.part(bounds.start), shard.part(bounds.floor), shard.part(bounds.ceiling))
            selection = Selection(tree, [names.mount.path], filters=Filters(shard=shard))
            return Warmer(tree, hsm, selection, Policy(window), Wish(), Quiet())

        warmers = [warmer(index) for index in range(1, count + 1)]
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(one.run() for one in warmers))
        seconds = asyncio.get_running_loop().time() - began
        world.validate()
        restored = [one.progress.settled[Outcome.RESTORED].files for one in warmers]
        return Shared(seconds, sum(restored), world.counts["duplicates"], max(restored) / files * count)

    return run(go())


def main() -> bool:
    """Print the table; returns whether every row keeps its target."""
    rows, good, alone = [], True, 0.0
    for count in SHARDS:
        found = warm(count)
        rate = found.restored / found.seconds
        alone = alone or rate
        share = rate / min(count * CLIENT, FILE_SYSTEM)
        good &= rate / alone >= TARGET[count] and found.restored == DATASET.files and not found.asked_twice
        rows.append([
            f"{count}", format_duration(found.seconds), f"{rate:,.0f}", f"{rate / alone:.2f} x", f"{share:.2f}",
            f"{found.largest:.3f}", f"{found.asked_twice}",
        ])  # fmt: skip
    table(
        f"Shards: {DATASET.files:,} files; {CLIENT:.0f} files/s a client, {FILE_SYSTEM:.0f} in all"
        f" (target: a gain of {TARGET[4]} with four)",
        ["shards", "time", "files/s", "gain", "of the best", "largest part", "asked twice"],
        rows,
    )
    return good
