"""Ten million files that are resident already: no request, one stat of each, and memory that does not grow with them.

The tree is made up folder by folder; the engine that passes over it is the real one, in a process of its own whose
memory is measured. Either the tree counts residents, as a walk's helpers do, or it hands each on as an entry.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.tables import table
from bench.virtual import Quiet
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.entry import Entry, Resident, Trouble, stat_proves_resident
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.policy import Policy
from fsxwarm.ports.tree import Batch, Filters, Place, Stat
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

FILES = 10_000_000
PER_FOLDER = 1000
SIZE = 100_000
MOST_MEMORY = 150 * 10**6
WAYS = {"residents counted by the walk": False, "every file an entry": True}


class MadeUp:
    """A tree of resident files that exist nowhere; `stats` counts the looks at them."""

    abandoned = 0

    def __init__(self, files: int, *, entries: bool) -> None:
        self.stats = 0
        self._files = files
        self._entries = entries

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        return Place(path, True, False, 7, "lustre", b"/fsx", "fs@tcp:/fsx")

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        for start in range(0, self._files, PER_FOLDER):
            folder = b"%s/part-%05d" % (root.path, start // PER_FOLDER)
            yield self._folder(folder, range(start, min(start + PER_FOLDER, self._files)), whole=whole or self._entries)
            await asyncio.sleep(0)

    def _folder(self, folder: bytes, numbers: range, *, whole: bool) -> Batch:
        items: list[Entry | Resident] = []
        for number in numbers:
            found = self._stat(number)
            if whole or not stat_proves_resident(found.size, found.blocks):
                path = b"%s/sample-%08d.bin" % (folder, number)
                items.append(Entry(path, *found[:2], found.size, found.blocks, 0, 0, 0, 1, 0, 0o100644))
            elif items and isinstance(last := items[-1], Resident):
                items[-1] = Resident(last.files + 1, last.bytes + found.size)
            else:
                items.append(Resident(1, found.size))
        return Batch(folder, items)

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port: nothing is in a list here."""
        async for _ in paths:
            yield Batch(b"")

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        return [self._stat(int(re.findall(rb"\d+", path)[-1])) for path in paths]

    def _stat(self, number: int) -> Stat:
        self.stats += 1
        return Stat(7, number, SIZE, 200)

    async def close(self) -> None:
        """See the port."""


async def _pass(files: int, *, entries: bool) -> dict[str, float]:
    """Preload it all; what came of it."""
    world = World(WorldSpec())
    tree, hsm = MadeUp(files, entries=entries), SimHsm(Clockwork(world), VirtualNamespace(world))
    warmer = Warmer(tree, hsm, Selection(tree, [b"/fsx"]), Policy(), Wish(), Quiet())
    began = time.monotonic()
    status = await warmer.run()
    return {
        "status": status,
        "resident": warmer.progress.settled[Outcome.RESIDENT].files,
        "stats": tree.stats,
        "requests": warmer.requests,
        "looks": sum(warmer.looker.cost.values()),
        "calls": sum(count for kind, count in world.counts.items() if kind != "space calls"),
        "seconds": time.monotonic() - began,
        "memory": _peak(),
    }


def _peak() -> int:
    """The most that this process has held, in bytes. Not getrusage's: that one begins with the parent's."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def _measured(files: int, way: str) -> dict[str, float]:
    command = [sys.executable, __file__, str(files), way]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def main() -> bool:
    """Print the table; returns whether all targets are kept."""
    rows, good, figures = [], True, []
    for way in WAYS:
        found = _measured(FILES, way)
        kept = (
            found["status"] == 0 and found["resident"] == FILES and found["stats"] == FILES
            and not found["requests"] + found["looks"] + found["calls"] and found["memory"] < MOST_MEMORY
        )  # fmt: skip
        good &= kept
        figures.append({"way": way, "files": FILES, **found, "kept": kept})
        rows.append([
            way, f"{found['stats'] / FILES:g}", f"{found['requests']:.0f}", f"{found['looks'] + found['calls']:.0f}",
            f"{found['memory'] / 1e6:.0f} MB", f"{found['seconds']:.0f} s", f"{FILES / found['seconds']:,.0f}",
            "yes" if kept else "NO",
        ])  # fmt: skip
    table(
        f"{FILES:,} files already resident (targets: one stat a file, no request, memory < {MOST_MEMORY / 1e6:.0f} MB)",
        ["", "stats a file", "requests", "other calls", "memory", "time", "files/s", "kept"],
        rows,
        figures,
    )
    return good


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(_pass(int(sys.argv[1]), entries=WAYS[sys.argv[2]]))))
    else:
        sys.exit(not main())
