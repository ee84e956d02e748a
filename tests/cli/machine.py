"""A machine with a simulated FSx mounted, to run the installed command on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsxwarm.sim import launch


@dataclass
class Site:
    """A machine with a simulated FSx mounted: `data` is a folder on it with twelve released files of 100 KB."""

    fsx: launch.SimulatedFsx

    @property
    def data(self) -> Path:
        return self.fsx.mount / "imagenet"

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.data.rglob("*") if path.is_file())

    @property
    def environ(self) -> dict[str, str]:
        """What commands run with; what they keep between runs stays in the simulated FSx's folder."""
        homes = {"XDG_CACHE_HOME": str(self.fsx.folder / "cache"), "XDG_STATE_HOME": str(self.fsx.folder / "state")}
        return self.fsx.environ(os.environ) | homes

    def fsxwarm(self, *arguments: str | bytes | Path, stdin: bytes = b"", **variables: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "fsxwarm", *arguments],
            env=self.environ | variables,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def lfs(self, *arguments: str | Path) -> str:
        done = subprocess.run([self.fsx.lfs, *arguments], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def released(self, path: Path) -> bool:
        return " released " in self.lfs("hsm_state", path).removeprefix(f"{path}: (")

    def restore(self, *paths: Path) -> None:
        """Make files resident, by an ordinary read's wait: until no state says released."""
        self.lfs("hsm_restore", *paths)
        for _ in range(200):
            if " released " not in self.lfs("hsm_state", *paths):
                return
            self.lfs("hsm_action", *paths)
        raise AssertionError("the simulator restores nothing")


@dataclass
class Done:
    """What a command left."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)
