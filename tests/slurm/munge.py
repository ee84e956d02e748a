"""A munged of one's own: its key, its socket, nothing of the machine's."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STARTS_WITHIN = 20.0
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Munge:
    """A running munged."""

    socket: Path

    def credential(self, payload: str | bytes, *options: str, user: str | None = None) -> bytes:
        """A credential, made as a user (None: root)."""
        return _run("munge", f"--socket={self.socket}", *options, user=user, stdin=payload).strip()

    def opened(self, credential: bytes, *, user: str | None = None) -> bytes:
        """What a credential holds, decoded as a user."""
        out = _run("unmunge", f"--socket={self.socket}", "--keys=UID", "--numeric", user=user, stdin=credential)
        return out.partition(b"\n\n")[2]


def _run(*command: str, user: str | None, stdin: str | bytes) -> bytes:
    words = list(command)
    if user is not None:
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *words]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(words, input=data, capture_output=True, check=False, timeout=30)
    if done.returncode:
        raise PermissionError(done.stderr.decode())
    return done.stdout


@contextmanager
def munged(folder: Path, *, key: bytes | None = None, environ: Mapping[str, str] | None = None) -> Iterator[Munge]:
    """Start one in a new `folder`. The same `key` makes daemons trust each other; none given: a new one."""
    keys, run = folder / "keys", folder / "run"
    keys.mkdir(mode=0o700, parents=True)
    run.mkdir(mode=0o755)
    folder.chmod(0o755)
    (keys / "key").write_bytes(key or os.urandom(128))
    (keys / "key").chmod(0o600)
    socket = run / "munge.sock"
    command = [
        "munged", "--foreground", "--force", f"--socket={socket}", f"--key-file={keys / 'key'}",
        f"--pid-file={keys / 'pid'}", f"--seed-file={keys / 'seed'}", f"--log-file={keys / 'log'}",
    ]  # fmt: skip
    with (keys / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(environ or {})})
    try:
        _await(socket, process, keys / "out")
        yield Munge(socket)
    finally:
        process.terminate()
        process.wait(20)


def _await(socket: Path, process: subprocess.Popen[bytes], out: Path) -> None:
    started = time.monotonic()
    while subprocess.run(["munge", "-S", str(socket), "-n"], capture_output=True, check=False, timeout=30).returncode:
        if process.poll() is not None or time.monotonic() > started + _STARTS_WITHIN:
            raise AssertionError(f"munged does not start: {out.read_text()}")
        time.sleep(_LOOK_EVERY)
