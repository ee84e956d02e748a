"""What the environment names and nobody can read, or mistypes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.machine import Site
from fsxwarm.cli.environment import mistyped
from fsxwarm.configfile import variables

PATHS = {"preload", "release", "status", "pin", "wait", "plan"}


def _run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fsxwarm", *arguments]
    environ = {"PATH": "/usr/bin:/bin"} | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environ)


@pytest.mark.parametrize(
    "command",
    ["preload", "release -y", "status", "pin", "wait", "plan", "preload --local", "doctor", "jobs list", "top"],
)
def test_a_named_configuration_that_is_not_there_is_usage(command: str, tmp_path: Path) -> None:
    words = command.split()
    where = [str(tmp_path)] if words[0] in PATHS else []
    done = _run(*words, *where, FSXWARM_CONFIG="/nonexistent")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fsxwarm: there is no configuration /nonexistent")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"[daemon\n", "Expected ']'"), (b"\xff", "utf-8"), (None, "Is a directory"), (bytes(17 << 20), "too large")],
)
def test_a_named_configuration_that_cannot_be_read_is_usage(tmp_path: Path, content: bytes | None, says: str) -> None:
    named = tmp_path / "config.toml"
    if content is None:
        named.mkdir()
    else:
        named.write_bytes(content)
    done = _run("status", tmp_path, FSXWARM_CONFIG=str(named))
    assert done.returncode == 2
    assert f"{named}: " in done.stderr
    assert says in done.stderr


@pytest.mark.parametrize("command", ["status", "release -y", "preload", "pin"])
def test_a_mount_table_without_end_is_usage(command: str, tmp_path: Path) -> None:
    done = _run(*command.split(), tmp_path, FSXWARM_MOUNTS="/dev/zero")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fsxwarm: cannot read the mount table /dev/zero: File too large")


def test_a_configuration_without_end_is_usage() -> None:
    done = _run("config", "check", FSXWARM_CONFIG="/dev/zero")
    assert done.returncode == 2
    assert "cannot read /dev/zero: File too large" in done.stderr


def test_help_and_the_simulator_need_no_configuration(tmp_path: Path) -> None:
    assert _run("preload", "--help", FSXWARM_CONFIG="/nonexistent").returncode == 0
    (tmp_path / "mine").write_bytes(b"")
    done = _run("sim", tmp_path, FSXWARM_CONFIG="/nonexistent")
    assert "is not empty" in done.stderr


def test_a_mistyped_variable_is_told_beside_the_work(site: Site) -> None:
    done = site.fsxwarm("status", site.data, "--json", FSXWARM_WINDOW_STRAT="5", FSXWARM_DAEMON_SOKET="/x")
    assert done.status == json.loads(done.out)["exit"] == 0
    assert done.err.splitlines() == [
        "fsxwarm: FSXWARM_DAEMON_SOKET is not read: did you mean FSXWARM_DAEMON_SOCKET?",
        "fsxwarm: FSXWARM_WINDOW_STRAT is not read: did you mean FSXWARM_WINDOW_START?",
    ]


def test_variables_that_are_read_or_somebody_elses_are_no_matter() -> None:
    assert "FSXWARM_LIMITS_OPEN_JOBS" in variables()
    assert (
        mistyped(dict.fromkeys([*variables(), "FSXWARM_HELPERS", "FSXWARM_DEBUG", "FSXWARM_SITE", "HOME"], "1")) == []
    )
