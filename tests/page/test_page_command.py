"""`fsxwarm page` against a running daemon: its address opens the page of whoever asked, and of nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.live import ALICE, BOB, EVE, Live, living

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living(settings='[metrics]\nlisten = "127.0.0.1:0"\n') as running:
        yield running


def page(live: Live, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "FSXWARM_DAEMON_SOCKET": live.socket}
    command = [sys.executable, "-m", "fsxwarm", "page", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


def look(address: str, jar: Path) -> str:
    """What a browser gets to see that keeps its cookies in `jar`."""
    command = [
        "curl",
        "-sS",
        "--max-time",
        "60",
        "-L",
        "-c",
        str(jar),
        "-b",
        str(jar),
        "-w",
        "\n%{url_effective}",
        address,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_prints_an_address_that_works_once(live: Live, tmp_path: Path) -> None:
    live.job(os.geteuid(), live.mount, label="of mine")
    done = page(live)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "works once" in done.stderr
    assert "ssh -L" in done.stderr
    address = done.stdout.strip()
    seen = look(address, tmp_path / "mine")
    assert "of mine" in seen
    assert "works once" not in seen
    place = seen.rpartition("\n")[2]
    assert "of mine" in look(place, tmp_path / "mine")
    assert "opens nothing" in look(address, tmp_path / "another")
    assert "another browser" in look(place, tmp_path / "another")
    counted = look(f"{place}folders?path={live.mount}", tmp_path / "mine")
    assert "40 files" in counted
    assert "100%" in counted


def test_as_json(live: Live) -> None:
    document = json.loads(page(live, "--json").stdout)
    assert (document["schema"], document["exit"]) == ("fsxwarm.page/1", 0)
    assert document["address"].startswith("http://127.0.0.1:")


@needs_root
def test_each_sees_his_own_with_his_own_rights(live: Live, tmp_path: Path) -> None:
    theirs = live.mount / "alice" / "secret.bin"
    theirs.parent.mkdir()
    next(path for path in live.mount.rglob("sample-*") if path.is_file()).rename(theirs)
    for path in (theirs.parent, theirs):
        os.chown(path, ALICE, ALICE)
    theirs.parent.chmod(0o700)
    live.ask(ALICE, "POST", "/v1/jobs", {"kind": "preload", "paths": [str(theirs.parent)], "label": "for alice"})
    places = {}
    for uid in (ALICE, BOB):
        answer = live.ask(uid, "POST", "/v1/page")
        assert answer.status == 201
        seen = look(answer.json["address"], tmp_path / str(uid))
        places[uid] = seen.rpartition("\n")[2]
        assert ("for alice" in seen) is (uid == ALICE)
    folder = f"folders?path={theirs.parent}"
    assert "1 file" in look(places[ALICE] + folder, tmp_path / str(ALICE))
    assert "1 file" not in look(places[BOB] + folder, tmp_path / str(BOB))
    with pytest.raises(ConnectionError):  # the socket is closed to her
        live.ask(EVE, "POST", "/v1/page")


def test_without_a_listener_there_is_no_page() -> None:
    with living(settings='[metrics]\nlisten = ""\n') as live:
        done = page(live)
        assert done.returncode == 5
        assert done.stderr == "fsxwarm: this daemon has no page (it needs metrics.listen)\n"


def test_an_open_page_does_not_keep_the_daemon_from_stopping(live: Live, tmp_path: Path) -> None:
    seen = look(page(live).stdout.strip(), tmp_path / "jar")
    command = ["curl", "-sN", "-b", str(tmp_path / "jar"), f"{seen.rpartition(chr(10))[2]}events"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stream:
        assert stream.stdout is not None
        assert stream.stdout.readline() == b"data: anew\n"
        live.process.terminate()
        assert live.process.wait(10) == 0
        stream.stdout.read()
