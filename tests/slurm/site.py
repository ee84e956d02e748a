"""A real Slurm, a simulated FSx, and the daemon over it that the hooks of Slurm ask."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from daemon import live
from daemon.live import Live, living
from fsxwarm.model.address import Address
from slurm.cluster import USER, Cluster, free_ports, slurm

HOOKS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
UID = 5
"""Of USER, on every Debian."""
COMMENT = "fsxwarm:preload={}"


@dataclass
class Site:
    """All of it. Jobs run as USER, whose `data` on the FSx is a folder of released files."""

    cluster: Cluster
    daemon: Live
    address: Address
    hooks: Path
    names: list[str] = field(default_factory=list)

    @property
    def mount(self) -> Path:
        return self.daemon.mount

    def data(self, name: str, files: int = 4) -> Path:
        """A new folder of USER with released files."""
        for number in range(files):
            self.daemon.file(f"{name}/{number}", uid=UID)
        return self.mount / name

    def released(self, folder: Path) -> int:
        """How many files in a folder are released."""
        return sum(self.daemon.released(path) for path in sorted(folder.iterdir()))

    @property
    def environ(self) -> dict[str, str]:
        """What a command on a compute node runs with, to ask the daemon over the network."""
        return {"FSXWARM_DAEMON": str(self.address), "FSXWARM_MUNGE_SOCKET": str(self.cluster.munge.socket)}

    def fsxwarm(self, *arguments: str | Path, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command as if on a compute node."""
        environ = {**self.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return self.cluster.run(sys.executable, "-m", "fsxwarm", *arguments, user=user, environ=environ, check=False)

    def jobs(self) -> list[dict[str, object]]:
        """All jobs of the daemon, the newest first."""
        found: list[dict[str, object]] = self.daemon.ask(0, "GET", "/v1/jobs").json["jobs"]
        return found

    def leases(self, job: str) -> list[str]:
        """The paths that are kept for a job of Slurm."""
        leases = self.daemon.ask(0, "GET", "/v1/leases").json["leases"]
        return sorted(lease["path"] for lease in leases if lease["slurm_job_id"] == job)

    def until(self, is_so: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise AssertionError(f"{self.cluster.logs()}\n{(self.daemon.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.1)

    def hold_restores(self, *, hold: bool) -> None:
        """Let no restore begin at the FSx, or let them again."""
        self.daemon.fsx.control("coordinator", control="disabled" if hold else "enabled")

    def kill_daemon(self) -> None:
        """Kill -9 it."""
        self.daemon.process.kill()
        self.daemon.process.wait()

    def start_daemon(self) -> None:
        """Start it again."""
        self.daemon.systemd.forget()
        self.daemon.process = live.start(
            self.daemon.folder, self.daemon.fsx, self.daemon.systemd, {"FSXWARM_DAEMON_GROUP": USER}
        )
        self.daemon.systemd.wait_for("READY=1")


@contextmanager
def site(*extra: str, etc: Mapping[str, str] | None = None, hooks: str = "", files: int = 40) -> Iterator[Site]:
    """Start all of it. `extra` and `etc` as for `slurm`; hooks lie in `{etc}/fsxwarm`, and go by `hooks` too."""
    (port,) = free_ports(1)
    address = Address("127.0.0.1", port)
    with ExitStack() as stack:
        cluster = stack.enter_context(slurm(*extra, etc=etc or {}, folders={"fsxwarm": HOOKS}))
        folder = cluster.folder / "etc" / "fsxwarm"
        (folder / "fsxwarm.conf").write_text(f"daemon={address}\nmunge_socket={cluster.munge.socket}\n{hooks}\n")
        settings = (
            f'[remote]\nlisten = "{address}"\nnetworks = ["127.0.0.0/8"]\nmunge_socket = "{cluster.munge.socket}"\n'
            '[slurm]\nact_for_others = ["slurm", "root"]\npatience = 3\n[metrics]\nlisten = ""\n'
        )
        daemon = stack.enter_context(
            living("--files", str(files), settings=settings, FSXWARM_DAEMON_GROUP=USER, FSXWARM_ATTEMPTS="1")
        )
        yield Site(cluster, daemon, address, folder)
