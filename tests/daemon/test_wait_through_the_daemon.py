"""`fsxwarm wait` where a daemon answers: a job for the same files is waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.machine import Done
from daemon.live import Live, living


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living() as running:
        yield running


def fsxwarm(live: Live, *arguments: str | Path) -> Done:
    environ = {**live.fsx.environ(os.environ), "FSXWARM_CONFIG": str(live.config)}
    command = [sys.executable, "-m", "fsxwarm", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=60, cwd=live.mount)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_job_for_the_same_paths_is_waited_for(live: Live) -> None:
    path = live.file("waited/file", uid=os.geteuid())
    live.fsx.control("coordinator", seconds=600.0)
    wish = {"kind": "preload", "paths": [str(path.parent)], "options": {"ready": 0.5}}
    job = live.ask(os.geteuid(), "POST", "/v1/jobs", wish).json["id"]
    try:
        late = fsxwarm(live, "wait", "waited/", "--timeout", "2s")
        assert (late.status, f"waiting for job {job} of the daemon" in late.err) == (4, True)
        assert fsxwarm(live, "wait", "waited", "--ready", "0.5", "--timeout", "1s", "--json").json["job"]["id"] == job
        assert "job" not in fsxwarm(live, "wait", "waited", "--ready", "0.6", "--timeout", "1s", "--json").json
    finally:
        live.fsx.control("coordinator", seconds=0.0)
    done = fsxwarm(live, "wait", path.parent, "--timeout", "60s", "--json")
    assert (done.status, done.json["ready"]) == (0, True)


def test_without_such_a_job_the_files_are_looked_at(live: Live) -> None:
    path = live.file("alone/file", uid=os.geteuid())
    done = fsxwarm(live, "wait", path, "--timeout", "1s", "--json")
    assert (done.status, done.json["left"]["files"]) == (4, 1)
    assert live.released(path)
    refused = fsxwarm(live, "wait", path, "--daemon")
    assert (refused.status, "no job of yours" in refused.err) == (2, True)
