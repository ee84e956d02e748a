"""`fsxwarm plan`: what a preload would take, with what AWS knows of the file system and its objects."""

from __future__ import annotations

from typing import Any

import pytest

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, association, file_system
from aws.machine import Machine
from aws.world import FILES, World


def _placed(account: Account, machine: MakeMachine, system: dict[str, Any], *options: str) -> Machine:
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data/base")]
    return machine(system, *options)


def test_what_s3_refuses_is_counted_apart_and_nothing_is_asked_for(world: World) -> None:
    files = world.files
    world.archive(files[:3])
    world.delete(files[3:5])
    done = world.here.fsxwarm("plan", world.here.fsx.mount, "--json")
    assert done.status == 3, done
    plan = done.json
    assert plan["schema"] == "fsxwarm.plan/1"
    assert plan["blocked"]["storage_class"]["files"] == 3
    assert plan["blocked"]["object_missing"]["files"] == 2
    assert plan["released"]["files"] == plan["requests"]["s3_get"] == FILES - 5
    assert plan["requests"]["lustre"] == -(-(FILES - 5) // 50)
    assert plan["requests"]["s3_made"] == 1
    assert sum(one["files"] for one in plan["folders"]) == FILES - 5
    assert not world.here.fsx.control("counters").get("requests")


def test_the_tier_and_earlier_runs_each_make_a_time_and_the_longer_one_binds(
    account: Account, machine: MakeMachine
) -> None:
    here = _placed(account, machine, file_system(), "--files", "36", "--size", "1GB")
    (part,) = here.fsxwarm("plan", here.fsx.mount, "--json").json["file_systems"]
    rate = 250e6 * 1200 / 1024
    assert part["tier"]["deployment"] == "PERSISTENT_2"
    assert part["time"]["by_bytes"] == {
        "seconds": pytest.approx(36e9 / rate),
        "rate": pytest.approx(rate),
        "basis": "tier",
    }
    assert part["time"]["by_files"]["basis"] == "published"
    assert (part["time"]["binds"], part["time"]["seconds"]) == ("bytes/s", part["time"]["by_bytes"]["seconds"])
    text = here.fsxwarm("plan", here.fsx.mount).out
    assert "at most, for LZ4 compresses" in text
    assert "bytes/s bind" in text


def test_earlier_runs_tell_the_files_per_second(account: Account, machine: MakeMachine) -> None:
    here = _placed(account, machine, file_system(), "--files", "60", "--size", "1KB")
    mount = here.fsx.mount
    assert here.fsxwarm("preload", mount / "imagenet", "--check-s3", "never").status == 0
    (part,) = here.fsxwarm("plan", mount, "--check-s3", "never", "--json").json["file_systems"]
    assert part["time"]["by_files"]["basis"] == "seen"
    assert part["time"]["by_files"]["rate"] > 0
    assert part["tier"] is None
    assert part["unknown"] == "AWS was not asked (--check-s3 never)"


def test_what_does_not_fit_names_the_release_that_makes_room(account: Account, machine: MakeMachine) -> None:
    here = _placed(account, machine, file_system(), "--files", "30", "--size", "1GB", "--capacity", "40GB")
    fits = here.fsxwarm("plan", here.fsx.mount, "--check-s3", "never", "--json")
    assert fits.status == 0, fits
    done = here.fsxwarm("plan", here.fsx.mount, "--check-s3", "never", "--reserve", "15GB", "--json")
    assert done.status == 6
    (part,) = done.json["file_systems"]
    room = part["room"]
    assert room["to_release"] == 30 * 10**9 - 25 * 10**9
    assert room["until_free"] == room["total"] + room["to_release"]
    assert (
        "more than the file system holds"
        in here.fsxwarm("plan", here.fsx.mount, "--check-s3", "never", "--reserve", "15GB").out
    )


def test_without_credentials_the_rest_is_planned_and_it_is_said_once(world: World) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = world.here.fsxwarm("plan", world.here.fsx.mount, **variables)
    assert done.status == 0, done
    assert done.err.count("without AWS credentials") == 1
    assert "its tier is not known" in done.out
    assert f"{FILES:,}" in done.out


def test_a_warm_tree_needs_nothing(world: World) -> None:
    assert world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "never").status == 0
    done = world.here.fsxwarm("plan", world.here.fsx.mount)
    assert done.status == 0
    assert "nothing needs to be restored" in done.out


def test_bad_options_are_clear_errors(world: World) -> None:
    assert world.here.fsxwarm("plan").status == 2
    assert world.here.fsxwarm("plan", "/nowhere").status == 2
    assert "--reserve" in world.here.fsxwarm("plan", world.here.fsx.mount, "--reserve", "much").err
