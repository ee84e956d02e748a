"""`fsxwarm doctor` on a mount whose file system AWS knows."""

from __future__ import annotations

from typing import Any

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, Trouble, association, file_system


def test_associations_logs_and_root_squash_are_examined(account: Account, machine: MakeMachine) -> None:
    system = file_system(RootSquashConfiguration={"RootSquash": "65534:65534"}, LogConfiguration={"Level": "DISABLED"})
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data", Lifecycle="MISCONFIGURED")]
    here = machine(system, "--files", "3")
    done = here.fsxwarm("doctor", here.fsx.mount, "--json")
    assert done.status == 0, done
    levels = {one["check"]: one["level"] for one in done.json["findings"]}
    expected = {"aws": "ok", "link": "warn", "log": "warn", "squash": "warn", "metadata": "ok"}
    assert {check: levels[check] for check in expected} == expected


def test_without_credentials_it_is_a_warning(machine: MakeMachine) -> None:
    here = machine(file_system(), "--files", "3")
    done = here.fsxwarm("doctor", here.fsx.mount, "--json", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert done.status == 0, done
    (finding,) = [one for one in done.json["findings"] if one["check"] == "aws"]
    assert finding["level"] == "warn"
    assert "credentials" in finding["text"]


def test_missing_actions_are_named_with_what_needs_them(account: Account, machine: MakeMachine, s3: Any) -> None:
    system = file_system()
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data")]
    account.denied = {"fsx:CreateDataRepositoryTask"}
    account.trouble = [Trouble("FilterLogEvents", code="AccessDeniedException", times=9)]
    s3.create_bucket(Bucket="data")
    here = machine(system, "--files", "3")
    done = here.fsxwarm("doctor", here.fsx.mount)
    assert done.status == 0, done
    assert "does not exist" not in done.out
    assert "logs:FilterLogEvents is denied; it is for: say why restores failed" in done.out
    assert "fsx:CreateDataRepositoryTask is denied; it is for: release --service" in done.out
    assert "s3:RestoreObject" in done.out.partition("allowed: ")[2].partition("\n")[0]
    assert "client 2.15, servers 2.15" in done.out
    account.denied = None
    s3.delete_bucket(Bucket="data")
    again = here.fsxwarm("doctor", here.fsx.mount)
    assert "not checked: s3:ListBucket, s3:GetObject, s3:RestoreObject, fsx:CreateDataRepositoryTask" in again.out
    assert "bucket data does not exist" in again.out
