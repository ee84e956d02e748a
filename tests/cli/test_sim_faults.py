"""`fsxwarm sim --fault`, and the environment in which commands and a daemon work with the simulated FSx."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.machine import Site
from fsxwarm.cli.commands import load
from fsxwarm.sim.faults import CallFault, Fault
from fsxwarm.sim.launch import SimulatedFsx

SimFsx = Callable[..., SimulatedFsx]


def made(sim_fsx: SimFsx, *faults: str) -> Site:
    options = [word for fault in faults for word in ("--fault", fault)]
    return Site(sim_fsx("--files", "40", "--size", "10KB", "--latency", "0ms", *options))


def failed(site: Site) -> set[Path]:
    """Have all files restored; returns those that are released when nothing is under way any more."""
    files = sorted(site.fsx.mount.rglob("*.bin"))
    site.lfs("hsm_restore", *files)
    for _ in range(200):
        if "RESTORE" not in site.lfs("hsm_action", *files):
            return {path for path in files if site.released(path)}
    raise AssertionError("the simulator does not come to an end")


def test_restores_of_a_share_of_the_files_fail_always_of_the_same_ones(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx, "access-denied:30%")
    first = failed(site)
    assert 0 < len(first) < 30
    assert failed(site) == first


def test_each_fault_has_files_of_its_own(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx, "object-missing:30%:1", "disk-full:30%")
    assert failed(site) > failed(site) > set()


def test_only_the_first_restores_of_each_file_fail(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx, "access-denied:1:1")
    assert [len(failed(site)), len(failed(site))] == [40, 0]


def test_restores_that_are_stuck_run_and_move_nothing(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx, "stuck:100%")
    path = next(path for path in site.fsx.mount.rglob("*.bin"))
    site.lfs("hsm_restore", path)
    assert "RESTORE running (0 bytes moved)" in site.lfs("hsm_action", path)


def test_calls_go_wrong(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx, "eio:100%")
    path = next(path for path in site.fsx.mount.rglob("*.bin"))
    done = subprocess.run([site.fsx.lfs, "hsm_state", path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 5
    assert "Input/output error" in done.stderr


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("sticky:1%", "'sticky' is no fault: there are object-missing, "),
        ("", "'' is no fault"),
        ("stuck", "'' is no share"),
        ("stuck:200%", "'200%' is no share"),
        ("stuck:1%:0", "'0' is no number of restores"),
        ("stuck:1%:twice", "'twice' is no number of restores"),
        ("hang:1%:2", "write hang:1%"),
    ],
)
def test_what_is_no_fault_is_one_line(tmp_path: Path, fault: str, why: str) -> None:
    command = [sys.executable, "-m", "fsxwarm", "sim", tmp_path / "fsx", "--fault", fault]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert why in done.stderr
    assert not (tmp_path / "fsx").exists()


@pytest.mark.parametrize(
    "options", [("--latency", "nanms"), ("--latency", "-5ms"), ("--bandwidth", "0"), ("--files", "-1"), ("--mdts", "0")]
)
def test_what_is_no_property_is_one_line(tmp_path: Path, options: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "fsxwarm", "sim", tmp_path / "fsx", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert options[0] in done.stderr


@pytest.mark.parametrize("name", [b"file", b"file/below", b"full", b"not-utf8-\xff"])
def test_what_can_be_no_simulated_fsx_is_one_line(tmp_path: Path, name: bytes) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    command = [sys.executable, "-m", "fsxwarm", "sim", os.fsencode(tmp_path) + b"/" + name]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"unforeseen" not in done.stderr


def test_its_environment_is_all_that_a_daemon_and_its_users_need(sim_fsx: SimFsx) -> None:
    site = made(sim_fsx)
    ours = f". '{site.fsx.folder}/env'; exec '{sys.executable}' -m fsxwarm"
    bare = {"HOME": "/", "PATH": os.environ["PATH"], "FSXWARM_METRICS_LISTEN": "127.0.0.1:0"}
    command = ["sh", "-c", f"{ours} daemon"]
    with subprocess.Popen(command, env=bare, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as daemon:
        try:
            assert daemon.stderr is not None
            assert any('"ready"' in line for line in daemon.stderr)
            command = ["sh", "-c", f"{ours} preload '{site.fsx.mount}'"]
            done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False, timeout=60)
            assert (done.returncode, "the daemon has it as job 1" in done.stderr) == (0, True)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.communicate(timeout=60)
    assert daemon.returncode == 0


def test_the_help_names_every_fault() -> None:
    said = load("sim").help
    assert [fault for fault in (*Fault, *CallFault) if fault.replace(" ", "-") not in said] == []
