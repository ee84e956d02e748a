"""`--backend`: the same command natively and by lfs, on the same simulated FSx."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.machine import Site


@pytest.mark.parametrize("name", ["native", "lfs"])
def test_a_command_says_by_what_it_spoke(site: Site, name: str) -> None:
    document = site.fsxwarm("status", site.data, "--backend", name, "--json").json
    assert document["backend"] == {"name": name, "why": "asked for"}
    assert document["released"]["files"] == len(site.files)


def test_auto_is_native_where_that_works(site: Site) -> None:
    document = site.fsxwarm("status", site.data, "--json").json
    assert document["backend"] == {"name": "native", "why": "Lustre's own calls work here"}


def test_auto_says_why_it_is_not_native(site: Site) -> None:
    done = site.fsxwarm("status", site.data, "--json", FSXWARM_SYSTEM_CALLS="")
    document = done.json
    assert done.status == 0
    assert document["backend"]["name"] == "lfs"
    assert document["backend"]["why"].startswith("native calls do not work: ")


def test_native_or_not_at_all(site: Site) -> None:
    done = site.fsxwarm("status", site.data, "--backend", "native", FSXWARM_SYSTEM_CALLS="")
    assert done.status == 5
    assert "--backend lfs" in done.err


def test_a_native_preload_starts_no_process_for_a_file(site: Site) -> None:
    before = site.fsx.control("calls")
    done = site.fsxwarm("preload", site.data, "--json")
    after = site.fsx.control("calls")
    assert done.status == 0
    assert done.json["backend"]["name"] == "native"
    assert not any(site.released(path) for path in site.files)
    assert after["ioctl calls"] > before.get("ioctl calls", 0)
    assert after.get("processes", 0) - before.get("processes", 0) <= 3, "free space and the version"
    assert after.get("states", 0) == before.get("states", 0)


def test_a_native_release_gives_back(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("release", site.data, "--yes", "--backend", "native", "--json")
    assert done.status == 0
    assert all(site.released(path) for path in site.files)


def test_doctor_says_which(site: Site) -> None:
    document = site.fsxwarm("doctor", site.data, "--json").json
    (text,) = [finding["text"] for finding in document["findings"] if finding["check"] == "backend"]
    assert text.startswith("native")


def test_a_back_end_that_there_is_not(site: Site) -> None:
    assert site.fsxwarm("status", site.data, "--backend", "ssh").status == 2
    done = site.fsxwarm("status", site.data, FSXWARM_BACKEND="ssh")
    assert done.status == 2
    assert "FSXWARM_BACKEND" in done.err


@pytest.mark.parametrize(
    ("does", "mode", "says"),
    [
        ("exit 0", 0o755, "this is no Lustre client's lfs: `{lfs} --version` printed nothing"),
        ("echo git-lfs/3.3.0", 0o755, "this is no Lustre client's lfs: `{lfs} --version` printed git-lfs/3.3.0"),
        ("echo lfs 2.15.8", 0o644, "{lfs} may not be executed"),
    ],
)
@pytest.mark.parametrize("command", [("preload",), ("status",), ("release", "--yes")])
def test_another_lfs_ends_a_command_at_once(
    site: Site, tmp_path: Path, command: tuple[str, ...], does: str, mode: int, says: str
) -> None:
    other = tmp_path / "lfs"
    other.write_text(f"#!/bin/sh\n{does}\n")
    other.chmod(mode)
    done = site.fsxwarm(*command, site.data, "--backend", "lfs", FSXWARM_LFS=str(other))
    assert (done.status, done.out) == (5, "")
    assert says.format(lfs=other) in done.err.splitlines()[-1]
    assert "install" not in done.err


def test_an_lfs_in_path_that_may_not_be_executed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "lfs").write_text("#!/bin/sh\n")
    done = site.fsxwarm("status", site.data, "--backend", "lfs", PATH=str(tmp_path), FSXWARM_LFS="lfs")
    assert (done.status, done.err.count("\n")) == (5, 1)
    assert f"{tmp_path}/lfs may not be executed (chmod +x, or let PATH" in done.err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("Calls = 1 / 0", "ZeroDivisionError: division by zero"),
        ("print(1)", "KeyError: 'Calls'"),
    ],
)
def test_system_calls_that_cannot_be_loaded_are_one_line(
    site: Site, tmp_path: Path, content: str | None, why: str
) -> None:
    stand_in = tmp_path / "calls.py"
    if content is not None:
        stand_in.write_text(content)
    done = site.fsxwarm("status", site.data, "--backend", "native", FSXWARM_SYSTEM_CALLS=str(stand_in))
    assert (done.status, done.out, done.err.count("\n")) == (5, "", 1)
    assert f"FSXWARM_SYSTEM_CALLS names {stand_in}, which cannot be loaded ({why}" in done.err
    auto = site.fsxwarm("status", site.data, "--json", FSXWARM_SYSTEM_CALLS=str(stand_in))
    assert (auto.status, auto.err, auto.json["backend"]["name"]) == (0, "", "lfs")
