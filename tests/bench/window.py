"""The adaptive window against the best fixed one, in virtual time: the real engine over the simulated FSx.

Agents share 100 MB/s for each of them. A tree takes the agents at least a minute, or 40 restores one after another,
whichever is longer, or has 250,000 files. The best fixed window is the smallest of a sweep whose rate is within 1.5 %
of the highest: its steady rate over shorter trees, or over the whole tree where something happens in the middle. Then
both warm the whole tree: rates are those of the whole run, from the first request on, start-up and tail included. In
flight is the mean over time from a third of the files on, per client. Look-ups are those of state and action that
reached the servers: the median over files, then the mean.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.messages import Finish
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.sim import vloop
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

SMALL, MIDDLE, LARGE, MIX = 100_000, 10_000_000, 2_000_000_000, 0
NAMES = {SMALL: "100 KB", MIDDLE: "10 MB", LARGE: "2 GB", MIX: "mix"}
RELEASED = Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED
SWEEP = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 5000)
ENOUGH_RATE, ENOUGH_QUEUE, ENOUGH_LOOKS, ENOUGH_SHARE = 0.92, 2.5, 3, 1 / 3
LONG, SHORT = (60.0, 40.0, 250_000), (15.0, 20.0, 50_000)
"""Lengths of runs: in seconds and in restores one after another, whichever takes longer; and the most files."""
FEWEST = 300
PLATEAU = 3
"""A sweep ends when so many windows in a row brought nothing more."""


@dataclass(frozen=True)
class Row:
    """One world. `accident` happens in the middle of what its lower bound takes."""

    name: str
    agents: int
    latency: float
    size: int
    accident: str = ""
    clients: int = 1

    def sizes(self, length: tuple[float, float, int]) -> list[int]:
        """The files of a tree that takes so long."""
        chance = random.Random(1)
        mixed = [int(min(2e9, max(4096, chance.lognormvariate(16, 2.2)))) for _ in range(10_000)]
        size = self.size or mean(mixed)
        service = self.latency + size / 1e8
        files = int(min(max(self.agents / service * max(length[0], length[1] * service), FEWEST), length[2]))
        return list(islice(cycle(mixed), files)) if self.size == MIX else [self.size] * files

    @property
    def spec(self) -> WorldSpec:
        return WorldSpec(mdts=1, agents=self.agents, latency=self.latency, bandwidth=self.agents * 1e8, ost_size=10**17)


@dataclass(frozen=True)
class Result:
    """What one run was like.

    `rate` files per second over all, `steady` from a third of the files on; files in flight per client; look-ups per
    file, median and mean; the least share of any client.
    """

    seconds: float
    rate: float
    steady: float
    in_flight: float
    lookups: tuple[float, float]
    share: float


class CountingHsm(SimHsm):
    """Counts the look-ups that each file costs."""

    def __init__(self, clockwork: Clockwork, names: VirtualNamespace) -> None:
        super().__init__(clockwork, names)
        self.lookups: Counter[bytes] = Counter()

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        self.lookups.update(paths)
        return await super().states(paths, keys)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        self.lookups.update(paths)
        return await super().actions(paths, keys)


class Watch(Quiet):
    """Hears when files settle."""

    def __init__(self, clock: Callable[[], float], times: list[float]) -> None:
        super().__init__()
        self._clock = clock
        self._times = times
        self.mine = 0

    def settled(self, finish: Finish) -> None:
        del finish
        self.mine += 1
        self._times.append(self._clock())

    def trouble(self, trouble: Trouble) -> None:
        raise AssertionError(trouble)


def happen(accident: str, world: World, agents: int, now: float) -> None:
    """Let the accident happen."""
    if accident == "stop":
        world.stop_coordinators(60.0, now)
    else:
        world.set_agents(agents // 2 if accident == "halve" else agents * 2, now)


async def measure(row: Row, fixed: int | None, length: tuple[float, float, int] = LONG) -> Result:
    """Warm a tree that takes so long, with the adaptive window or a fixed one."""
    loop = asyncio.get_running_loop()
    sizes = row.sizes(length)
    world = World(row.spec)
    clockwork = Clockwork(world)
    names = VirtualNamespace(world, b"/fsx")
    for number, size in enumerate(sizes):
        folder = b"/fsx/%d/%d" % (number % row.clients, number // 1000)
        if number % 1000 < row.clients:
            names.make_folder(folder)
        names.make_file(b"%s/%d" % (folder, number), size, RELEASED)
    times: list[float] = []
    watches = [Watch(loop.time, times) for _ in range(row.clients)]
    warmers, ports = [], []
    for number, watch in enumerate(watches):
        tree, hsm = SimTree(clockwork, names), CountingHsm(clockwork, names)
        chosen = Selection(tree, [b"/fsx/%d" % number])
        policy = Policy(WindowPolicy(fixed=fixed))
        ports.append(hsm)
        warmers.append(Warmer(tree, hsm, chosen, policy, Wish(reserve=None), watch))
    seen: list[tuple[int, int]] = []
    share = 0.5

    async def look_on() -> None:
        nonlocal share
        while True:
            seen.append((len(times), sum(warmer.machine.in_flight for warmer in warmers)))
            if len(times) < 0.8 * len(sizes):
                share = min(watch.mine for watch in watches) / max(1, len(times))
            await asyncio.sleep(0.25)

    onlooker = asyncio.create_task(look_on())
    if row.accident:
        middle = 0.5 * row.spec.lower_bound(len(sizes), sum(sizes))
        loop.call_later(middle, lambda: happen(row.accident, world, row.agents, loop.time()))
    await asyncio.gather(*(warmer.run() for warmer in warmers))
    onlooker.cancel()
    clockwork.stop()
    first = min(warmer.progress.first_asked or 0.0 for warmer in warmers)
    third, nearly = len(times) // 3, int(0.95 * len(times))
    in_flight = [files for done, files in seen if third <= done <= nearly] or [seen[-2][1]]
    lookups = [count for hsm in ports for count in hsm.lookups.values()]
    return Result(
        times[-1] - first,
        len(times) / (times[-1] - first),
        (nearly - third) / (times[nearly] - times[third]),
        mean(in_flight) / row.clients,
        (median(lookups), mean(lookups)),
        share,
    )


def best_fixed(row: Row) -> int:
    """The smallest window whose rate is within 1.5 % of the highest."""
    rates: dict[int, float] = {}
    for window in SWEEP:
        if row.accident:
            rates[window] = vloop.run(measure(row, window)).rate
        else:
            rates[window] = vloop.run(measure(row, window, SHORT)).steady
        quickest = max(rates, key=lambda known: rates[known])
        if window > 3 * quickest or (window > quickest and rates[window] < 0.9 * rates[quickest]):
            break
        if len(rates) > PLATEAU and max(list(rates.values())[-PLATEAU:]) < 1.005 * rates[list(rates)[-PLATEAU - 1]]:
            break
    return min(window for window, rate in rates.items() if rate >= 0.985 * max(rates.values()))


def run(row: Row) -> tuple[str, bool]:
    """Measure one row: its line in the table, and whether it is as good as it should be."""
    window = best_fixed(row)
    best, mine = vloop.run(measure(row, window)), vloop.run(measure(row, None))
    rate, queue = mine.rate / best.rate, mine.in_flight / best.in_flight
    good = (
        rate >= ENOUGH_RATE
        and queue <= ENOUGH_QUEUE
        and mine.lookups[0] <= ENOUGH_LOOKS
        and (row.clients == 1 or mine.share >= ENOUGH_SHARE)
    )
    share = f"{mine.share:6.2f}" if row.clients > 1 else " " * 6
    line = (
        f"{row.name:<28}{window:>6}{best.in_flight:>9.0f}{best.seconds:>9.0f}{mine.seconds:>9.0f}"
        f"{mine.in_flight:>9.0f}{rate:>8.3f}{queue:>7.2f}{mine.lookups[0]:>5.0f}{mine.lookups[1]:>6.2f}{share}"
        f"  {'' if good else '!'}"
    )
    return line, good


def rows() -> list[Row]:
    """All worlds of the table."""
    table = [
        Row(f"{agents}, {latency:g} s, {NAMES[size]}", agents, latency, size)
        for agents in (4, 32, 256)
        for latency in (0.02, 0.2, 2.0)
        for size in (SMALL, MIDDLE, LARGE, MIX)
    ]
    table += [Row(f"32, 2 s, 10 MB, {what}", 32, 2.0, MIDDLE, what) for what in ("halve", "double", "stop")]
    table += [Row(f"32, {latency:g} s, 10 MB, two clients", 32, latency, MIDDLE, clients=2) for latency in (0.2, 2.0)]
    return table


def main() -> int:
    """Print the table; 1 if a row is not as good as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name contains this")
    only: str = parser.parse_args().only
    print(f"{'':28}{'best fixed window':^24}{'adaptive':^18}")
    print(
        f"{'agents, latency, size':<28}{'size':>6}{'flight':>9}{'seconds':>9}{'seconds':>9}{'flight':>9}"
        f"{'rate':>8}{'queue':>7}{'lookups':>11} share"
    )
    chosen = [row for row in rows() if only in row.name]
    missed = 0
    with ProcessPoolExecutor() as workers:
        for line, good in workers.map(run, chosen):
            print(line, flush=True)
            missed += not good
    print(f"{len(chosen) - missed} of {len(chosen)} rows within rate ≥ {ENOUGH_RATE} and queue ≤ {ENOUGH_QUEUE}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
