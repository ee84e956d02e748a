"""Metrics of a daemon as a process: on its socket for those whom it serves, on TCP where that can be."""

from __future__ import annotations

import os
import socket
import urllib.request

import pytest

from daemon.live import ALICE, EVE, end, living
from metrics.tools import promtool


def listening() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


def test_where_the_port_is_taken_it_says_so_and_goes_on() -> None:
    with listening() as taken:
        taken.listen()
        address = "{}:{}".format(*taken.getsockname())
        with living(settings=f'[metrics]\nlisten = "{address}"\n') as live:
            assert f"cannot listen at {address}: Address already in use" in (live.folder / "log").read_text()
            assert live.job(0, live.mount)["counters"]["restored"]["files"] == 40
            told = live.ask(0, "GET", "/metrics").body
    assert b'fsxwarm_settled_files_total{outcome="restored"} 40.0' in told
    assert promtool("check", "metrics", text=told) == ""


def test_it_is_had_by_anybody_on_tcp_and_by_its_users_on_the_socket() -> None:
    with listening() as free:
        host, port = free.getsockname()
    with living(settings=f'[metrics]\nlisten = "{host}:{port}"\n') as live:
        if os.geteuid() == 0:
            assert live.ask(ALICE, "GET", "/metrics").status == 200
            with pytest.raises(ConnectionError):  # she may not even open it
                live.ask(EVE, "GET", "/metrics")
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
            assert b"fsxwarm_build_info" in answer.read()
        with pytest.raises(OSError, match="404"):
            urllib.request.urlopen(f"http://{host}:{port}/v1/jobs", timeout=20)
        with socket.create_connection((host, port)):
            assert end(live.process) < 10


def test_without_an_address_it_is_not_on_tcp() -> None:
    with listening() as free:
        host, port = free.getsockname()
    with living(settings='[metrics]\nlisten = ""\n') as live:
        assert live.ask(0, "GET", "/metrics").status == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port))
        assert "listen" not in (live.folder / "log").read_text()
