from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.live import Live, Systemd, end, living, start
from daemon.talk import parse
from fsxwarm.daemon.logs import bounded
from fsxwarm.daemon.notify import Notifier


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living() as running:
        yield running


def test_it_says_when_it_is_ready_and_answers_then(live: Live) -> None:
    assert live.ask(os.geteuid(), "GET", "/v1/health").json["ok"] is True
    assert "ready" in [line["event"] for line in live.log]


def test_a_new_configuration_holds_from_the_reload_on(live: Live) -> None:
    before = live.config.read_text()
    live.config.write_text(before + "[limits]\nrequest_size = 100\n")
    try:
        live.reload()
        wish = {"kind": "preload", "paths": [str(live.mount)], "label": "x" * 100}
        assert live.ask(os.geteuid(), "POST", "/v1/jobs", wish).status == 413
    finally:
        live.config.write_text(before)
        live.reload()
    assert live.log[-1]["event"] == "configuration_read"


@pytest.mark.parametrize("bad", ["[daemon", "[deamon]\n", "[limits]\nopen_jobs = 0\n", '[daemon]\ngroup = "no such"\n'])
def test_a_bad_configuration_changes_nothing_and_is_told_of(live: Live, bad: str) -> None:
    before = live.config.read_text()
    live.config.write_text(bad)
    try:
        live.reload()
    finally:
        live.config.write_text(before)
    assert live.log[-1]["level"] == "error"
    assert live.log[-1]["event"] == "configuration_bad"
    assert any("old configuration" in line for line in live.systemd.heard)
    assert live.ask(os.geteuid(), "GET", "/v1/health").status == 200


def test_what_needs_a_restart_is_named(live: Live) -> None:
    before = live.config.read_text()
    live.config.write_text(before.replace("/run/s", "/run/other") + "[warming]\nattempts = 9\nhelpers = 3\n")
    try:
        live.reload()
        live.reload()
        assert any("from the next start on: daemon.socket, warming.helpers" in line for line in live.systemd.heard)
    finally:
        live.config.write_text(before)
        live.reload()
    said = [line.get("after_restart") for line in live.log]
    assert said[-3:] == ["daemon.socket, warming.helpers"] * 2 + [None]


def test_it_stops_when_told_to_and_answers_who_waits() -> None:
    with living("--bandwidth", "1KB") as live:
        uid = os.geteuid()
        job = live.ask(uid, "POST", "/v1/jobs", {"kind": "preload", "paths": [str(live.mount)]}).json["id"]
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.settimeout(20)
            waiting.connect(live.socket)
            waiting.sendall(f"GET /v1/jobs/{job}/wait?timeout=60 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            live.alive()  # answered later, so that the other is being waited for by now
            assert end(live.process) < 10
            answer = parse(b"".join(iter(lambda: waiting.recv(65536), b"")))
        assert (answer.status, answer.kind) == (503, "restarting")
        assert live.process.returncode == 0
        live.systemd.wait_for("STOPPING=1")
        assert not Path(live.socket).exists()
        live.systemd.forget()
        live.process = start(live.folder, live.fsx, live.systemd, {})
        live.systemd.wait_for("READY=1")
        assert live.ask(uid, "GET", f"/v1/jobs/{job}").json["phase"] in {"queued", "running"}


def test_it_leaves_in_time_although_children_hang() -> None:
    """An lfs that does not die of SIGTERM and sleeps on: as if it hung in the kernel."""
    with living() as live:
        real = live.fsx.lfs.with_name("lfs-real")
        live.fsx.lfs.rename(real)
        hang = "case $1 in hsm_*) while :; do sleep 60; done;; esac"
        script = f"#!/bin/sh\ntrap '' TERM INT\n{hang}\nexec {real} \"$@\"\n"
        live.fsx.lfs.write_text(script)
        live.fsx.lfs.chmod(0o755)
        live.ask(os.geteuid(), "POST", "/v1/jobs", {"kind": "preload", "paths": [str(live.mount)]})
        live.ask(os.geteuid(), "GET", "/v1/jobs/1/wait?timeout=1")
        assert end(live.process) < 10
        assert live.process.returncode == 0


def test_the_watchdog_hears_it_live() -> None:
    with living(WATCHDOG_USEC="500000") as live:
        live.systemd.forget()
        for _ in range(3):
            live.systemd.wait_for("WATCHDOG=1")
            live.systemd.forget()


def test_a_second_one_does_not_start(live: Live) -> None:
    second = start(live.folder, live.fsx, live.systemd, {})
    assert second.wait(30) == 5
    assert live.ask(os.geteuid(), "GET", "/v1/health").status == 200


def test_systemd_may_pass_the_socket() -> None:
    """As sd_listen_fds(3) has it: descriptor 3, LISTEN_PID and LISTEN_FDS."""
    with living() as live:
        end(live.process)
        live.systemd.forget()
        path = str(live.folder / "run" / "passed")
        with socket.socket(socket.AF_UNIX) as passed:
            passed.bind(path)
            passed.listen()
            code = (
                "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID'] = str(os.getpid());"
                " os.execv(sys.executable, [sys.executable, '-m', 'fsxwarm', 'daemon', '--config', sys.argv[2]])"
            )
            command = [sys.executable, "-c", code, str(passed.fileno()), str(live.config)]
            environ = {**live.fsx.environ(os.environ), "LISTEN_FDS": "1", "NOTIFY_SOCKET": str(live.systemd.path)}
            live.process = subprocess.Popen(command, env=environ, pass_fds=[passed.fileno()], stderr=subprocess.DEVNULL)
            live.systemd.wait_for("READY=1")
            asked = subprocess.run(
                ["curl", "-s", "--unix-socket", path, "http://x/v1/health"], capture_output=True, check=True, timeout=20
            )
            assert json.loads(asked.stdout)["ok"] is True
            assert not Path(live.socket).exists()
            assert end(live.process) < 10
            assert Path(path).exists()


def test_notifying_nobody_is_no_error() -> None:
    Notifier({}, 1).ready("x")
    Notifier({"NOTIFY_SOCKET": "/nowhere/at/all"}, 1).stopping()


async def test_the_watchdog_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    systemd = Systemd(tmp_path)
    try:
        environ = {"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
        await asyncio.wait_for(Notifier(environ, 2).live(), 5)
    finally:
        systemd.close()


def test_the_log_hides_secrets_and_bounds_what_it_says() -> None:
    fields = bounded(
        None, "info", {"event": "x\n\x1b[1m", "aws_secret_access_key": "k", "path": b"/a\xff" + b"x" * 9999}
    )
    assert "(hidden)" in fields.values()
    assert fields["event"] == "x\\n\\x1b[1m"
    assert len(fields["path"]) < 2100


def test_an_idle_daemon_costs_little(live: Live) -> None:
    status = Path(f"/proc/{live.process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident < 80 * 1024

    def ticks() -> int:
        return sum(map(int, Path(f"/proc/{live.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    began, before = time.monotonic(), ticks()
    threading.Event().wait(3)
    spent = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    assert spent / (time.monotonic() - began) < 0.02
