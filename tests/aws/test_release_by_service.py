"""`fsxwarm release --service`: tasks of FSx, in a world where they really release."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, Released, Trouble, association, file_system
from aws.machine import Machine
from aws.world import World

SERVICE = ("release", "--service", "--older-than", "7d", "--yes")


@pytest.fixture
def here(account: Account, machine: MakeMachine) -> Machine:
    system = file_system()
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data/base")]
    return machine(system, "--files", "3")


def test_the_service_releases_what_was_not_used_for_days(world: World) -> None:
    fsx = world.here.fsx
    assert world.here.fsxwarm("preload", fsx.mount).status == 0
    used = world.files[0]
    os.utime(used, (time.time(), used.stat().st_mtime))
    done = world.here.fsxwarm(*SERVICE, "s3://data/base/climate", fsx.mount / "genomes", "--json")
    assert done.status == 0, done
    (task,) = done.json["tasks"]
    assert task["paths"] == ["climate", "genomes"]
    assert (task["state"], task["released"], task["failed"]) == ("SUCCEEDED", 199, 0)
    below = [path for path in world.files if path.relative_to(fsx.mount).parts[0] in {"climate", "genomes"}]
    assert world.released() == [path for path in below if path != used]


def test_failures_are_read_from_the_report(world: World) -> None:
    fsx = world.here.fsx
    assert world.here.fsxwarm("preload", fsx.mount).status == 0
    dirty = [world.files[0].rename(world.files[0].parent / "=odd, name"), world.files[1]]
    fsx.control("flags", paths=[str(path) for path in dirty], flags=0x0B)
    done = world.here.fsxwarm(*SERVICE, fsx.mount, "--task-report", "s3://data/base/reports", "--json")
    assert done.status == 3, done
    (task,) = done.json["tasks"]
    assert (task["paths"], task["state"], task["released"], task["failed"]) == (["/"], "FAILED", 298, 2)
    assert sorted(one["path"] for one in task["unreleased"]) == sorted(str(p.relative_to(fsx.mount)) for p in dirty)
    assert task["report"] == f"s3://data/base/reports/{task['id']}/failures.csv"
    text = world.here.fsxwarm(*SERVICE, fsx.mount)
    assert text.status == 3
    assert "--task-report" in text.out


def test_a_report_that_is_too_long_is_said_to_be_read_in_part(world: World) -> None:
    rows = [f"{number:04d}{'x' * 4000},failed,FILE_CHANGED\n" for number in range(4300)]
    world.account.on_release = lambda _paths, _days: Released(total=4300, released=0, failed=["some"])
    world.account.deliver = lambda uri, _text: world.s3.put_object(
        Bucket="data", Key=uri.removeprefix("s3://data/"), Body="".join(rows).encode()
    )
    command = (*SERVICE, world.here.fsx.mount, "--task-report", "s3://data/base/reports")
    done = world.here.fsxwarm(*command, "--json")
    assert done.status == 3, done.err
    (task,) = done.json["tasks"]
    assert task["report_cut"]
    named = len(task["unreleased"])
    assert 4000 < named < 4300
    assert {one["reason"] for one in task["unreleased"]} == {"FILE_CHANGED"}
    text = world.here.fsxwarm(*command)
    assert text.status == 3
    assert f"behind the first {named:,} files that it names there are more" in " ".join(text.out.split())


def test_many_paths_take_several_tasks_one_after_another(account: Account, here: Machine) -> None:
    folders = [here.fsx.mount / f"f{number:02d}" for number in range(40)]
    for folder in folders:
        folder.mkdir()
    account.task_looks = 0
    done = here.fsxwarm(*SERVICE, *folders, folders[0] / "..", folders[3], "--json")
    assert done.status == 0, done
    assert [task["paths"] for task in done.json["tasks"]] == [["/"]]
    done = here.fsxwarm(*SERVICE, *folders, folders[3], "--json")
    assert done.status == 0, done
    assert [len(task["paths"]) for task in done.json["tasks"]] == [32, 8]


def test_another_task_is_waited_for(account: Account, here: Machine) -> None:
    other = {"Paths": ["x"], "Report": {"Enabled": False}, "FileSystemId": here_id(account), "looks": 1}
    days = {"ReleaseConfiguration": {"DurationSinceLastAccess": {"Unit": "DAYS", "Value": 1}}}
    account.tasks = [{"TaskId": "task-00000000000000000", "Lifecycle": "EXECUTING", "token": "theirs", **other, **days}]
    done = here.fsxwarm(*SERVICE, here.fsx.mount, "--json")
    assert done.status == 0, done
    assert "another task runs" in done.err
    assert done.err.count("another task runs") == 1
    asked = [fields for name, fields in account.requests if name == "CreateDataRepositoryTask"]
    assert len(asked) == 3
    assert len({fields["ClientRequestToken"] for fields in asked}) == 1


def here_id(account: Account) -> str:
    return str(account.file_systems[0]["FileSystemId"])


def test_a_cut_connection_begins_no_second_task(account: Account, here: Machine) -> None:
    account.trouble = [
        Trouble("CreateDataRepositoryTask", cut=True, after=True),
        Trouble("DescribeDataRepositoryTasks", cut=True),
    ]
    done = here.fsxwarm(*SERVICE, here.fsx.mount, "--json")
    assert done.status == 0, done
    assert account.calls["CreateDataRepositoryTask"] == 2
    assert len(account.tasks) == 1


def test_dry_run_begins_nothing(account: Account, here: Machine) -> None:
    done = here.fsxwarm("release", "--service", "--older-than", "1d", "--dry-run", here.fsx.mount)
    assert done.status == 0, done
    assert "1 task: files not used for 1 day" in done.out
    assert not account.tasks


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--older-than", "12h"), "whole days"),
        ((), "--older-than 7d"),
        (("--older-than", "7d", "--exclude", "*.tmp"), "knows no patterns"),
        (("--older-than", "7d", "--task-report", "s3://other/place"), "s3://data/base/"),
    ],
)
def test_what_tasks_cannot_do_is_explained(
    options: tuple[str, ...], says: str, account: Account, here: Machine
) -> None:
    done = here.fsxwarm("release", "--service", "--yes", here.fsx.mount, *options)
    assert done.status == 2, done
    assert says in done.err
    assert not account.tasks


def test_outside_every_association_there_is_nothing_to_release(account: Account, here: Machine) -> None:
    account.associations = [association(here_id(account), "/climate", "s3://data/base")]
    done = here.fsxwarm(*SERVICE, here.fsx.mount / "genomes")
    assert done.status == 2, done
    assert "in no association" in done.err


def test_denied_names_the_action(account: Account, here: Machine) -> None:
    account.trouble = [Trouble("CreateDataRepositoryTask", code="AccessDeniedException", times=9)]
    done = here.fsxwarm(*SERVICE, here.fsx.mount, "--json")
    assert done.status == 5, done
    assert "fsx:CreateDataRepositoryTask" in done.json["tasks"][0]["error"]


def test_ctrl_c_says_that_the_task_goes_on(account: Account, here: Machine) -> None:
    account.task_looks = 10**6
    command = [sys.executable, "-m", "fsxwarm", *SERVICE, here.fsx.mount]
    with subprocess.Popen(
        command, env=here.fsx.environ(os.environ) | here.variables, stderr=subprocess.PIPE, text=True
    ) as process:
        account.looked.wait(timeout=60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"aws fsx cancel-data-repository-task --task-id {account.tasks[0]['TaskId']}" in said


def test_2_10_knows_no_release_tasks(account: Account, machine: MakeMachine) -> None:
    link = {"Lifecycle": "AVAILABLE", "ImportPath": "s3://old/base"}
    system = file_system(DeploymentType="SCRATCH_1", FileSystemTypeVersion="2.10", DataRepositoryConfiguration=link)
    account.file_systems = [system]
    here = machine(system, "--files", "3")
    done = here.fsxwarm(*SERVICE, here.fsx.mount)
    assert done.status == 5, done
    assert "2.10" in done.err


def test_when_fsx_is_out_of_reach_it_says_that_a_task_may_have_begun(account: Account, here: Machine) -> None:
    account.trouble = [Trouble("CreateDataRepositoryTask", code="InternalServerError", status=500, times=99)]
    done = here.fsxwarm(*SERVICE, here.fsx.mount)
    assert done.status == 5, done
    assert "a task may have been begun" in done.out
