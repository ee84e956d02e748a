"""What each way of warming asks of the metadata servers, per restored and per resident file; virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from bench.peers.azure import batches
from bench.peers.meter import Meter, MeteredHsm, MeteredTree, Site
from bench.peers.shell import find_released, one_liner
from bench.tables import table
from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.policy import Policy
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.spec import Costs, WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

FILES = 12_000
SIZE = 100_000
COSTS = Costs(
    stat=0.0004, state=0.0016, action=0.0016, request=0.0004, process=0.030, per_queued=(0.0005 - 0.00035) / 550
)
"""Seconds, as measured on one (emulated) machine with Lustre 2.15.8: only their ratios mean anything."""
NATIVE_COSTS = replace(
    COSTS, stat=COSTS.stat / 8, state=COSTS.state / 8, action=COSTS.action / 8, request=COSTS.request / 8, process=0.0
)
"""Two helpers look at eight pieces each at a time; we count on half of that."""

MOST_RESTORED = 5.5
MOST_WITHOUT_LOOKS = 2.3
MOST_RESIDENT = 1.0


class Way(NamedTuple):
    """A way of warming: what it does, whether by `lfs`, and whether it knows in the end what is resident.

    `version` is that of the servers; `most` the target in RPCs per restored file.
    """

    do: Callable[[Site], Awaitable[None]]
    lfs: bool = True
    knows: bool = False
    version: tuple[int, ...] = (2, 15, 8)
    most: float = math.inf


async def fsxwarm(site: Site) -> None:
    """The engine itself, wired as the command does it."""
    skips = not site.names.world.spec.duplicates_block
    policy = Policy(skip_duplicates=frozenset({site.names.mount.dev}) if skips else frozenset())
    selection = Selection(site.tree, [site.names.mount.path])
    await Warmer(site.tree, site.hsm, selection, policy, Wish(), Quiet()).run()


WAYS = {
    "one-liner -P 8": Way(partial(one_liner, width=8)),
    "one-liner -P 32": Way(partial(one_liner, width=32)),
    "Azure batches of 5,000": Way(partial(batches, outstanding=5_000)),
    "lfs find | xargs -n 5 -P 32": Way(partial(find_released, several=5, width=32)),
    "lfs find | xargs -n 50 -P 8": Way(partial(find_released, several=50, width=8)),
    "fsxwarm --backend lfs": Way(fsxwarm, knows=True),
    "fsxwarm --backend native": Way(fsxwarm, lfs=False, knows=True, most=MOST_RESTORED),
    "fsxwarm native, server 2.16": Way(fsxwarm, lfs=False, knows=True, version=(2, 16, 0), most=MOST_WITHOUT_LOOKS),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Per file: RPCs by kind, and processes; seconds until all was resident over the least; the deepest queue."""

    rpcs: dict[str, float]
    processes: float
    ratio: float
    deepest: int

    @property
    def rpc(self) -> float:
        return sum(self.rpcs.values())


def measure(way: Way, *, released: bool, files: int = FILES) -> Cost:
    """Let a way loose on a tree that is all released, or all resident."""

    async def go() -> Cost:
        spec = WorldSpec(costs=COSTS if way.lfs else NATIVE_COSTS, version=way.version)
        world = World(spec)
        names = VirtualNamespace(world)
        make(names, Dataset(files, fixed(SIZE), released=float(released)))
        clockwork, meter = Clockwork(world), Meter(names)
        site = Site(
            names, MeteredHsm(clockwork, names, meter, lfs=way.lfs), MeteredTree(clockwork, names, meter), meter
        )
        await way.do(site)
        while world.restoring:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        left = sum(names.file(path).node.flags.released for path in names.walk())
        if left:
            raise RuntimeError(f"{left} files are still released")
        return Cost(
            {kind: count / files for kind, count in meter.rpcs.items()},
            meter.processes / files,
            clockwork.now() / spec.lower_bound(files, files * SIZE),
            world.deepest,
        )

    return run(go())


def main() -> bool:
    """Print the table; returns whether the targets of the native way are kept."""
    rows, good = [], True
    for name, way in WAYS.items():
        cold, warm = measure(way, released=True), measure(way, released=False)
        if not way.lfs:
            good &= cold.rpc <= way.most and warm.rpc <= MOST_RESIDENT and not cold.processes + warm.processes
        rows.append([
            name, *(f"{cold.rpcs.get(kind, 0):.2f}" for kind in ("getattr", "open", "ioctl", "close", "request")),
            f"{cold.rpc:.2f}", f"{cold.processes:.3f}", f"{warm.rpc:.2f}", f"{warm.processes:.3f}",
            f"{cold.deepest:,}", f"{cold.ratio:.2f}", "yes" if way.knows else "no",
        ])  # fmt: skip
    table(
        f"RPCs to the metadata servers per file, {FILES:,} x 100 KB"
        f" (native: targets ≤ {MOST_RESTORED} restored, ≤ {MOST_WITHOUT_LOOKS} on 2.16, ≤ {MOST_RESIDENT:g} resident,"
        " no process)",
        [
            "way", "getattr", "open", "ioctl", "close", "request", "restored", "processes", "resident", "processes",
            "deepest queue", "time / bound", "knows the end",
        ],
        rows,
    )  # fmt: skip
    return good
