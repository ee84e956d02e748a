"""s3://… wherever a PATH is accepted."""

from __future__ import annotations

from pathlib import Path

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, association, file_system
from aws.machine import Machine


def _linked(account: Account, machine: MakeMachine, *more: tuple[str, str]) -> Machine:
    system = file_system()
    account.file_systems = [system]
    links = (("/imagenet", "s3://data/in/"), *more)
    account.associations = [
        association(system["FileSystemId"], folder, uri, number) for number, (folder, uri) in enumerate(links)
    ]
    return machine(system, "--files", "36", "--size", "100KB")


def test_status_preload_and_release_take_s3_addresses(account: Account, machine: MakeMachine) -> None:
    here = _linked(account, machine)
    assert here.fsxwarm("status", "s3://data/in/", "--json").json["released"]["files"] == 12
    warmed = here.fsxwarm("preload", "s3://data/in", "--json")
    assert warmed.status == 0, warmed
    status = here.fsxwarm("status", here.fsx.mount, "--json").json
    assert (status["resident"]["files"], status["released"]["files"]) == (12, 24)
    released = here.fsxwarm("release", "s3://data/in/part-000", "--yes", "--json").json
    assert released["released"]["files"] == 12


def test_a_list_may_mix_addresses_and_paths(account: Account, machine: MakeMachine, tmp_path: Path) -> None:
    here = _linked(account, machine)
    first, second = sorted((here.fsx.mount / "imagenet" / "part-000").iterdir())[:2]
    listing = tmp_path / "list"
    listing.write_text(f"s3://data/in/part-000/{first.name}\n{second}\ns3://elsewhere/file\n")
    done = here.fsxwarm("status", "--files-from", listing, "--json")
    assert done.json["released"]["files"] == 2
    assert done.json["outside"] == {"count": 1, "first": [{"path": "s3://elsewhere/file"}]}


def test_unlinked_and_ambiguous_addresses_are_clear_errors(account: Account, machine: MakeMachine) -> None:
    here = _linked(account, machine, ("/coco", "s3://data/in/"))
    unlinked = here.fsxwarm("status", "s3://data/other/")
    assert unlinked.status == 2
    assert "linked to no file system" in unlinked.err
    ambiguous = here.fsxwarm("status", "s3://data/in/")
    assert ambiguous.status == 2
    assert "several places" in ambiguous.err
    assert "coco" in ambiguous.err
    assert here.fsxwarm("status", "s3://Data_/in/").status == 2


def test_a_prefix_above_means_all_that_is_linked_below_it(account: Account, machine: MakeMachine) -> None:
    here = _linked(account, machine, ("/climate", "s3://data/cc"))
    assert here.fsxwarm("status", "s3://data/", "--json").json["released"]["files"] == 24
