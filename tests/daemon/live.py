"""The daemon as a process of its own, with the capabilities of its unit and no others, over a simulated FSx."""

from __future__ import annotations

import grp
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.talk import Answer, parse
from fsxwarm.sim import launch

CAPABILITIES = "-all,+setuid,+setgid,+kill,+sys_admin,+dac_override,+fowner"
ALICE, BOB, EVE, ADA = 60_001, 60_002, 60_003, 60_004
"""Alice and Bob may talk to the daemon, Ada is an administrator, Eve is nobody."""


def gid(name: str) -> int:
    return grp.getgrnam(name).gr_gid


@dataclass
class Systemd:
    """What listens where systemd would: NOTIFY_SOCKET."""

    folder: Path
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = self.folder / "notify"
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(str(self.path))
        self._sock.settimeout(30)

    def wait_for(self, line: str) -> None:
        """Listen until this was said."""
        while line not in self.heard:
            self.heard += self._sock.recv(4096).decode().split("\n")

    def forget(self) -> None:
        self.heard.clear()

    def close(self) -> None:
        self._sock.close()


@dataclass
class Live:
    """A running daemon."""

    folder: Path
    fsx: launch.SimulatedFsx
    systemd: Systemd
    process: subprocess.Popen[bytes]
    config: Path

    @property
    def socket(self) -> str:
        return str(self.folder / "run" / "s")

    @property
    def mount(self) -> Path:
        return self.fsx.mount

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]

    def ask(
        self, uid: int, method: str, target: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Make a request as a user, with curl."""
        command = ["curl", "-si", "--max-time", "60", "--unix-socket", self.socket, "-X", method]
        for name, value in (headers or {}).items():
            command += ["-H", f"{name}: {value}"]
        if body is not None:
            command += ["--data-binary", json.dumps(body)]
        done = run_as(uid, [*command, f"http://localhost{target}"])
        if done.returncode:
            raise ConnectionError(f"curl: {done.returncode}")
        return parse(done.stdout)

    def reload(self) -> None:
        """Let it read its configuration anew."""
        self.systemd.forget()
        self.process.send_signal(signal.SIGHUP)
        self.systemd.wait_for("RELOADING=1")
        self.systemd.wait_for("READY=1")

    def job(self, uid: int, *paths: str | Path, kind: str = "preload", **wish: Any) -> dict[str, Any]:
        """Submit a job as a user, and wait for its end."""
        taken = self.ask(uid, "POST", "/v1/jobs", {"kind": kind, "paths": [str(path) for path in paths], **wish})
        assert taken.status == 202, taken.body
        for _ in range(20):
            ended: dict[str, Any] = self.ask(uid, "GET", f"/v1/jobs/{taken.json['id']}/wait?timeout=10").json
            if ended["final"]:
                return ended
        raise AssertionError("the job does not end")

    def lfs(self, *arguments: str | Path) -> str:
        done = subprocess.run([self.fsx.lfs, *arguments], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def released(self, path: Path) -> bool:
        return " released " in self.lfs("hsm_state", path).removeprefix(f"{path}: (")

    def file(self, name: str, *, uid: int = ALICE, mode: int = 0o644) -> Path:
        """A released file, named below the mount, of some user."""
        stock = next(path for path in sorted(self.mount.rglob("sample-*")) if path.is_file())
        path = self.mount / name
        if not path.parent.exists():
            path.parent.mkdir()
            os.chown(path.parent, uid, uid)
        stock.rename(path)
        os.chown(path, uid, uid)
        path.chmod(mode)
        assert self.released(path)
        return path

    def alive(self) -> None:
        assert self.process.poll() is None
        assert self.ask(0, "GET", "/v1/health").status == 200


def python_as(uid: int, code: str, *arguments: str, gid: int | None = None, groups: Sequence[int] = ()) -> list[str]:
    """A command that runs Python code as somebody: it starts as root, for he may have no right to the interpreter."""
    rights = f"os.setgroups({list(groups)}); os.setgid({gid or uid}); os.setuid({uid}); "
    become = "import os, resource, socket, sys; " + rights
    return [sys.executable, "-c", become + code, *arguments]


def run_as(uid: int, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command as one of our people; as ourselves if we are not root."""
    if os.geteuid() == 0:
        groups = {ALICE: ["users"], BOB: ["users"], ADA: ["users", "adm"]}.get(uid, [])
        options |= {"user": uid, "group": uid, "extra_groups": [gid(name) for name in groups]}
    return subprocess.run(command, capture_output=True, check=False, timeout=90, **options)


@contextmanager
def living(*sim: str, settings: str = "", **environ: str) -> Iterator[Live]:
    """Start a simulated FSx and the daemon over it; end both."""
    folder = Path(tempfile.mkdtemp(prefix="fsxwarm-live-"))
    folder.chmod(0o755)
    (folder / "run").mkdir(mode=0o755)
    try:
        with launch.start(folder / "fsx", "--latency", "0ms", "--files", "40", "--size", "64KiB", *sim) as fsx:
            config = folder / "config.toml"
            config.write_text(
                f'[daemon]\nsocket = "{folder}/run/s"\nstate = "{folder}/state"\n'
                f'group = "users"\nadmin_group = "adm"\n{settings}'
            )
            systemd = Systemd(folder)
            live = Live(folder, fsx, systemd, start(folder, fsx, systemd, environ), config)
            try:
                systemd.wait_for("READY=1")
                yield live
            finally:
                end(live.process)
                systemd.close()
    finally:
        shutil.rmtree(folder)


def start(
    folder: Path, fsx: launch.SimulatedFsx, systemd: Systemd, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the daemon as its unit does."""
    command = [sys.executable, "-m", "fsxwarm", "daemon", "--config", str(folder / "config.toml")]
    if os.geteuid() == 0:
        groups = f"{gid('users')},{gid('games')}"  # the unit's are the groups that its socket may belong to
        command = ["setpriv", "--bounding-set", CAPABILITIES, "--groups", groups, "--no-new-privs", *command]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command, env={**fsx.environ(os.environ), "NOTIFY_SOCKET": str(systemd.path), **environ}, stderr=log
        )


def end(process: subprocess.Popen[bytes]) -> float:
    """Ask the daemon to stop; how many seconds that took."""
    began = time.monotonic()
    process.terminate()
    try:
        process.wait(20)
    finally:
        process.kill()
        process.wait()
    return time.monotonic() - began
