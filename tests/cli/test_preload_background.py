"""`fsxwarm preload --background`: starting, waiting, ending."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli.machine import Site


def _wait(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(descriptor) as process:
        assert select.select([process], [], [], 60)[0], "it never ended"


def _ended(document: Any) -> str:
    _wait(document["pid"])
    assert not Path(document["pid_file"]["path"]).exists()
    return Path(document["log"]["path"]).read_text()


def test_it_returns_once_the_work_has_begun_and_the_log_has_the_end(site: Site) -> None:
    done = site.fsxwarm("preload", site.data, "--background", "--json")
    document = done.json
    assert (done.status, document["schema"], document["state"]) == (0, "fsxwarm.background/1", "started")
    summary = json.loads(_ended(document).splitlines()[-1])
    assert summary["outcomes"]["restored"]["files"] == 12


def test_people_are_told_where_the_log_is_and_how_to_stop_it(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    done = site.fsxwarm("preload", site.data, "--background", "--no-wait")
    assert done.status == 0
    words = done.out.split()
    pid = int(words[words.index("kill") + 1])
    pid_file, log = Path(words[words.index("pid") + 1]), Path(words[words.index("log") + 1])
    assert int(pid_file.read_text()) == pid
    assert os.getsid(pid) == pid
    os.kill(pid, signal.SIGTERM)
    _wait(pid)
    assert not pid_file.exists()
    assert "to resume: fsxwarm preload" in log.read_text()


def test_it_returns_when_the_share_is_ready_and_the_rest_goes_on(site: Site) -> None:
    order = site.fsx.folder / "order"
    order.write_text("\n".join(map(str, site.files)))
    site.fsx.control("fail", paths=[str(site.files[-1])], fault="stuck")
    done = site.fsxwarm(
        "preload", "--files-from", order, "--background", "--ready", "0.5", "--deadline", "60s", "--json"
    )
    document = done.json
    assert (done.status, document["state"]) == (0, "ready")
    assert not any(site.released(path) for path in site.files[:6])
    assert site.released(site.files[-1])
    os.kill(document["pid"], signal.SIGTERM)
    assert json.loads(_ended(document).splitlines()[-1])["ready"]


def test_what_ends_before_it_is_ready_gives_its_exit_status(site: Site) -> None:
    site.fsx.control("flags", paths=[str(site.files[0])], flags=0x4D)
    done = site.fsxwarm("preload", site.data, "--background", "--ready", "1")
    assert done.status == 3
    assert "ended with exit status 3" in done.out


def test_errors_of_the_start_reach_the_user(site: Site, tmp_path: Path) -> None:
    missing = site.fsxwarm("preload", site.fsx.mount / "nothing", "--background", "--json")
    assert (missing.status, missing.json["error"]["kind"]) == (2, "no_such_path")
    assert site.fsxwarm("preload", tmp_path, "--background").status == 5
    without_lfs = site.fsxwarm("preload", site.data, "--background", PATH="/nowhere")
    assert without_lfs.status == 5
    assert "lfs" in without_lfs.err
    (tmp_path / "file").touch()
    no_log = site.fsxwarm("preload", site.data, "--background", XDG_STATE_HOME=str(tmp_path / "file"))
    assert no_log.status == 2
    assert "XDG_STATE_HOME" in no_log.err
    left = site.fsx.folder / "state" / "fsxwarm"
    assert not left.exists() or list(left.iterdir()) == []


def test_a_list_from_a_pipe_is_read_in_the_background(site: Site) -> None:
    done = site.fsxwarm("preload", "--files-from", "-", "--background", "--json", stdin=os.fsencode(site.files[0]))
    assert done.status == 0
    assert json.loads(_ended(done.json).splitlines()[-1])["outcomes"]["restored"]["files"] == 1


def test_ctrl_c_while_waiting_leaves_it_running(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    command = [sys.executable, "-m", "fsxwarm", "preload", site.data, "--background", "--ready", "1"]
    with subprocess.Popen(command, env=site.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        words = [child.stdout.readline().split() for _ in range(4)][-1]
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert "goes on in the background" in child.stderr.read().decode()
    pid = int(words[-1])
    os.kill(pid, signal.SIGTERM)
    _wait(pid)


def test_a_background_process_that_is_killed_is_an_error_that_names_the_log(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    command = [sys.executable, "-m", "fsxwarm", "preload", site.data, "--background", "--ready", "1"]
    with subprocess.Popen(command, env=site.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        words = [child.stdout.readline().split() for _ in range(4)][-1]
        os.kill(int(words[-1]), signal.SIGKILL)
        assert child.wait(timeout=60) == 1
        error = child.stderr.read().decode()
    assert ".log" in error
    assert "Traceback" not in error


def test_a_log_that_cannot_be_written_is_told_once(site: Site) -> None:
    done = site.fsxwarm("preload", site.data, "--background", XDG_STATE_HOME="/proc/1/x")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("fsxwarm: --background cannot write its log in /proc/1/x/fsxwarm: ")
