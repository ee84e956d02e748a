"""A tree that is warm already: how fast a preload passes over it, in what memory, and that it starts no restore."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.tables import table

SIZES = (20_000, 200_000)
PER_FOLDER = 1000
MOST_MEMORY = 120 * 10**6
GROWTH = 1.10
LEAST_SPEED = 150_000
"""Files a second of the largest tree, start included, where two cores have nothing else to do."""

_LFS = """#!/bin/sh
echo "$1" >> {log}
case "$1" in
  --version) echo "lfs 2.15.8" ;;
  df)
    echo 'UUID 1K-blocks Used Available Use% Mounted on'
    echo 'fsx-OST0000_UUID 1000000000 0 1000000000 0% {mount}[OST:0]'
    echo
    echo 'filesystem_summary: 1000000000 0 1000000000 0% {mount}'
    echo ;;
  *) exit 1 ;;
esac
"""

# Runs a command and prints the most memory (bytes) that it and its helpers had resident at once, then its seconds.
# Proportional set sizes: what a child shares with its parent between fork and exec is counted once.
_WATCH = """
import os, subprocess, sys, time
def tree(pid):
    pids = [pid]
    for path in (f"/proc/{pid}/task/{pid}/children",):
        try:
            pids += [p for child in open(path).read().split() for p in tree(int(child))]
        except OSError:
            pass
    return pids
def pss(pid):
    try:
        rollup = open(f"/proc/{pid}/smaps_rollup").read()
        return int(rollup.split("Pss:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return 0
began = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
most = 0
while process.poll() is None:
    most = max(most, sum(map(pss, tree(process.pid))))
    time.sleep(0.01)
print(most, time.monotonic() - began, process.returncode)
"""


def main() -> bool:
    """Print the table; returns whether the targets are kept."""
    rows, memory, speed, asked = [], {}, {}, ""
    for files in SIZES:
        with tempfile.TemporaryDirectory(prefix="fsxwarm-bench-") as name:
            folder = Path(name)
            mount = folder / "mnt"
            _fill(mount, files)
            bare = _bare(mount)
            most, seconds, status = _preload(folder, mount)
            log = folder / "log"
            asked += log.read_text() if log.exists() else ""
        memory[files], speed[files] = most, files / seconds
        rows.append([
            f"{files:,}", f"{files / seconds:,.0f}", f"{files / bare:,.0f}", f"{most / 10**6:.0f} MB", str(status)
        ])  # fmt: skip
    table(
        f"A warm tree (targets: no restore; ≥ {LEAST_SPEED:,} files/s of {SIZES[-1]:,}; memory"
        f" ≤ {MOST_MEMORY // 10**6} MB, and the same within 10 %)",
        ["files", "preload, files/s", "bare scandir + stat", "memory, helpers too", "exit"],
        rows,
    )
    print(f"lfs calls: {' '.join(asked.split()) or 'none'}")
    grown = memory[SIZES[1]] / memory[SIZES[0]]
    missed = {
        "restore": "restore" in asked, "files/s": speed[SIZES[-1]] < LEAST_SPEED,
        "memory": max(memory.values()) > MOST_MEMORY, "growth": grown > GROWTH,
    }  # fmt: skip
    print(f"targets missed: {', '.join(name for name, is_missed in missed.items() if is_missed) or 'none'}")
    return not any(missed.values())


def _fill(mount: Path, files: int) -> None:
    for number in range(files):
        if number % PER_FOLDER == 0:
            folder = mount / f"part-{number // PER_FOLDER:04d}"
            folder.mkdir(parents=True)
        (folder / f"sample-{number:06d}").write_bytes(b"x")


def _bare(mount: Path) -> float:
    began = time.monotonic()
    folders = [str(mount)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
    return time.monotonic() - began


def _preload(folder: Path, mount: Path) -> tuple[int, float, int]:
    lfs, mounts = folder / "lfs", folder / "mounts"
    lfs.write_text(_LFS.format(log=folder / "log", mount=mount))
    lfs.chmod(0o755)
    mounts.write_text(f"sim@tcp:/fsx {mount} lustre rw 0 0\n")
    environ = {**os.environ, "FSXWARM_LFS": str(lfs), "FSXWARM_MOUNTS": str(mounts)}
    command = [sys.executable, "-c", _WATCH, sys.executable, "-m", "fsxwarm", "preload", str(mount)]
    most, seconds, status = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True
    ).stdout.split()
    return int(most), float(seconds), int(status)
