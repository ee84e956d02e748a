"""`fsxwarm associations` against a fake FSx that is checked by botocore's own model."""

from __future__ import annotations

import pytest

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, Trouble, association, file_system


def test_a_mount_is_recognised_and_its_associations_are_shown(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.file_systems = [file_system(7), system]
    broken = association(system["FileSystemId"], "/coco", "s3://data/coco", 2, Lifecycle="MISCONFIGURED")
    broken["FailureDetails"] = {"Message": "bucket policy"}
    account.associations = [association(system["FileSystemId"], "/imagenet", "s3://data/in"), broken]
    here = machine(system, "--files", "3")
    done = here.fsxwarm("associations", "--json")
    assert done.status == 3, done.err
    (mount,) = done.json["mounts"]
    assert mount["file_system"] == system["FileSystemId"]
    assert [(one["path"], one["uri"]) for one in mount["associations"]] == [
        (str(here.fsx.mount / "imagenet"), "s3://data/in/"),
        (str(here.fsx.mount / "coco"), "s3://data/coco/"),
    ]
    assert "bucket policy" in mount["associations"][1]["complaint"]["what"]
    text = here.fsxwarm("associations", here.fsx.mount / "imagenet")
    assert text.status == 0, text
    assert "s3://data/in/" in text.out
    assert "coco" not in text.out


def test_pages_are_followed_by_hand(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.file_systems = [file_system(number) for number in range(2, 9)] + [system]
    account.associations = [
        association(system["FileSystemId"], f"/f{number}", f"s3://data/{number}", number) for number in range(8)
    ]
    account.page = 3
    system = {**system, "DNSName": "10.0.0.5"}  # mounted by its address: all file systems are looked through
    done = machine(system, "--files", "3").fsxwarm("associations", "--json", AWS_REGION="us-east-1")
    assert done.status == 0, done
    assert len(done.json["mounts"][0]["associations"]) == 8
    assert account.calls["DescribeFileSystems"] == 3
    assert account.calls["DescribeDataRepositoryAssociations"] == 3


def test_a_legacy_link_is_an_association_at_the_root(account: Account, machine: MakeMachine) -> None:
    link = {"Lifecycle": "AVAILABLE", "ImportPath": "s3://old/base", "AutoImportPolicy": "NEW_CHANGED"}
    system = file_system(DeploymentType="SCRATCH_1", FileSystemTypeVersion="2.10", DataRepositoryConfiguration=link)
    account.file_systems = [system]
    here = machine(system, "--files", "3")
    (one,) = here.fsxwarm("associations", "--json").json["mounts"][0]["associations"]
    assert (one["path"], one["uri"], one["legacy"]) == (str(here.fsx.mount), "s3://old/base/", True)
    assert one["imports"] == ["NEW", "CHANGED"]


def test_file_systems_without_associations_say_why(account: Account, machine: MakeMachine) -> None:
    system = file_system(StorageType="INTELLIGENT_TIERING")
    account.file_systems = [system]
    done = machine(system, "--files", "3").fsxwarm("associations")
    assert done.status == 3
    assert "Intelligent-Tiering" in done.out
    assert not account.calls["DescribeDataRepositoryAssociations"]


def test_no_credentials_is_a_clear_error(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.file_systems = [system]
    done = machine(system, "--files", "3").fsxwarm("associations", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert done.status == 5
    assert "credentials" in done.out
    assert "AWS_PROFILE" in done.out


def test_throttling_and_a_cut_connection_are_waited_out(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data")]
    account.trouble = [
        Trouble("DescribeFileSystems", code="ThrottlingException", times=2),
        Trouble("DescribeDataRepositoryAssociations", cut=True),
    ]
    done = machine(system, "--files", "3").fsxwarm("associations", "--json")
    assert done.status == 0, done
    assert account.calls["DescribeFileSystems refused"] == 2


def test_denied_names_the_action(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.trouble = [Trouble("DescribeFileSystems", code="AccessDeniedException", times=99)]
    done = machine(system, "--files", "3").fsxwarm("associations")
    assert done.status == 5
    assert "allow fsx:DescribeFileSystems" in done.out


@pytest.mark.parametrize(
    ("lustre", "says"),
    [
        ({"DeploymentType": "SCRATCH_1", "FileSystemTypeVersion": "2.10"}, "SCRATCH_1"),
        ({"DeploymentType": "PERSISTENT_1", "FileSystemTypeVersion": "2.10"}, "Lustre 2.10"),
    ],
)
def test_old_file_systems_without_a_link_say_why(
    lustre: dict[str, str], says: str, account: Account, machine: MakeMachine
) -> None:
    system = file_system(**lustre)
    account.file_systems = [system]
    done = machine(system, "--files", "3").fsxwarm("associations", "--json")
    assert done.status == 3
    complaint = done.json["mounts"][0]["complaint"]
    assert says in complaint["what"]
    assert "ImportPath" in complaint["what"]
    assert complaint["todo"]


def test_a_legacy_link_that_is_misconfigured_says_so(account: Account, machine: MakeMachine) -> None:
    link = {"Lifecycle": "MISCONFIGURED", "ImportPath": "s3://old/base", "FailureDetails": {"Message": "no bucket"}}
    system = file_system(DeploymentType="SCRATCH_1", FileSystemTypeVersion="2.10", DataRepositoryConfiguration=link)
    account.file_systems = [system]
    done = machine(system, "--files", "3").fsxwarm("associations")
    assert done.status == 3
    assert "no bucket" in done.out
    assert "→" in done.out
