"""Real processes that go wrong: children killed, stopped, cut off, failing; odd names by the thousand; a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsxwarm.sim.launch import SimulatedFsx

COLD = 0x0D
# An lfs that fails as children do, by chance; "stop" leaves requests alone: whoever stops one holds its files up.
ROUGH = """#!{python} -IS
import os, random, signal, subprocess, sys
real, chance = {real!r}, random.Random()
roll = chance.random()
if {mode!r} == "kill" and roll < 0.2:
    os.kill(os.getpid(), signal.SIGKILL)
if {mode!r} == "eio" and roll < 0.2:
    sys.exit("Cannot do it: Input/output error") if roll < 0.1 else os._exit(5)
if {mode!r} == "cut" and roll < 0.3:
    done = subprocess.run([real, *sys.argv[1:]], stdout=subprocess.PIPE)
    os.write(1, done.stdout[: chance.randint(0, len(done.stdout))])
    os.kill(os.getpid(), signal.SIGKILL)
if {mode!r} == "stop" and roll < 0.15 and sys.argv[1] in ("hsm_state", "hsm_action"):
    os.kill(os.getpid(), signal.SIGSTOP)
os.execv(real, [real, *sys.argv[1:]])
"""

NASTY = [
    b"plain%d", b"two words%d", b"new\nline%d", b"-dash%d", b"--help%d", b"a: (0x00000000)%d",
    b"x: (0x0000000d) released exists archived, archive_id:1\n%d", b"bad\xff\xfe%d", b"tab\tcr\resc\x1b[31m%d",
    b"q'\"`$(x)\\%d", b"*?[a]%d", b"{0..9}%d", b"%%s%%n%d", b" lead%d", b"trail%d ", b"n" * 240 + b"%d",
    "h\u00e9llo-\u6f22\u5b57-\U0001f600%d".encode(), b".hidden%d", b"NOOP%d", b"#%d",
]  # fmt: skip


def _preload(fsx: SimulatedFsx, *arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "fsxwarm", "preload", str(fsx.mount), "--local", *arguments],
        env=fsx.environ({**os.environ, "FSXWARM_BACKEND": "lfs", **environ}),
        capture_output=True,
        timeout=240,
        check=False,
    )


def _left_behind(fsx: SimulatedFsx) -> list[str]:
    """Processes other than the simulator that still have to do with it."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(fsx.folder) in line and " sim " not in line:
            found.append(line)
    return found


@pytest.mark.parametrize("mode", ["kill", "eio", "cut", "stop"])
def test_children_that_go_wrong_lose_nothing(sim_fsx, tmp_path: Path, mode: str) -> None:  # noqa: ANN001 - a fixture
    fsx: SimulatedFsx = sim_fsx("--files", "400", "--size", "20KB")
    rough = tmp_path / "rough-lfs"
    rough.write_text(ROUGH.format(python=Path(sys.executable).resolve(), real=str(fsx.lfs), mode=mode))
    rough.chmod(0o755)
    report = tmp_path / "report.jsonl"
    done = _preload(fsx, "--report", str(report), FSXWARM_LFS=str(rough), FSXWARM_CALL_DEADLINE="2s")
    assert done.returncode in {0, 3}, done.stderr
    assert b"Traceback" not in done.stderr + done.stdout
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    named = {line["path"] for line in lines if "outcome" in line}
    cold = {str(path) for path in fsx.mount.rglob("*.bin") if not path.stat().st_blocks}
    assert named == cold
    assert (done.returncode == 3) is bool(cold)
    assert "summary" in lines[-1]
    assert _left_behind(fsx) == []


def test_ten_thousand_files_with_every_kind_of_name(sim_fsx) -> None:  # noqa: ANN001 - a fixture
    fsx: SimulatedFsx = sim_fsx("--files", "0")
    paths = [os.fsencode(fsx.mount) + b"/" + (NASTY[number % len(NASTY)] % number) for number in range(10_000)]
    for path in paths:
        with open(path, "xb") as file:  # noqa: PTH123 - Path is for text
            file.truncate(5000)
    fsx.control("flags", paths=[os.fsdecode(path) for path in paths], flags=COLD)
    done = _preload(fsx, "--json")
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout)["outcomes"]["restored"]["files"] == 10_000
    assert all(os.stat(path).st_blocks > 1 for path in paths)  # noqa: PTH116 - names as bytes
    assert fsx.control("counters").get("duplicates", 0) == 0
    assert _left_behind(fsx) == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 16 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], check=False)
    if made.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_the_report_and_nothing_else(sim_fsx, full_disk: Path) -> None:  # noqa: ANN001 - a fixture
    fsx: SimulatedFsx = sim_fsx("--files", "150", "--size", "20KB", "--fail", "100%")
    done = _preload(fsx, "--report", str(full_disk / "report.jsonl"), "--attempts", "1")
    assert done.returncode == 1, done.stderr
    assert b"No space left on device" in done.stderr
    assert list(full_disk.iterdir()) == []
    assert b"150" in done.stdout
