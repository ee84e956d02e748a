"""A machine with a simulated FSx mounted under the name of a file system of AWS."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cli.machine import Done
from fsxwarm.sim.launch import SimulatedFsx


@dataclass
class Machine:
    """A machine with a simulated FSx mounted as a given file system of the account."""

    fsx: SimulatedFsx
    variables: dict[str, str]

    def fsxwarm(self, *arguments: str | Path, **variables: str) -> Done:
        homes = {"XDG_CACHE_HOME": str(self.fsx.folder / "cache"), "XDG_STATE_HOME": str(self.fsx.folder / "state")}
        environ = self.fsx.environ(os.environ) | homes | self.variables | variables
        done = subprocess.run(
            [sys.executable, "-m", "fsxwarm", *arguments], env=environ, capture_output=True, check=False, timeout=120
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
