"""`fsxwarm pin`, `unpin` and `doctor` as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.machine import Site


def test_pinned_files_stay_and_unpinned_ones_go(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("pin", site.data, "--json")
    assert done.status == 0
    assert done.json["done"]["files"] == len(site.files)
    assert "never_release" in site.lfs("hsm_state", site.files[0])
    assert site.fsxwarm("release", site.data, "--yes", "--json").json["released"]["files"] == 0
    assert site.fsxwarm("unpin", site.files[0]).status == 0
    assert site.fsxwarm("release", site.data, "--yes", "--json").json["released"]["files"] == 1


def test_pin_counts_for_people(site: Site) -> None:
    done = site.fsxwarm("pin", site.files[0], site.files[1])
    assert done.out.startswith("pinned 2 files")
    assert done.err == ""


def test_the_doctor_finds_a_healthy_site(site: Site) -> None:
    site.restore(site.files[0])
    done = site.fsxwarm("doctor", site.data, "--json")
    findings = {finding["check"]: finding for finding in done.json["findings"]}
    assert done.status == 0
    assert {finding["level"] for finding in findings.values()} == {"ok"}
    assert "2.15" in findings["lfs"]["text"]
    assert findings["restore"]["text"] == "you may restore files here"


def test_the_doctor_finds_the_mounts_by_itself(site: Site) -> None:
    done = site.fsxwarm("doctor")
    assert done.status == 0
    assert str(site.fsx.mount) in done.out


def test_the_doctor_says_what_to_do_without_lfs(site: Site) -> None:
    done = site.fsxwarm("doctor", site.data, FSXWARM_LFS="/nowhere/lfs")
    assert done.status == 5
    assert "fail" in done.out
    assert "lustre-client" in done.out


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo nonsense", "printed nonsense"),
        ("exit 0", "printed nothing"),
        ("exit 3", "ended with status 3 and printed nothing"),
        ("echo no such command >&2; exit 2", "ended with status 2 and printed no such command"),
        ("head -c 100000 /dev/urandom", "printed "),
        ("kill -9 $$", "was killed by signal 9 (Killed)"),
        ("echo git-lfs/3.3.0", "printed git-lfs/3.3.0"),
    ],
)
def test_the_doctor_tells_another_lfs_from_none(site: Site, tmp_path: Path, does: str, says: str) -> None:
    other = tmp_path / "lfs"
    other.write_text(f"#!/bin/sh\n{does}\n")
    other.chmod(0o755)
    done = site.fsxwarm("doctor", site.data, "--json", FSXWARM_LFS=str(other))
    finding = done.json["findings"][0]
    assert (done.status, finding["check"], finding["level"]) == (5, "lfs", "fail")
    assert f"this is no Lustre client's lfs: `{other} --version` {says}" in finding["text"]
    assert "install" not in finding["advice"]


def test_the_doctor_knows_a_path_that_is_not_lustre(site: Site) -> None:
    done = site.fsxwarm("doctor", "/proc", FSXWARM_MOUNTS="/proc/self/mounts")
    assert done.status == 5
    assert "not on FSx for Lustre but on proc" in done.out


def test_without_any_lustre_mount_the_doctor_says_so(site: Site) -> None:
    done = site.fsxwarm("doctor", FSXWARM_MOUNTS="/dev/null")
    assert done.status == 5
    assert "no Lustre file system is mounted" in done.out
