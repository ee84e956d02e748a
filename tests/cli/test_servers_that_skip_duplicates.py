"""Where the metadata servers are 2.16 or later, files are asked for without a look at what is in flight first."""

from __future__ import annotations

import shutil

import pytest

from cli.machine import Site
from conftest import SimFsx

FILES = 12


def site_of(sim_fsx: SimFsx, version: str, *more: str) -> Site:
    return Site(sim_fsx("--files", str(3 * FILES), "--size", "100KB", "--version", version, *more))


def actions_looked_at(site: Site, **variables: str) -> int:
    done = site.fsxwarm("preload", site.data, "--json", "--backend", "lfs", **variables)
    assert done.status == 0, done.err
    assert done.json["outcomes"]["restored"]["files"] == FILES
    assert not any(site.released(file) for file in site.files)
    calls = site.fsx.control("calls")
    assert calls["requests"] >= 1
    looked: int = calls.get("actions", 0)
    return looked


def test_on_servers_that_skip_duplicates_no_action_is_looked_at(sim_fsx: SimFsx) -> None:
    assert actions_looked_at(site_of(sim_fsx, "2.16")) == 0


def test_on_older_servers_each_file_is_looked_at(sim_fsx: SimFsx) -> None:
    assert actions_looked_at(site_of(sim_fsx, "2.15")) >= FILES


def test_one_metadata_target_of_unknown_version_is_enough_for_looks(sim_fsx: SimFsx) -> None:
    site = site_of(sim_fsx, "2.16", "--mdts", "2")
    *_, last = (site.fsx.folder / "mdc").iterdir()
    (last / "import").write_text("import:\n")
    assert actions_looked_at(site) >= FILES


def test_without_connections_to_be_seen_files_are_looked_at(sim_fsx: SimFsx) -> None:
    site = site_of(sim_fsx, "2.16")
    shutil.rmtree(site.fsx.folder / "mdc")
    assert actions_looked_at(site) >= FILES


def test_native_calls_do_without_looks_too(sim_fsx: SimFsx) -> None:
    opened = {}
    for version in ("2.15", "2.16"):
        site = Site(sim_fsx("--files", str(3 * FILES), "--size", "100KB", "--version", version, name=version))
        done = site.fsxwarm("preload", site.data, "--json", "--backend", "native")
        assert done.status == 0, done.err
        assert done.json["outcomes"]["restored"]["files"] == FILES
        opened[version] = site.fsx.control("calls")["ioctl calls"]
    assert opened["2.16"] <= opened["2.15"] - FILES


def test_what_somebody_else_has_in_flight_comes_with_the_rest(sim_fsx: SimFsx) -> None:
    site = site_of(sim_fsx, "2.16", "--latency", "3s")
    site.lfs("hsm_restore", *site.files[:6])
    done = site.fsxwarm("preload", site.data, "--json")
    assert done.status == 0, done.err
    outcomes = done.json["outcomes"]
    assert outcomes["restored"]["files"] + outcomes["resident"]["files"] == FILES
    assert not any(site.released(file) for file in site.files)


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("2.15", "Lustre 2.15.8: each file is looked at before it is asked for"),
        ("2.16", "Lustre 2.16.1: files need no look before they are asked for"),
    ],
)
def test_the_doctor_tells_which_it_is(sim_fsx: SimFsx, version: str, says: str) -> None:
    done = site_of(sim_fsx, version).fsxwarm("doctor")
    assert done.status == 0
    assert f"servers  {says}" in done.out
