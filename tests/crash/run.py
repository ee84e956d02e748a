"""Kills the daemon's core at random moments, again and again, over a simulated FSx that goes on: `make crash`.

What must hold afterwards: no job lost that was answered for, each ended as done, all files resident, and none of them
asked for while it was in flight. Exit status 1 if it does not.

As systemd does (KillMode=control-group), what a killed daemon leaves behind is killed too before the next one starts.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsxwarm.sim.launch import SimulatedFsx, start

CORE = Path(__file__).with_name("core.py")
PR_SET_CHILD_SUBREAPER = 36


def children() -> list[int]:
    """The processes whose parent we are, as those are whose own has died."""
    return [int(pid) for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split()]


class Crashes:
    """A simulated FSx, a store beside it, and daemons that come and go."""

    def __init__(self, fsx: SimulatedFsx, folder: Path, jobs: int, seed: int) -> None:
        self._fsx = fsx
        self._folder = folder
        self._jobs = jobs
        self._chance = random.Random(seed)
        self._ours = set(children())
        self.answered: set[str] = set()

    def _launch(self) -> subprocess.Popen[str]:
        command = [sys.executable, str(CORE), str(self._folder / "state.db"), str(self._fsx.mount), str(self._jobs)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._fsx.environ(os.environ))

    def kill_once(self) -> None:
        """Let a daemon live for a while, and kill it and all that it has started."""
        daemon = self._launch()
        said = ""
        if self._chance.random() < 0.1:  # while it starts
            time.sleep(self._chance.uniform(0.0, 0.5))
        else:
            said = daemon.stdout.readline() if daemon.stdout is not None else ""
            time.sleep(self._chance.uniform(0.0, 1.2))
        daemon.kill()
        self._note(said + daemon.communicate()[0])
        self._bury()

    def _bury(self) -> None:
        while orphans := set(children()) - self._ours:
            for pid in orphans:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def finish(self, seconds: float) -> list[dict[str, Any]]:
        """Let a daemon live until all is done; returns what it says of each job."""
        daemon = self._launch()
        try:
            said = daemon.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            daemon.kill()
            raise
        return self._note(said)

    def _note(self, said: str) -> list[dict[str, Any]]:
        lines = said.splitlines()
        self.answered |= {line.split()[1] for line in lines if line.startswith("submitted ")}
        return [json.loads(line) for line in lines if line.startswith("{")]


def check(
    jobs: Sequence[dict[str, Any]], answered: set[str], wanted: int, counts: dict[str, Any], files: int
) -> list[str]:
    """What does not hold."""
    wrong = [
        f"job {job['id']} ended as {job['phase']} {job['exit']}"
        for job in jobs
        if (job["phase"], job["exit"]) != ("done", 0)
    ]
    wrong += [
        f"job {job['id']} found {job['found']}, settled less"
        for job in jobs
        if job["found"][0] != job["resident"][0] + job["restored"][0]
    ]
    if lost := answered - {job["id"] for job in jobs}:
        wrong.append(f"lost: {lost}")
    if len(jobs) != wanted:
        wrong.append(f"{len(jobs)} jobs instead of {wanted}")
    if counts.get("duplicates", 0):
        wrong.append(f"{counts['duplicates']} files asked for while in flight")
    if counts.get("restored") != files:
        wrong.append(f"{counts.get('restored')} of {files} files restored")
    return wrong


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="fsxwarm-crash-") as name:
        folder = Path(name)
        options = ["--files", str(args.files), "--size", "1MB", "--agents", "4", "--latency", "200ms"]
        with start(folder / "fsx", *options) as fsx:
            crashes = Crashes(fsx, folder, args.jobs, args.seed)
            began = time.monotonic()
            for number in range(1, args.kills + 1):
                crashes.kill_once()
                if number % 20 == 0:
                    done = fsx.control("counters").get("restored", 0)
                    print(f"{number} kills, {done} of {args.files} files restored", flush=True)
            jobs = crashes.finish(600.0)
            counts = fsx.control("counters")
    wrong = check(jobs, crashes.answered, args.jobs, counts, args.files)
    took = time.monotonic() - began
    print(
        f"{args.kills} kills in {took:.0f} s; {len(jobs)} jobs, one resumed {max(job['resumed'] for job in jobs)} times"
    )
    print(f"{counts.get('items')} files asked for, {counts.get('duplicates', 0)} of them while in flight")
    for each in wrong:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
