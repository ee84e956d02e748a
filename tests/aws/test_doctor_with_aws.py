"""`fsxwarm doctor` on a mount whose file system AWS knows."""

from __future__ import annotations

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, association, file_system


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
