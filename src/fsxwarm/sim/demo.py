"""The demo: fsxwarm on a simulated FSx, and the usual one-liner on an equal copy, side by side."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fsxwarm.sim.launch import SimulatedFsx, start

_FILES: Final = 2000
_FSX: Final = (
    "--files",
    str(_FILES),
    "--size",
    "lognormal",
    "--mdts",
    "2",
    "--agents",
    "32",
    "--bandwidth",
    "2GB",
    "--latency",
    "300ms",
)
_ONE_LINER: Final = "find {mount} -type f -print0 | xargs -0 -n 1 -P 32 lfs hsm_restore"
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one way of warming took: seconds until every file was resident, and what it asked of the machine and FSx."""

    name: str
    seconds: float
    processes: int
    requests: int
    deepest: int


def main() -> int:
    """Run the demo; returns the exit status."""
    with _two_equal() as (ours, theirs):
        _say(f"A simulated FSx for Lustre: {_FILES:,} released files, 4 KB to 2 GB, in three associations' folders.")
        _run(ours, "status", str(ours.mount), "--by-folder", "1")
        warm = _measured("fsxwarm preload", ours, [*_fsxwarm(), "preload", str(ours.mount)])
        _run(ours, "release", str(ours.mount / "climate"), "--dry-run")
        line = _ONE_LINER.format(mount=theirs.mount)
        _say(f"\nThe usual one-liner, on an equal copy:\n$ {_ONE_LINER.format(mount='…')}")
        liner = _measured("the one-liner", theirs, ["sh", "-c", line])
        _compare(warm, liner)
    return 0


@contextlib.contextmanager
def _two_equal() -> Iterator[tuple[SimulatedFsx, SimulatedFsx]]:
    with (
        tempfile.TemporaryDirectory(prefix="fsxwarm-demo-") as folder,
        start(Path(folder) / "fsx", *_FSX) as ours,
        start(Path(folder) / "copy", *_FSX) as theirs,
    ):
        yield ours, theirs


def _fsxwarm() -> list[str]:
    return [sys.executable, "-m", "fsxwarm"]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the demo talks


def _run(fsx: SimulatedFsx, *arguments: str) -> None:
    shown = " ".join(arguments).replace(str(fsx.mount), "/mnt/fsx")
    _say(f"\n$ fsxwarm {shown}")
    subprocess.run([*_fsxwarm(), *arguments], env=fsx.environ(os.environ), check=False)


def _measured(name: str, fsx: SimulatedFsx, command: Sequence[str]) -> Result:
    """Run a command, then wait until every file is resident, however the command ended."""
    if name.startswith("fsxwarm"):
        _say("\n$ fsxwarm preload /mnt/fsx")
    before = fsx.control("calls").get("processes", 0)
    began = time.monotonic()
    subprocess.run(command, env=fsx.environ(os.environ), check=False)
    while time.monotonic() - began < _PATIENCE:
        counters = fsx.control("counters")
        if counters.get("restored", 0) >= _FILES:
            break
        time.sleep(0.1)
    seconds = time.monotonic() - began
    counters, calls = fsx.control("counters"), fsx.control("calls")
    return Result(
        name, seconds, calls.get("processes", 0) - before, counters.get("restore requests", 0), counters["deepest"]
    )


def _compare(*results: Result) -> None:
    head = ("", "until all is resident", "lfs processes", "requests sent", "deepest queue")
    rows = [(r.name, f"{r.seconds:.1f} s", f"{r.processes:,}", f"{r.requests:,}", f"{r.deepest:,}") for r in results]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    _say("")
    for row in (head, tuple("─" * width for width in widths), *rows):
        cells = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        _say("  ".join(cells).rstrip())
    _say("\nThe one-liner also ends before its last files are there, and says nothing of those that failed.")


if __name__ == "__main__":
    sys.exit(main())
