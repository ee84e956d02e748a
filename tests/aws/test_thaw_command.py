"""`preload --thaw`: archived objects are thawed, at the price that is said, and their files are warm at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_api import state_manager
from moto.s3.models import s3_backends

from aws.world import FILES, World, reported
from fsxwarm.model.s3 import ThawTier


@pytest.fixture
def frozen(world: World) -> Iterator[World]:
    """The world with two archived objects whose thaws do not end."""
    world.archive(world.files[:2])
    state_manager.set_transition("s3::keyrestore", {"progression": "manual", "times": 10**6})
    keys = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket("data").keys
    for path in world.files[:2]:
        keys[world.key(path)].status = "IN_PROGRESS"
    yield world
    state_manager.unset_transition("s3::keyrestore")


def test_archived_objects_are_thawed_and_all_is_warm(world: World) -> None:
    world.archive(world.files[:3])
    world.archive(world.files[3:5], "DEEP_ARCHIVE")
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--thaw", "--days", "2", "--json")
    assert done.status == 0, done
    assert done.json["outcomes"]["restored"]["files"] == FILES
    thaw = done.json["thaw"]
    assert (thaw["tier"], thaw["days"]) == ("Bulk", 2)
    assert thaw["asked"]["files"] == thaw["thawed"]["files"] == 5
    assert thaw["waiting"]["files"] == 0
    assert not world.released()


def test_it_says_the_cost_class_and_what_came_of_it(world: World) -> None:
    world.archive(world.files[:2])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--thaw", "--tier", "standard")
    assert done.status == 0, done
    assert "thawing 2 archived objects, 2.00 KB: Standard (charged by request and by GB; takes up to 5h" in done.err
    assert "asked to thaw 2 objects" in done.out


def test_a_dry_run_asks_for_no_thaw(world: World) -> None:
    world.archive(world.files[:2])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--thaw", "--dry-run", "--json")
    assert done.status == 0, done
    assert done.json["thaw"]["waiting"]["files"] == 2
    assert done.json["released"]["files"] == FILES
    assert "Restore" not in world.s3.head_object(Bucket="data", Key=world.key(world.files[0]))
    text = world.here.fsxwarm("preload", world.here.fsx.mount, "--thaw", "--dry-run").out
    assert "thawed first: 2 objects" in text
    assert "Bulk (the cheapest" in text
    without = world.here.fsxwarm("preload", world.here.fsx.mount, "--dry-run", "--json").json
    assert without["blocked"]["storage_class"]["files"] == 2
    assert without["released"]["files"] == FILES - 2


def test_options_that_do_not_go_together(world: World) -> None:
    mount = world.here.fsx.mount
    for options, word in (
        (("--tier", "Bulk"), "--tier is for --thaw"),
        (("--days", "3"), "--days is for --thaw"),
        (("--thaw", "--check-s3", "never"), "--thaw has to look"),
        (("--thaw", "--tier", "Cheap"), "Cheap"),
        (("--thaw", "--days", "0"), "--days"),
    ):
        done = world.here.fsxwarm("preload", mount, *options)
        assert done.status == 2, done
        assert word in done.err
    assert {tier.value for tier in ThawTier} == {"Bulk", "Standard", "Expedited"}


def test_without_credentials_a_thaw_cannot_be_had(world: World) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--thaw", **variables)
    assert done.status == 5
    assert "AWS_PROFILE" in done.err


def test_at_the_deadline_the_rest_is_warm_and_what_is_not_thawed_is_named(frozen: World, tmp_path: Path) -> None:
    report = tmp_path / "report"
    arguments = ("preload", frozen.here.fsx.mount, "--thaw", "--report", report)
    done = frozen.here.fsxwarm(*arguments, "--deadline", "10s", "--json")
    assert done.status == 4, done
    assert done.json["thaw"]["waiting"]["files"] == 2
    assert done.json["outcomes"]["restored"]["files"] == FILES - 2
    assert done.json["outcomes"]["blocked"]["files"] == 2
    assert done.json["found"]["files"] == FILES
    assert done.json["scan_complete"]
    assert done.json["not_reached"]["files"] == 0
    assert reported(report) == {str(path): ("blocked", "thawing") for path in frozen.files[:2]}
    again = frozen.here.fsxwarm(*arguments, "--deadline", "6s", "--progress", "json")
    assert again.status == 4
    assert {json.loads(line).get("thawing") for line in again.err.splitlines()} >= {2}
    assert "2 more were being thawed already" in again.out
    assert "2 objects not thawed yet" in again.out


def test_ctrl_c_lets_go_of_what_is_being_thawed(frozen: World) -> None:
    environ = frozen.here.fsx.environ(os.environ) | frozen.here.variables
    command = [sys.executable, "-m", "fsxwarm", "preload", frozen.here.fsx.mount, "--thaw", "--progress", "lines"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert any("thawing 2 archived objects" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(timeout=60) == 130
    assert "2 objects not thawed yet" in said
    assert "to resume" in said
