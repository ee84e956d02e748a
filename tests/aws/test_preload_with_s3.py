"""A preload on a simulated FSx whose objects are in S3: each file that S3 cannot give has its reason."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from aws.conftest import Machine, MakeMachine
from aws.fake_endpoint import Account, Json, Trouble, association, file_system

FILES = 300


class World:
    """One world: files on the simulated FSx, objects in S3 and FSx's log, made to agree."""

    def __init__(self, account: Account, s3: Any, here: Machine, system: Json) -> None:
        self.account, self.s3, self.here, self.system = account, s3, here, system
        account.file_systems = [system]
        account.associations = [association(system["FileSystemId"], "/", "s3://data/base")]
        s3.create_bucket(Bucket="data")
        for path in self.files:
            s3.put_object(Bucket="data", Key=self.key(path), Body=b"x" * path.stat().st_size)

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.here.fsx.mount.rglob("*") if path.is_file())

    def key(self, path: Path) -> str:
        return f"base/{path.relative_to(self.here.fsx.mount)}"

    def archive(self, paths: list[Path]) -> None:
        for path in paths:
            body = b"x" * path.stat().st_size
            self.s3.put_object(Bucket="data", Key=self.key(path), Body=body, StorageClass="GLACIER")
        self._fail(
            paths,
            "unsupported class",
            "Failed to restore file because S3 object {} in bucket data was in an unsupported GLACIER.",
        )

    def delete(self, paths: list[Path]) -> None:
        for path in paths:
            self.s3.delete_object(Bucket="data", Key=self.key(path))
        self._fail(
            paths,
            "object missing",
            "Failed to restore file because S3 object with key {} was not found in S3 bucket data.",
        )

    def deny(self, paths: list[Path]) -> None:
        self._fail(
            paths,
            "access denied",
            "Failed to restore file because access was denied to S3 object {} in S3 bucket data.",
        )

    def _fail(self, paths: list[Path], fault: str, sentence: str) -> None:
        """Let restores fail, and the file system's log say why, soon: the log is read for the time of the run."""
        self.here.fsx.control("fail", paths=[str(path) for path in paths], fault=fault)
        for path in paths:
            self.account.log(self.system["FileSystemId"], sentence.format(self.key(path)), at=time.time() + 1)


@pytest.fixture
def world(account: Account, s3: Any, machine: MakeMachine) -> World:
    system = file_system()
    here = machine(system, "--files", str(FILES), "--size", "1KB")
    return World(account, s3, here, system)


def _lines(report: Path) -> dict[str, tuple[str, str]]:
    found = [json.loads(line) for line in report.read_text().splitlines()]
    return {one["path"]: (one["outcome"], one["reason"]) for one in found if "path" in one}


def test_what_s3_cannot_give_is_blocked_and_the_rest_is_warm(world: World, tmp_path: Path) -> None:
    files = world.files
    world.archive(files[:3])
    world.delete(files[3:6])
    report = tmp_path / "report"
    done = world.here.fsxwarm("preload", "s3://data/base/", "--json", "--report", report)
    assert done.status == 3, done
    expected = {str(path): ("blocked", "storage_class") for path in files[:3]}
    expected |= {str(path): ("blocked", "object_missing") for path in files[3:6]}
    assert _lines(report) == expected
    assert done.json["outcomes"]["restored"]["files"] == FILES - 6
    assert done.json["s3"]["checked"]["files"] == FILES
    assert done.json["s3"]["requests"] == 1
    assert world.here.fsx.control("counters")["requests"] <= FILES


def test_never_asks_nothing_of_aws(world: World) -> None:
    world.archive(world.files[:1])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--json", "--check-s3", "never", "--attempts", "1")
    assert done.status == 3
    assert done.json["outcomes"]["failed"]["files"] == 1
    assert not world.account.calls


def test_without_credentials_it_says_so_once_and_goes_on(world: World) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = world.here.fsxwarm("preload", world.here.fsx.mount, **variables)
    assert done.status == 0, done
    assert done.err.count("without AWS credentials") == 1
    always = world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "always", **variables)
    assert always.status == 0  # all is resident: nothing has to be looked up


def test_always_fails_when_s3_may_not_be_listed(world: World) -> None:
    world.account.trouble = [Trouble("DescribeDataRepositoryAssociations", code="AccessDeniedException", times=9)]
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "always")
    assert done.status == 5
    assert "fsx:DescribeDataRepositoryAssociations" in done.err
    assert world.here.fsx.control("calls").get("requests", 0) == 0
