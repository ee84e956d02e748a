from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "systemd"
NEEDS_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None and "CI" not in os.environ,
    reason="systemd-analyze is not installed (package systemd)",
)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they would be installed, with a program that exists."""
    service = (UNITS / "fsxwarm.service").read_text()
    program = Path(sys.executable).with_name("fsxwarm")
    (tmp_path / "fsxwarm.service").write_text(service.replace("/usr/bin/fsxwarm", str(program)))
    shutil.copy(UNITS / "fsxwarm.socket", tmp_path)
    return tmp_path


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "--no-pager", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@NEEDS_SYSTEMD
def test_the_units_are_clean(units: Path) -> None:
    done = analyze("verify", units / "fsxwarm.service", units / "fsxwarm.socket")
    ours = [line for line in done.stderr.splitlines() if "fsxwarm" in line]
    assert (done.returncode, ours) == (0, [])


@NEEDS_SYSTEMD
def test_the_drop_in_is_clean(units: Path) -> None:
    folder = units / "fsxwarm.service.d"
    folder.mkdir()
    shutil.copy(UNITS / "fsxwarm.service.d" / "mounts.conf.example", folder / "mounts.conf")
    done = analyze("verify", units / "fsxwarm.service")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "fsxwarm" in line]) == (0, [])


@NEEDS_SYSTEMD
def test_the_service_is_exposed_little(units: Path) -> None:
    done = analyze("security", "--offline=true", "--threshold=30", units / "fsxwarm.service")
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def test_it_gets_no_more_of_root_than_it_needs() -> None:
    lines = (UNITS / "fsxwarm.service").read_text().splitlines()
    bounds = next(line.partition("=")[2].split() for line in lines if line.startswith("CapabilityBoundingSet="))
    assert set(bounds) == {
        "CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_FOWNER",
    }  # fmt: skip


def test_the_socket_is_for_its_group_alone() -> None:
    lines = (UNITS / "fsxwarm.socket").read_text().splitlines()
    assert "SocketMode=0660" in lines
    assert "SocketGroup=fsxwarm-users" in lines
