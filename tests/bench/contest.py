"""One way of warming against one released tree, on the simulated FSx in virtual time.

Calls take what they were measured to take on Lustre 2.15.8 (`bench.cost`), so that fsxwarm and a shell line have the
same file system under them. What the servers see is counted: RPCs, processes, queues.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.cost import COSTS, NATIVE_COSTS
from bench.peers.meter import Meter, MeteredHsm, MeteredTree, Site
from bench.peers.shell import find_released
from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.hsm import Verb
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.faults import Fault, Faults, share_of_files
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.spec import Costs, WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

_ALWAYS = 10**9
_CALIBRATING = 200
_GONE_QUIET = 5.0
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Trouble:
    """A share of the files goes wrong: in their first `tries` restores, or for good (None)."""

    fault: Fault
    share: float
    tries: int | None = None

    @property
    def rule(self) -> Callable[[Node, int], Fault | None]:
        """It as the simulation has it."""
        return share_of_files(self.share, self.fault, tries=_ALWAYS if self.tries is None else self.tries)


@dataclass(frozen=True)
class Row:
    """A tree of released files, and the servers that it lies on."""

    dataset: Dataset
    spec: WorldSpec = field(default_factory=WorldSpec)
    trouble: Trouble | None = None


@dataclass(frozen=True)
class Way:
    """How it is warmed: by fsxwarm, its window adaptive or fixed, or by a shell line, so many files in each process.

    `bare`: by nothing but the servers' own methods, which tells how much memory the simulation takes by itself.
    """

    lfs: bool = False
    window: int | None = None
    line: tuple[int, int] | None = None
    bare: bool = False


@dataclass(frozen=True)
class Run:
    """What came of it. Seconds are virtual, from the start on; memory in bytes.

    `sound` are the files that nothing goes wrong with, `lost` those that nobody can restore, `left` those that were
    still released in the end. `resident` is when the last sound file was, `bound` what all that were resident by then
    take at the least, `asking` the time from the first request until then. `ended` is when the way itself was done:
    fsxwarm then knows of every file what has become of it. `memory` is by how much the process grew, the simulation's
    own growth in it; `cpu` the real seconds of processor time that all of it took. `deepest` is the most that the
    queues of all metadata targets held together.
    """

    files: int
    sound: int
    lost: int
    left: int
    bytes: int
    bound: float
    resident: float
    asking: float
    ended: float
    deepest: int
    rpcs: dict[str, int]
    processes: int
    asked_twice: int
    memory: int
    cpu: float

    @property
    def ratio(self) -> float:
        return self.resident / self.bound

    @property
    def rpc(self) -> float:
        """RPCs per file."""
        return sum(self.rpcs.values()) / self.files


class _Arrivals:
    """Notes when the last sound file became resident, and the most files that the servers had in their queues.

    `cured` are the sizes of other files that were resident by then: they took their share of the servers' time.
    """

    def __init__(self, world: World, names: VirtualNamespace, meter: Meter, trouble: Trouble | None) -> None:
        nodes = world.nodes.values()
        self.unsound = {node.fid for node in nodes if trouble and trouble.rule(node, 0)}
        self.first, self.last = 0.0, 0.0
        self.deepest = 0
        self.cured: list[int] = []
        self._since_last: list[int] = []
        self._world = world
        self._count = world.on_data
        world.on_data = self._note
        world.on_item = self._asked

    def _asked(self, verb: Verb, node: Node, caller: Caller) -> None:
        del node, caller
        self.first = self.first or self._world.now
        self.deepest = max(self.deepest, self._world.restoring + (verb is Verb.RESTORE))

    def _note(self, node: Node, resident: bool) -> None:  # noqa: FBT001 - the world's callback
        self._count(node, resident)
        if resident and node.fid not in self.unsound:
            self.last = self._world.now
            self.cured += self._since_last
            self._since_last.clear()
        elif resident:
            self._since_last.append(node.size)


def contest(row: Row, way: Way) -> Run:
    """Let it happen. To learn of memory, call it in a fresh process."""
    return run(_contest(row, way))


async def _contest(row: Row, way: Way) -> Run:
    spec = replace(row.spec, costs=_costs(way))
    faults = Faults()
    if row.trouble:
        faults.restore.append(row.trouble.rule)
    world = World(spec, faults)
    names = VirtualNamespace(world)
    paths = make(names, row.dataset)
    clockwork, meter = Clockwork(world), Meter(names)
    by_lfs = way.lfs or way.line is not None
    hsm, tree = MeteredHsm(clockwork, names, meter, lfs=by_lfs), MeteredTree(clockwork, names, meter)
    arrivals = _Arrivals(world, names, meter, row.trouble)
    sound = [node.size for node in world.nodes.values() if node.fid not in arrivals.unsound]
    started, before = time.process_time(), _memory("VmRSS")
    _forget_peak()
    await _warm(Site(names, hsm, tree, meter), clockwork, way)
    ended = clockwork.now()
    while world.restoring:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(_GONE_QUIET)
    memory = _memory("VmHWM") - before
    cpu = time.process_time() - started
    world.validate()
    return Run(
        files=len(paths),
        sound=len(sound),
        lost=len(arrivals.unsound) if row.trouble and row.trouble.tries is None else 0,
        left=sum(names.file(path).node.flags.released for path in paths),
        bytes=sum(sound),
        bound=spec.lower_bound(len(sound + arrivals.cured), sum(sound + arrivals.cured)),
        resident=arrivals.last,
        asking=arrivals.last - arrivals.first,
        ended=ended,
        deepest=arrivals.deepest,
        rpcs=dict(meter.rpcs),
        processes=meter.processes,
        asked_twice=world.counts["duplicates"],
        memory=memory,
        cpu=cpu,
    )


def _costs(way: Way) -> Costs:
    """What calls take. fsxwarm stats in its own processes, whoever makes the other calls; `lfs find` in one."""
    if way.line is not None:
        return COSTS
    return replace(COSTS, stat=NATIVE_COSTS.stat) if way.lfs else NATIVE_COSTS


async def _warm(site: Site, clockwork: Clockwork, way: Way) -> None:
    if way.line is not None:
        several, width = way.line
        await find_released(site, several=several, width=width)
    elif way.bare:
        await _bare(site, clockwork)
    else:
        selection = Selection(site.tree, [site.names.mount.path])
        policy = Policy(WindowPolicy(fixed=way.window), may_cancel=True)
        await Warmer(site.tree, site.hsm, selection, policy, Wish(), Quiet()).run()


async def _bare(site: Site, clockwork: Clockwork) -> None:
    """Have all files restored, a few at a time, with nobody who keeps account of them."""
    world, nodes = clockwork.world, iter(list(clockwork.world.nodes.values()))
    site.meter.statted(site.names.walk())
    while some := list(itertools.islice(nodes, _CALIBRATING)):
        for at in range(0, len(some), 50):
            world.request(Verb.RESTORE, [node.fid for node in some[at : at + 50]], ROOT, clockwork.now())
        while world.restoring:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)


def _memory(what: str) -> int:
    """What this process holds (VmRSS), or has held at the most (VmHWM), in bytes."""
    found = re.search(rf"^{what}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def _forget_peak() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
