"""lfs processes that a preload starts, counted by the simulated FSx that they talk to; real processes, real time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.tables import table
from fsxwarm.sim.launch import start

FILES = 2000
TARGET = 40


def main() -> bool:
    """Print the table; returns whether the target is kept."""
    with (
        tempfile.TemporaryDirectory(prefix="fsxwarm-bench-") as folder,
        start(Path(folder) / "fsx", "--files", str(FILES)) as fsx,
    ):
        command = [sys.executable, "-m", "fsxwarm", "preload", str(fsx.mount)]
        ended = subprocess.run(command, env=fsx.environ(os.environ), capture_output=True, check=False)
        calls, counters = fsx.control("calls"), fsx.control("counters")
    per_thousand = calls["processes"] * 1000 / FILES
    by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(calls.items()) if kind != "processes")
    table(
        f"lfs processes per 1,000 restored files (target ≤ {TARGET}; the one-liner: 1,000)",
        ["way", "restored", "processes", "per 1,000", "by kind"],
        [["fsxwarm preload", f"{counters['restored']:,}", str(calls["processes"]), f"{per_thousand:.1f}", by_kind]],
    )
    return ended.returncode == 0 and counters["restored"] == FILES and per_thousand <= TARGET
