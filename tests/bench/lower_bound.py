"""Time until all is resident, against what the simulated FSx could do at best, and against the best shell line.

In virtual time, with the calls' measured costs. The bound is bytes / bandwidth or files x latency / agents, whichever
is more, of the files that nothing goes wrong with, which are what "resident" waits for, and of others that are resident
by then. "Ended" is when fsxwarm knew of every file what had become of it; a shell line never does. A file that fails
has no object, one that stalls is running without a byte moved until it is cancelled and asked for again, which root may
do after some minutes, or one where restores are quick. The queue is that of all metadata targets together.

The best fixed window is the smallest of a sweep that is within 1.5 % of the quickest, over a smaller tree of the same
kind; the adaptive one is then set beside it on that tree. Memory is by how much a process of its own grew while it
warmed, less what the simulation alone grew by.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from random import Random

from bench.contest import Row, Run, Trouble, Way, contest
from bench.tables import table
from fsxwarm.model.units import format_duration
from fsxwarm.sim.datasets import Dataset
from fsxwarm.sim.faults import Fault
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.spec import WorldSpec

TARGET, ENOUGH_QUEUE, MOST_RPCS = 1.05, 2.5, 5.5
WORKERS = 2
FSXWARM, BY_LFS, BARE = Way(), Way(lfs=True), Way(bare=True)
SHELLS = {"-n 50 -P 8": Way(line=(50, 8)), "-n 5 -P 32": Way(line=(5, 32))}
PUBLISHED = WorldSpec(agents=64, latency=0.5)
"""1 GB/s and 128 files/s: about what was published of a 28.8 TB file system."""
_PLATEAU = 3
_AS_QUICK = 1.015


def published_sizes(chance: Random) -> int:
    """Log-normal, from 4 KB to 2 GB; 37,000 files come to the published 345 GB."""
    return round(min(max(1_260_000 * chance.lognormvariate(0.0, 2.0), 4000), 2_000_000_000))


@dataclass(frozen=True)
class Bench:
    """A row, and how many files its sweep has, over which windows.

    `accepted` are targets that are known to be missed, and the figures up to which this is no news.
    """

    row: Row
    swept: int
    windows: tuple[int, ...]
    accepted: Mapping[str, float] = field(default_factory=dict)

    @property
    def small(self) -> Row:
        """The smaller tree of the same kind."""
        return replace(self.row, dataset=replace(self.row.dataset, files=self.swept))


_WINDOWS = (32, 48, 64, 96, 128, 192, 256, 384)
_PUBLISHED = Dataset(37_000, published_sizes)
_UNJAMMED = replace(PUBLISHED, max_requests=100_000)
"""What is stuck keeps nobody else from running: it is fsxwarm that is measured."""
_NO_LINE_WAITS = {"shell": 1.07}
"""A line asks for the first file when it has found it, and for all as it goes; fsxwarm walks first, to see whether all
fits, starts with few, and drains its window now and then to learn how long files take."""
BENCHES = {
    # The flags of the first hundred files of a size are read.
    "8 x 8 GB": Bench(Row(Dataset(8, fixed(8 * 10**9))), 8, (4, 6, 8), {"RPCs": 9.3}),
    "37,000 log-normal, 345 GB": Bench(
        Row(_PUBLISHED, PUBLISHED), 6000, _WINDOWS, _NO_LINE_WAITS | {"RPCs": 5.6}
    ),
    # A file that fails is asked for three times, and each time it and others are asked what has become of them.
    "37,000 log-normal, 1 % fail": Bench(
        Row(_PUBLISHED, PUBLISHED, Trouble(Fault.OBJECT_MISSING, 0.01)), 6000, _WINDOWS,
        _NO_LINE_WAITS | {"time": 1.07, "RPCs": 6.3},
    ),
    # What is stuck takes up room until it is late.
    "37,000 log-normal, 5 % stall": Bench(
        Row(_PUBLISHED, _UNJAMMED, Trouble(Fault.STUCK, 0.05, tries=1)), 6000, (96, 192, 384),
        {"time": 1.1, "shell": 1.1, "RPCs": 8.5},
    ),
    "1,000,000 x 100 KB": Bench(Row(Dataset(1_000_000, fixed(100_000))), 20_000, _WINDOWS),
}  # fmt: skip


def _large(name: str, way: Way) -> Run:
    return contest(BENCHES[name].row, way)


def _small(name: str, way: Way) -> Run:
    return contest(BENCHES[name].small, way)


def _best_fixed(name: str) -> tuple[int, Run]:
    """The smallest window that is about as quick as the quickest."""
    runs: dict[int, Run] = {}
    for window in BENCHES[name].windows:
        runs[window] = _small(name, Way(window=window))
        times = [run.asking for run in runs.values()]
        if len(times) > _PLATEAU and min(times[-_PLATEAU:]) > 0.995 * min(times[:-_PLATEAU]):
            break
    quickest = min(run.asking for run in runs.values())
    return next((window, run) for window, run in runs.items() if run.asking <= _AS_QUICK * quickest)


@dataclass(frozen=True)
class Found:
    """All runs of a row: the whole tree by fsxwarm, by the shell lines and bare; the small one in three ways."""

    native: Run
    shells: Mapping[str, Run]
    bare: Run
    small: Run
    small_lfs: Run
    window: int
    best: Run

    @property
    def shell(self) -> tuple[str, Run]:
        """The quicker shell line."""
        return min(self.shells.items(), key=lambda line: line[1].resident)

    @property
    def queue(self) -> float:
        """How much deeper the adaptive window's queue was than the best fixed one's."""
        return self.small.deepest / self.best.deepest

    @property
    def memory(self) -> int:
        """Bytes that fsxwarm itself took."""
        return max(0, self.native.memory - self.bare.memory)

    def missed(self) -> Iterator[tuple[str, float]]:
        """The targets that are not kept, and what was found instead."""
        native = self.native
        troubled = native.sound < native.files
        time = (native.resident if troubled else native.ended) / native.bound
        if time > TARGET:
            yield "time", time
        if native.left != native.lost:
            yield "released files", native.left
        if native.resident > self.shell[1].resident:
            yield "shell", native.ratio
        if self.queue > ENOUGH_QUEUE:
            yield "queue", self.queue
        if native.rpc > MOST_RPCS:
            yield "RPCs", native.rpc
        if native.processes:
            yield "processes", native.processes
        if native.asked_twice:
            yield "twice", native.asked_twice


@dataclass(frozen=True)
class Running:
    """A row's runs, each in a process of its own."""

    native: Future[Run]
    shells: Mapping[str, Future[Run]]
    bare: Future[Run]
    small: Future[Run]
    small_lfs: Future[Run]
    best: Future[tuple[int, Run]]

    @classmethod
    def start(cls, pool: ProcessPoolExecutor, name: str) -> Running:
        return cls(
            pool.submit(_large, name, FSXWARM),
            {line: pool.submit(_large, name, way) for line, way in SHELLS.items()},
            pool.submit(_large, name, BARE),
            pool.submit(_small, name, FSXWARM),
            pool.submit(_small, name, BY_LFS),
            pool.submit(_best_fixed, name),
        )

    def found(self) -> Found:
        shells = {line: future.result() for line, future in self.shells.items()}
        small, small_lfs = self.small.result(), self.small_lfs.result()
        return Found(self.native.result(), shells, self.bare.result(), small, small_lfs, *self.best.result())


def main(only: str = "") -> bool:
    """Print the tables; returns whether no row misses its targets by more than is known.

    `only`: rows whose name contains this.
    """
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=fresh, max_tasks_per_child=1) as pool:
        running = {name: Running.start(pool, name) for name in reversed(BENCHES) if only in name}
        found = {name: _awaited(name, running[name]) for name in BENCHES if name in running}
    missed = {name: ", ".join(_told(name, each)) for name, each in found.items()}
    _show_times(found, missed)
    _show_costs(found, missed)
    return not any(_news(name, *miss) for name, each in found.items() for miss in each.missed())


def _news(name: str, target: str, figure: float) -> bool:
    """Whether a target is missed by more than is known."""
    return figure > BENCHES[name].accepted.get(target, 0.0)


def _told(name: str, found: Found) -> Iterator[str]:
    for target, figure in found.missed():
        yield target + ("!" if _news(name, target, figure) else "")


def _awaited(name: str, running: Running) -> Found:
    found = running.found()
    print(f"{name}: measured", file=sys.stderr)  # minutes pass before the tables
    return found


def _show_times(found: Mapping[str, Found], missed: Mapping[str, str]) -> None:
    rows = []
    for name, each in found.items():
        native, (_, shell) = each.native, each.shell
        rows.append([
            name, format_duration(native.bound), f"{native.ratio:.3f}", f"{native.ended / native.bound:.3f}",
            f"{native.left:,}", f"{shell.ratio:.3f}", f"{shell.left:,}", f"{native.deepest:,}", f"{shell.deepest:,}",
            f"{each.small.deepest:,}", f"{each.best.deepest:,} ({each.window:,})", f"{each.queue:.2f}",
            missed[name] or "none",
        ])  # fmt: skip
    table(
        f"Time until all is resident / lower bound (targets ≤ {TARGET}, no slower than the best shell line; a queue"
        f" ≤ {ENOUGH_QUEUE} x the best fixed window's; with ! missed by more than is known)",
        [
            "released files", "bound", "resident", "ended", "left", "shell", "left", "queue", "shell's", "small tree",
            "best fixed", "ratio", "targets missed",
        ],
        rows,
        [_figures(name, each, missed[name]) for name, each in found.items()],
    )  # fmt: skip


def _show_costs(found: Mapping[str, Found], missed: Mapping[str, str]) -> None:
    rows = []
    for name, each in found.items():
        native, lfs, (line, shell) = each.native, each.small_lfs, each.shell
        rows.append([
            name, f"{native.rpc:.2f}", f"{lfs.rpc:.2f}", f"{shell.rpc:.2f}", f"{native.processes / native.files:.3f}",
            f"{lfs.processes / lfs.files:.3f}", f"{shell.processes / shell.files:.3f}", f"{native.asked_twice:,}",
            f"{each.memory / 1e6:.0f} MB", f"{(native.cpu - each.bare.cpu) / native.files * 1e6:.0f} µs", line,
            missed[name] or "none",
        ])  # fmt: skip
    table(
        f"What that takes for each file (targets: RPCs ≤ {MOST_RPCS}, no process, none asked twice); lfs: small tree",
        [
            "released files", "RPCs", "by lfs", "shell", "processes", "by lfs", "shell", "asked twice", "memory", "CPU",
            "best shell line", "targets missed",
        ],
        rows,
    )  # fmt: skip


def _figures(name: str, each: Found, missed: str) -> Mapping[str, object]:
    """A row as a program wants it."""
    runs = {
        "native": each.native, "bare": each.bare, "small": each.small, "small lfs": each.small_lfs,
        "best fixed": each.best, **{f"shell {line}": run for line, run in each.shells.items()},
    }  # fmt: skip
    return {
        "row": name, "window": each.window, "queue ratio": each.queue, "memory": each.memory, "missed": missed,
        **{way: asdict(run) | {"ratio": run.ratio, "rpc": run.rpc} for way, run in runs.items()},
    }  # fmt: skip
