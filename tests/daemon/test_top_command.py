"""`fsxwarm top` as a process, in a terminal and without one, over a face whose core is on paper."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from daemon.conftest import Face
from daemon.talk import ask
from fsxwarm.cli.job_view import line
from fsxwarm.cli.top_view import view
from fsxwarm.client import wire
from fsxwarm.engine.overview import Overview, Room, Sample, Slow, Stock
from fsxwarm.model.job import Count, Counters
from fsxwarm.model.outcome import MEANINGS, Reason

NASTY = b"/fsx/\x1b[2J\x1b]0;title\x07evil\n\xff\xe2\x80\xae.bin"
GB = 10**9


async def busy(face: Face) -> None:
    """Three jobs, one of which has failures; a slow file with a nasty name."""
    for path in ("/fsx/imagenet", "/fsx/nasty\x1b[31m", "/fsx/c"):
        await ask(face.path, "POST", "/v1/jobs", {"kind": "preload", "paths": [path]})
    counters = Counters(Count(1000, 100 * GB), restored=Count(400, 40 * GB), failed=Count(7, GB), scanned=True)
    await face.core.progress("j1", replace(counters, reasons={"storage_class": 5, "lost": 2}))
    await face.core.finish("j3")
    past = [Sample(1000.0 + 10 * n, 200, 150, 100 * n, 10 * GB * n) for n in range(10)]
    slow = [Slow(NASTY, GB, ("j1",), "in_flight", 75.0, 1000, 2)]
    face.core.glance = Overview(
        1100.0,
        "bytes/s",
        slow,
        [Room(b"/fsx", 2 * GB, 40 * GB, 4 * GB, 8 * GB, False)],
        [Stock(b"/fsx/stock", 3, 3 * GB, 1, GB, 1040.0)],
        past,
    )


def environ(face: Face) -> dict[str, str]:
    size_aside = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    return {**size_aside, "FSXWARM_DAEMON_SOCKET": face.path, "LC_ALL": "C.UTF-8", "TERM": "xterm"}


async def run(face: Face, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fsxwarm", "top", *arguments]
    return await asyncio.to_thread(
        subprocess.run, command, env=environ(face), capture_output=True, text=True, check=False, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


async def test_without_a_terminal_it_is_printed_once_and_plainly(face: Face) -> None:
    await busy(face)
    done = await run(face)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    for word in ("41.0 %", "1,000", "/fsx/imagenet (7 failed)", "5.0 % free", "room is made below 4.00 GB",
                 *MEANINGS[Reason.STORAGE_CLASS], MEANINGS[Reason.LOST].todo, "1m 15s",
                 "75.0 % of /fsx/stock", "evil\\n\\xff"):  # fmt: skip
        assert word in done.stdout, word


async def test_as_json_it_is_the_overview(face: Face) -> None:
    await busy(face)
    document = json.loads((await run(face, "--json")).stdout)
    assert (document["schema"], document["exit"], document["limit"]) == ("fsxwarm.overview/1", 0, "bytes/s")
    assert [job["id"] for job in document["jobs"]] == ["j2", "j1", "j3"]


async def test_without_a_daemon_it_says_so_in_one_line(face: Face) -> None:
    await asyncio.to_thread(os.unlink, face.path)
    done = await run(face)
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "there is no daemon" in done.stderr


@dataclass
class Terminal:
    """A terminal with the command in it."""

    process: subprocess.Popen[bytes]
    master: int
    seen: str = ""

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    async def until(self, text: str) -> None:
        """Read until this is on the screen."""
        async with asyncio.timeout(30):
            while text not in self.seen:
                self.seen += (await asyncio.to_thread(os.read, self.master, 65536)).decode(errors="replace")

    async def ended(self) -> int:
        """Read on until it has ended; its status."""

        def rest() -> None:
            try:
                while data := os.read(self.master, 65536):
                    self.seen += data.decode(errors="replace")
            except OSError:  # nobody holds the other end any more
                return

        await asyncio.wait_for(asyncio.to_thread(rest), 30)
        return await asyncio.to_thread(self.process.wait, 30)


@contextmanager
def terminal(face: Face, columns: int = 80, lines: int = 24, **variables: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
    before = termios.tcgetattr(slave)
    command = [sys.executable, "-m", "fsxwarm", "top"]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environ(face) | variables, start_new_session=True
    )
    try:
        yield Terminal(process, master)
        assert termios.tcgetattr(slave) == before  # as it was
    finally:
        os.close(slave)
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("keys", [b"q", b"Q", b"\x1b", b"\x04"])
async def test_a_key_leaves_and_the_terminal_is_as_it_was(face: Face, keys: bytes) -> None:
    await busy(face)
    with terminal(face) as screen:
        await screen.until("imagenet")
        screen.press(keys)
        assert screen.process.wait(20) == 0
    assert "\x1b[?1049h" in screen.seen


async def test_ctrl_c_leaves_in_silence(face: Face) -> None:
    with terminal(face) as screen:
        await screen.until("no jobs")
        screen.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(screen.process.wait, 20) == 0
    assert "Traceback" not in screen.seen


async def test_other_keys_and_arrows_do_nothing(face: Face) -> None:
    with terminal(face) as screen:
        await screen.until("no jobs")
        screen.press(b"\x1b[A")
        screen.press(b"x\n")
        await ask(face.path, "POST", "/v1/jobs", {"kind": "preload", "paths": ["/fsx/later"]})
        await screen.until("/fsx/later")
        screen.press(b"q")
        assert screen.process.wait(20) == 0


async def test_a_daemon_that_goes_is_waited_for(face: Face) -> None:
    await busy(face)
    with terminal(face) as screen:
        await screen.until("imagenet")
        await face.server.close()
        await screen.until("this is how it was before")
        screen.press(b"q")
        assert screen.process.wait(20) == 0


@pytest.mark.parametrize("exported", [{}, {"COLUMNS": "50", "LINES": "20"}], ids=["", "exported"])
async def test_it_takes_on_another_size(face: Face, exported: dict[str, str]) -> None:
    await busy(face)
    with terminal(face, 50, 20, **exported) as screen:
        await screen.until("imagenet")
        assert "owner" not in screen.seen
        screen.size(160, 50)
        await screen.until("owner")
        screen.press(b"q")
        assert screen.process.wait(20) == 0


async def test_what_names_hold_is_shown_and_not_obeyed(face: Face) -> None:
    await busy(face)
    with terminal(face, 160, 50) as screen:
        await screen.until("evil\\n\\xff")
        screen.press(b"q")
        assert screen.process.wait(20) == 0
    assert "\x1b]0;" not in screen.seen
    assert "\u202e" not in screen.seen


@given(st.integers(20, 250), st.integers(4, 80), st.integers(0, 40), st.integers(0, 20))
def test_no_line_is_longer_than_the_terminal_is_wide(width: int, height: int, jobs: int, slow: int) -> None:
    shown = overview(jobs, slow)
    out = Console(width=width, height=height, record=True, file=open(os.devnull, "w"), color_system=None)  # noqa: PTH123, SIM115 - closed with the console
    with out.capture() as captured:
        out.print(view(shown, width=width, height=height, keys=True))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= width
    out.file.close()


def test_at_80_columns_and_24_lines_all_of_it_has_its_place() -> None:
    out = Console(width=80, height=24, color_system=None)
    with out.capture() as captured:
        out.print(view(overview(30, 20), width=80, height=24, keys=True))
    lines = captured.get().splitlines()
    assert len(lines) <= 24
    text = "\n".join(lines)
    for word in ("rate", "window", "space", "running", "more", "not resident", "longest at FSx", "(q leaves)"):
        assert word in text, word


def test_what_a_cancelled_job_let_go_of_does_not_look_done() -> None:
    shown = overview(1, 0)
    job = shown["jobs"][0]
    job["phase"], job["final"], job["exit"] = "cancelled", True, 130
    job["counters"]["cancelled"] = {"files": 123_456 - 17, "bytes": 9 * 10**12 - 5}
    out = Console(width=160, color_system=None)
    with out.capture() as captured:
        out.print(view(shown, width=160, height=50))
    assert "17/123,456" in captured.get()
    assert "10.0 %" in captured.get()
    assert line(job).startswith("job 1 cancelled; 17 of 123,456 files")


def overview(jobs: int, slow: int) -> wire.Overview:
    """Something to show."""
    none: wire.Count = {"files": 0, "bytes": 0}
    counters: wire.Counters = {
        "found": {"files": 123_456, "bytes": 10**13}, "resident": none, "restored": {"files": 5, "bytes": 10**12},
        "failed": {"files": 12, "bytes": 5}, "blocked": none, "vanished": none, "cancelled": none, "released": none,
        "already": none, "left": none, "left_in_flight": none, "unreadable": 0, "skipped": 0, "scanned": False,
        "reasons": {"lost": 4, "storage_class": 8},
    }  # fmt: skip
    job: wire.Job = {
        "id": "1", "kind": "preload", "phase": "running", "final": False, "owner": 0, "priority": 50, "label": "",
        "paths": [{"path": "/fsx/" + "long" * 40}], "listed": 0, "digest": "", "include": [], "exclude": [],
        "options": {}, "slurm_job_id": "", "created": 0.0, "started": 1.0, "ended": None, "ready": False, "exit": None,
        "error": "", "rounds": 0, "resumed": 0, "next_round": None, "counters": counters, "coverage": 0.1,
        "files_per_second": 12.0, "bytes_per_second": 1e9, "eta": 5000.0,
    }  # fmt: skip
    one: wire.Slow = {"path": "/fsx/" + "deep/" * 60, "size": 10**9, "jobs": ["1"], "phase": "in_flight",
                      "seconds": 99.0, "moved": None, "attempts": 2}  # fmt: skip
    return {
        "at": 2000.0, "limit": "files/s", "jobs": [job] * jobs, "slowest": [one] * slow,
        "stocks": [{"path": "/fsx/" + "wide" * 30, "resident": {"files": 5, "bytes": 10**12}, "at": 100.0,
                    "released": {"files": 5, "bytes": 10**12}}],
        "rooms": [{"path": "/fsx", "free": 10**12, "total": 10**13, "low": 0, "high": 0, "dry_run": False}],
        "past": [{"at": 10.0 * n, "window": 9, "in_flight": 5, "restored_files": n, "restored_bytes": n * n}
                 for n in range(200)],
        "health": {
            "ok": False, "version": "1.0", "draining": False, "started": 0.0, "stalled": True, "abandoned": 0,
            "jobs": {"running": jobs}, "totals": {}, "space": [],
            "lanes": [{"dev": 1, "mdt": 0, "window": 99, "in_flight": 9, "stalled": 0, "watched": 3, "waiting": 8}],
        },
    }  # fmt: skip


def test_files_that_have_stalled_are_told_and_where_all_have_that_instead_of_what_binds() -> None:
    def drawn(stalled: int) -> str:
        seen = overview(jobs=1, slow=0)
        seen["health"]["lanes"][0]["stalled"] = stalled
        console = Console(width=100, record=True)
        with console.capture() as capture:
            console.print(view(seen, width=100, height=30))
        return capture.get()

    assert "9 in flight, 2 of them stalled, up to 99" in drawn(2)
    assert "nothing moves" not in drawn(2)
    assert "nothing moves: all that is in flight has stalled" in drawn(9)
    assert "the limit is" not in drawn(9)
