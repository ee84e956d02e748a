"""Start a simulated FSx as a process of its own and talk to it: for tests, the demo and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fsxwarm.sim import layout, wire

READY: Final = "READY"
"""What a server prints on a line of its own once it listens."""


@dataclass(frozen=True, slots=True)
class SimulatedFsx:
    """A running simulated FSx: its folder, and what a command needs to see it as Lustre."""

    folder: Path

    @property
    def mount(self) -> Path:
        """The tree of files."""
        return self.folder / "mnt"

    @property
    def lfs(self) -> Path:
        """The executable."""
        return self.folder / "bin" / "lfs"

    def environ(self, base: Mapping[str, str], *, uid: int | None = None) -> dict[str, str]:
        """Return `base` with what makes commands use this FSx: PATH and variables FSXWARM_…

        With `uid` the simulated servers take the caller for that user, whoever he is; only who started them may ask so.
        """
        path = f"{self.folder / 'bin'}{os.pathsep}{base.get('PATH', os.defpath)}"
        found = {
            **base,
            "PATH": path,
            "FSXWARM_MOUNTS": str(self.folder / "mounts"),
            "FSXWARM_CONNECTIONS": str(layout.connections(self.folder)),
            "FSXWARM_CONFIG": str(layout.configuration(self.folder)),  # no real daemon is asked about it
            "FSXWARM_RELEASE_UNCHECKED": "yes",  # there is no S3 behind it
            "FSXWARM_SYSTEM_CALLS": str(layout.system_calls(self.folder)),
        }
        return found if uid is None else {**found, "FSXWARM_SIM_UID": str(uid)}

    def control(self, op: str, **fields: object) -> dict[str, Any]:
        """Send the server a control message and return its answer; ValueError with its words when it refuses.

        The messages are listed at `fsxwarm.sim.server.Control`.
        """
        with _connected(self.folder) as sock:
            sock.sendall(wire.frame([b"control", json.dumps({"op": op, **fields}).encode()]))
            with sock.makefile("rb") as stream:
                parts = wire.read(stream)
        answer: dict[str, Any] = json.loads(parts[1])
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer


@contextlib.contextmanager
def start(folder: Path, *options: str) -> Iterator[SimulatedFsx]:
    """Run `fsxwarm sim FOLDER OPTIONS…` as a process until the block ends; yields once it listens.

    RuntimeError if it does not get that far; why, it says on stderr.
    """
    command = [sys.executable, "-m", "fsxwarm", "sim", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            if not any(line.startswith(READY) for line in process.stdout):
                raise RuntimeError("the simulated FSx did not start")
            yield SimulatedFsx(folder)
        finally:
            process.terminate()
            process.stdout.close()
            process.wait()


@contextlib.contextmanager
def _connected(folder: Path) -> Iterator[socket.socket]:
    # By the folder's descriptor: a socket's path may have 107 bytes, a folder's many more.
    where = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.connect(f"/proc/self/fd/{where}/sim.sock")
            yield sock
    finally:
        os.close(where)
