"""`make bench-daemon`: what the daemon bears. Exit status 1 when a target is missed.

A real daemon over a simulated FSx that it warms meanwhile: a thousand clients that wait, jobs that come in, and how
long a look at a job takes beside that; then one at rest. And, in virtual time, many jobs that want the same files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.tables import table
from fsxwarm.model.job import Identity
from fsxwarm.sim.launch import SimulatedFsx
from fsxwarm.sim.launch import start as start_fsx
from service_stage import Stage, ended, play, request

WAITING, SUBMISSIONS, SECONDS = 1000, 200, 30
P99, MEMORY, IDLE_MEMORY, IDLE_CPU = 0.050, 200, 80, 0.005
JOBS, OWNERS, FILES = 1000, 20, 20_000
_SUBMITTERS = 20
_ARRIVING = 2.0


class Link:
    """A connection that is kept, for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, path: str) -> Link:
        return cls(*await asyncio.open_unix_connection(path))

    async def ask(self, method: str, target: str, body: object = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        self._writer.write(
            f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


@dataclass
class Load:
    """What came of it. Times in seconds."""

    errors: list[str] = field(default_factory=list)
    submitted: int = 0
    waits: int = 0
    looks: list[float] = field(default_factory=list)

    def check(self, status: int, body: bytes, expected: int) -> None:
        if status != expected:
            self.errors.append(f"{status}: {body[:200]!r}")


async def wait_on(path: str, job: str, load: Load, number: int, until: float) -> None:
    """A client that waits for a job, again and again; the clients come one after another, and wait a while each."""
    await asyncio.sleep(_ARRIVING * number / WAITING)
    link = await Link.open(path)
    patience = 10.0 + 10.0 * number / WAITING
    while (left := until - time.monotonic()) > 0:
        status, body = await link.ask("GET", f"/v1/jobs/{job}/wait?timeout={max(0.1, min(left, patience)):.2f}")
        load.check(status, body, 200)
        load.waits += 1
        if json.loads(body)["final"]:
            break
    link.close()


async def submit_from(path: str, folders: list[str], load: Load, first: int, each: float, until: float) -> None:
    """A client that submits a job every so often."""
    link = await Link.open(path)
    number, due = first, time.monotonic() + first * each / _SUBMITTERS
    while due < until:
        await asyncio.sleep(due - time.monotonic())
        wish = {"kind": "preload", "paths": [folders[number % len(folders)]], "priority": number % 101}
        status, body = await link.ask("POST", "/v1/jobs", wish)
        load.check(status, body, 202)
        load.submitted += 1
        number += _SUBMITTERS
        due += each
    link.close()


async def look(path: str, job: str, load: Load, until: float) -> None:
    """A client that looks at a job, twenty times a second, and takes the time, once all have come."""
    await asyncio.sleep(_ARRIVING)
    link = await Link.open(path)
    while time.monotonic() < until:
        began = time.monotonic()
        status, body = await link.ask("GET", f"/v1/jobs/{job}")
        load.looks.append(time.monotonic() - began)
        load.check(status, body, 200)
        await asyncio.sleep(0.05)
    link.close()


async def press(path: str, mount: Path, folders: list[str], seconds: float) -> Load:
    """Put the load on a daemon that begins to warm all there is."""
    load = Load()
    link = await Link.open(path)
    job = json.loads((await link.ask("POST", "/v1/jobs", {"kind": "preload", "paths": [str(mount)]}))[1])["id"]
    restored = 0
    while not restored:
        answer = json.loads((await link.ask("GET", f"/v1/jobs/{job}/wait?timeout=0.2"))[1])
        restored = answer["counters"]["restored"]["files"]
    link.close()
    until = time.monotonic() + seconds
    each = _SUBMITTERS / SUBMISSIONS
    await asyncio.gather(
        *(wait_on(path, job, load, number, until) for number in range(WAITING)),
        *(submit_from(path, folders, load, first, each, until) for first in range(_SUBMITTERS)),
        look(path, job, load, until),
    )
    link = await Link.open(path)
    if json.loads((await link.ask("GET", f"/v1/jobs/{job}"))[1])["final"]:
        load.errors.append("the warm ended before the load did")
    link.close()
    return load


@contextmanager
def daemon(folder: Path, fsx: SimulatedFsx) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon for root alone."""
    config = folder / "config.toml"
    config.write_text(
        f'[daemon]\nsocket = "{folder}/s"\nstate = "{folder}/state"\ngroup = ""\nadmin_group = ""\n'
        '[metrics]\nlisten = ""\n'
    )
    command = [sys.executable, "-m", "fsxwarm", "daemon", "--config", str(config)]
    process = subprocess.Popen(command, env=fsx.environ(os.environ), stderr=(folder / "log").open("wb"))
    try:
        while not (folder / "s").exists():
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def memory(process: subprocess.Popen[bytes], what: str = "VmRSS") -> float:
    """What a process holds now, or has held at the most (VmHWM), in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what)) * 1024 / 1e6


def cpu(process: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def under_load(seconds: float) -> bool:
    """The load, beside a warm that outlasts it."""
    with tempfile.TemporaryDirectory(prefix="fsxwarm-bench-") as name:
        folder = Path(name)
        rate = int(FILES / (seconds * 2))
        options = ["--files", str(FILES), "--size", "1MB", "--bandwidth", f"{rate}MB"]
        with start_fsx(folder / "fsx", *options) as fsx, daemon(folder, fsx) as process:
            folders = sorted({str(file.parent) for file in fsx.mount.rglob("*") if file.is_file()})
            load = asyncio.run(press(str(folder / "s"), fsx.mount, folders, seconds))
            held = memory(process, "VmHWM")
            counts = fsx.control("counters")
    looks = sorted(load.looks)
    p50, p99 = looks[len(looks) // 2], looks[int(len(looks) * 0.99)]
    submitted = load.submitted / seconds
    rows = [
        ["errors", f"{len(load.errors)}", "0"],
        ["waits answered", f"{load.waits:,}", f"≥ {WAITING:,}"],
        ["submissions a second", f"{submitted:.0f}", f"≥ {SUBMISSIONS * 0.95:.0f}"],
        ["looks at a job", f"{len(looks):,}", ""],
        ["  median", f"{p50 * 1000:.1f} ms", ""],
        ["  99 of 100 within", f"{p99 * 1000:.1f} ms", f"< {P99 * 1000:.0f} ms"],
        ["  slowest", f"{looks[-1] * 1000:.1f} ms", ""],
        ["memory at the most", f"{held:.0f} MB", f"< {MEMORY} MB"],
        ["files asked for while in flight", f"{counts.get('duplicates', 0)}", "0"],
    ]
    table(f"{WAITING:,} clients wait, {SUBMISSIONS} jobs a second come in, {seconds:.0f} s", ["", "is", "shall"], rows)
    for error in load.errors[:5]:
        print(error)
    return (
        not load.errors and load.waits >= WAITING and submitted >= SUBMISSIONS * 0.95 and p99 < P99 and held < MEMORY
        and not counts.get("duplicates", 0)
    )  # fmt: skip


def at_rest(seconds: float) -> bool:
    """A daemon that has nothing to do."""
    with tempfile.TemporaryDirectory(prefix="fsxwarm-bench-") as name:
        folder = Path(name)
        with start_fsx(folder / "fsx", "--files", "100") as fsx, daemon(folder, fsx) as process:
            time.sleep(5)
            began, before = time.monotonic(), cpu(process)
            time.sleep(seconds)
            share = (cpu(process) - before) / (time.monotonic() - began)
            held = memory(process)
    rows = [["CPU", f"{share:.2%}", f"< {IDLE_CPU:.1%}"], ["memory", f"{held:.0f} MB", f"< {IDLE_MEMORY} MB"]]
    table(f"at rest, {seconds:.0f} s", ["", "is", "shall"], rows)
    return share < IDLE_CPU and held < IDLE_MEMORY


def same_files() -> bool:
    """Many jobs of many owners that want the same files: each is to be asked for once."""
    counts: dict[str, int] = {}

    async def go() -> None:
        with tempfile.TemporaryDirectory(prefix="fsxwarm-bench-") as name:
            stage = Stage(Path(name), agents=200, latency=1.0)
            stage.fill(FILES)
            async with stage.service() as service:
                owners = [Identity(2000 + number, (2000,)) for number in range(OWNERS)]
                jobs = [await service.submit(request(identity=owners[number % OWNERS])) for number in range(JOBS)]
                views = [await ended(service, job.id) for job in jobs]
                counts["done"] = sum(
                    view.counters.restored.files + view.counters.resident.files == FILES for view in views
                )
            counts.update({name: stage.world.counts[name] for name in ("items", "duplicates", "restored")})

    began = time.monotonic()
    play(go)
    rows = [
        ["jobs that found all of them resident", f"{counts['done']:,}", f"{JOBS:,}"],
        ["files asked for", f"{counts['items']:,}", f"{FILES:,}"],
        ["  while in flight", f"{counts['duplicates']:,}", "0"],
        ["files restored", f"{counts['restored']:,}", f"{FILES:,}"],
    ]
    took = time.monotonic() - began
    table(f"{JOBS:,} jobs of {OWNERS} owners want the same {FILES:,} files ({took:.0f} s)", ["", "is", "shall"], rows)
    return counts == {"done": JOBS, "items": FILES, "duplicates": 0, "restored": FILES}


def main() -> int:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", choices=["load", "rest", "same"])
    args = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    parts = {"load": lambda: under_load(args.seconds), "rest": lambda: at_rest(args.seconds), "same": same_files}
    kept = [part() for name, part in parts.items() if args.only in (None, name)]
    print("\nall targets kept" if all(kept) else "\nSOME TARGETS MISSED")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
