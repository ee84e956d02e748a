"""How fast a warm tree is walked, and that memory does not grow with it. `python tests/bench/walk.py [--files N]`.

Prints entries per second of the walk beside the bare scandir + stat loop of one process, and the peak memory of this
process and its helpers for the tree and for one of a tenth of its size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.entry import Entry
from fsxwarm.ports.tree import Filters, Place

TWO_BLOCKS = b"x" * 5000
ROUNDS = 3


def make(root: Path, files: int, folder: int) -> None:
    """Make resident files, `folder` in each folder."""
    for number in range(files):
        inside = root / f"{number // folder:06}"
        if number % folder == 0:
            inside.mkdir(parents=True)
        fd = os.open(inside / f"sample-{number:08}.bin", os.O_CREAT | os.O_WRONLY)
        os.write(fd, TWO_BLOCKS)
        os.close(fd)
    os.sync()


def bare(root: str) -> int:
    """Count files as the shortest loop does that there is."""
    files, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as names:
            for entry in names:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    files += 1
    return files


async def walk(root: str, helpers: int, *, whole: bool) -> None:
    """Walk a tree some times; print the best rate and the peak memory in MB."""
    tree = HelperTree(helpers=helpers)
    place = await tree.resolve(os.fsencode(root))
    assert isinstance(place, Place)
    best = 0.0
    for _ in range(ROUNDS):
        start, files = time.perf_counter(), 0
        async for batch in tree.walk(place, Filters(), whole=whole):
            files += sum(1 if isinstance(item, Entry) else item.files for item in batch.items)
        best = max(best, files / (time.perf_counter() - start))
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    theirs = [peak(pid) for pid in tree.pids]
    await tree.close()
    print(round(best), round(ours / 1024, 1), round(sum(theirs) / 1024, 1))


def peak(pid: int) -> int:
    """Peak memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def measured(*arguments: str) -> list[float]:
    """Measure in a process of its own, for its memory."""
    argv = [sys.executable, __file__, *arguments]
    return [float(word) for word in subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()]


def table(files: int, folder: int, helpers: int, top: str) -> None:
    """Measure and print."""
    print(f"{'files':>10} {'way':<28} {'entries/s':>10} {'MB here':>9} {'MB in helpers':>14}")
    for count in (files // 10, files):
        root = Path(top) / str(count)
        make(root, count, folder)
        rate = 0.0
        for _ in range(ROUNDS):
            start = time.perf_counter()
            rate = max(rate, bare(str(root)) / (time.perf_counter() - start))
        print(f"{count:>10,} {'bare scandir + stat':<28} {rate:>10,.0f}")
        for way in ("residents counted", "every file an entry"):
            best, ours, theirs = measured("--walk", str(root), "--helpers", str(helpers), "--way", way)
            print(f"{count:>10,} {f'walk, {way}':<28} {best:>10,.0f} {ours:>9.1f} {theirs:>14.1f}")


def main() -> None:
    """Run the bench, or (in its own process) one measurement of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--folder", type=int, default=100, help="files in a folder")
    parser.add_argument("--helpers", type=int, default=2)
    parser.add_argument("--dir", help="where to make the files")
    parser.add_argument("--walk", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.walk:
        asyncio.run(walk(options.walk, options.helpers, whole=options.way == "every file an entry"))
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as top:
        table(options.files, options.folder, options.helpers, top)


if __name__ == "__main__":
    main()
