"""Paths outside every association: a warning of status, an error of preload unless something there is released."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, Trouble, association, file_system
from aws.machine import Machine

NOBODY = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}


@pytest.fixture
def here(account: Account, machine: MakeMachine) -> Machine:
    """Three folders, of which only `imagenet` is linked; `genomes` is warm."""
    system = file_system()
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/imagenet", "s3://data/in/")]
    made = machine(system, "--files", "36", "--size", "100KB")
    assert made.fsxwarm("preload", made.fsx.mount / "genomes", "--check-s3", "never").status == 0
    return made


def _warm(here: Machine) -> Path:
    return here.fsx.mount / "genomes"


def test_status_warns_of_a_path_outside_every_association(here: Machine) -> None:
    done = here.fsxwarm("status", _warm(here))
    assert done.status == 0
    assert f"{_warm(here)} lies outside every association" in done.out
    assert here.fsxwarm("status", _warm(here), "--json").json["unlinked"] == [{"path": str(_warm(here))}]
    for linked in (here.fsx.mount, here.fsx.mount / "imagenet", here.fsx.mount / "imagenet" / "part-000"):
        assert "unlinked" not in here.fsxwarm("status", linked, "--json").json


def test_a_preload_there_is_an_error(here: Machine) -> None:
    done = here.fsxwarm("preload", _warm(here))
    assert done.status == 5
    assert "lies outside every association" in done.out
    both = here.fsxwarm("preload", _warm(here), here.fsx.mount / "imagenet", "--check-s3", "auto", "--json")
    assert both.status == 5
    assert both.json["unlinked"] == [{"path": str(_warm(here))}]
    assert both.json["exit"] == 5


def test_unless_something_there_is_released_all_the_same(here: Machine) -> None:
    done = here.fsxwarm("preload", here.fsx.mount / "climate")
    assert done.status == 0, done
    assert "outside every association" in done.out


def test_what_aws_does_not_tell_is_no_error(here: Machine, account: Account) -> None:
    assert here.fsxwarm("preload", _warm(here), **NOBODY).status == 0
    status = here.fsxwarm("status", _warm(here), **NOBODY)
    assert status.status == 0
    assert status.out.count("no AWS credentials") == 1
    account.trouble = [Trouble("DescribeFileSystems", code="AccessDeniedException", times=99)]
    assert here.fsxwarm("preload", _warm(here)).status == 0
    assert "fsx:DescribeFileSystems" in here.fsxwarm("status", _warm(here)).out


def test_a_slow_aws_holds_nobody_up(here: Machine, account: Account) -> None:
    account.trouble = [Trouble("DescribeFileSystems", seconds=60, times=99)]
    began = time.monotonic()
    assert here.fsxwarm("status", _warm(here)).status == 0
    assert time.monotonic() - began < 40


def test_scripts_that_check_ask_nothing_of_aws(here: Machine, account: Account) -> None:
    account.calls.clear()
    assert here.fsxwarm("status", _warm(here), "--check").status == 0
    assert not account.calls
