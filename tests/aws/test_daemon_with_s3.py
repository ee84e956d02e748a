"""The daemon on a simulated FSx whose objects are in S3: what it knows of them, through the commands that ask it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aws.world import FILES, World, reported
from cli.machine import Done
from daemon import live


class Served:
    """A world with a daemon in it."""

    def __init__(self, world: World, socket: Path) -> None:
        self.world, self.socket = world, socket

    def fsxwarm(self, *arguments: str | Path) -> Done:
        return self.world.here.fsxwarm(*arguments, FSXWARM_DAEMON_SOCKET=str(self.socket))


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="fsxwarm-s3-") as name:  # a socket's name must be short
        folder = Path(name)
        (folder / "config.toml").write_text(
            f'[daemon]\nsocket = "{folder}/s"\nstate = "{folder}/state"\ngroup = ""\nadmin_group = ""\n'
            '[metrics]\nlisten = ""\n'
        )
        with closing(live.Systemd(folder)) as systemd:
            environ = world.here.variables | {"FSXWARM_ATTEMPTS": "1"}
            process = live.start(folder, world.here.fsx, systemd, environ)
            try:
                systemd.wait_for("READY=1")
                yield Served(world, folder / "s")
            finally:
                live.end(process)


def test_a_job_with_an_address_has_each_files_reason(served: Served, tmp_path: Path) -> None:
    world = served.world
    files = world.files
    world.archive(files[:2])
    world.delete(files[2:4])
    world.deny(files[4:6])
    report = tmp_path / "report"
    done = served.fsxwarm("preload", "--daemon", "s3://data/base/", "--json", "--report", report)
    assert done.status == 3, done
    expected = {str(path): ("blocked", "storage_class") for path in files[:2]}
    expected |= {str(path): ("blocked", "object_missing") for path in files[2:4]}
    expected |= {str(path): ("failed", "access_denied") for path in files[4:6]}
    assert reported(report) == expected
    counters = done.json["job"]["counters"]
    assert counters["restored"]["files"] == FILES - 6
    assert counters["reasons"] == {"storage_class": 2, "object_missing": 2, "access_denied": 2}


def test_release_by_the_daemon_leaves_what_s3_does_not_hold(served: Served) -> None:
    world = served.world
    gone = world.files[0]
    assert served.fsxwarm("preload", "--daemon", world.here.fsx.mount).status == 0
    world.delete([gone])
    done = served.fsxwarm("release", "--daemon", "--yes", "--json", "--check-s3", "always", world.here.fsx.mount)
    assert done.status == 3, done
    assert done.json["job"]["counters"]["reasons"] == {"no_object": 1}
    left = json.loads(served.fsxwarm("status", "--local", "--json", world.here.fsx.mount).out)
    assert left["resident"]["files"] == 1


def test_an_address_that_is_linked_nowhere_is_refused_at_once(served: Served) -> None:
    done = served.fsxwarm("preload", "--daemon", "s3://other/x")
    assert done.status == 2
    assert "linked to no file system" in done.err
