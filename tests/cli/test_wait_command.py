"""`fsxwarm wait`, and `--latest` and `--braces`, as a user runs them on a simulated FSx."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.machine import Site


def test_resident_files_are_not_waited_for(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("wait", site.data)
    assert (done.status, done.out.split(" after ")[0]) == (0, "resident: 12 files, 1.20 MB")


def test_it_ends_when_somebody_else_has_restored_them(site: Site) -> None:
    command = [sys.executable, "-m", "fsxwarm", "wait", str(site.data), "--timeout", "60s", "--json"]
    process = subprocess.Popen(command, env=site.environ, stdout=subprocess.PIPE, text=True)
    assert site.fsxwarm("preload", site.data).status == 0
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"ready": true' in out
    assert site.fsx.control("counters")["restore requests"] <= 12


def test_the_time_may_be_up_first(site: Site) -> None:
    site.restore(*site.files[1:])
    done = site.fsxwarm("wait", site.data, "--timeout", "2s", "--json")
    document = done.json
    assert (done.status, document["ready"], document["left"]) == (4, False, {"files": 1, "bytes": 100_000})
    text = site.fsxwarm("wait", site.data, "--timeout", "2s")
    assert "1 file, 100 KB to go of 12 files, 1.20 MB" in text.out
    assert site.released(site.files[0])


def test_a_share_is_enough(site: Site) -> None:
    files = site.files
    listed = "".join(f"{path}\n" for path in files).encode()
    site.restore(*files[:3])
    arguments = ("wait", "--files-from", "-", "--timeout", "2s", "--json", "--ready")
    assert site.fsxwarm(*arguments, "25%", stdin=listed).status == 0
    assert site.fsxwarm(*arguments, "0.3", stdin=listed).status == 4


def test_braces_name_shards_of_a_dataset(site: Site) -> None:
    for number in (0, 1, 2, 3):
        site.files[number].rename(site.data / f"shard-{number:06}.tar")
    pattern = f"{site.data}/shard-{{000000..000002}}.tar"
    assert site.fsxwarm("preload", "--braces", pattern, "--json").json["outcomes"]["restored"]["files"] == 3
    assert site.fsxwarm("wait", "--braces", pattern, "--json").json["found"]["files"] == 3
    assert site.fsxwarm("status", "--braces", pattern, "--json").json["resident"]["files"] == 3
    assert site.fsxwarm("wait", pattern).status == 2


def test_the_newest_complete_checkpoint_is_warmed(site: Site) -> None:
    files = iter(site.files)
    for step, marked in ((900, True), (1000, True), (1100, False)):
        folder = site.data / "ckpt" / f"step-{step}"
        folder.mkdir(parents=True)
        for name in ("weights", "DONE") if marked else ("weights",):
            next(files).rename(folder / name)
    latest = ("--latest", f"{site.data}/ckpt/step-*", "--marker", "DONE")
    done = site.fsxwarm("preload", *latest)
    assert done.status == 0
    assert f"the newest complete checkpoint is {site.data}/ckpt/step-1000\n" in done.err
    assert not site.released(site.data / "ckpt/step-1000/weights")
    assert site.released(site.data / "ckpt/step-1100/weights")
    assert site.released(site.data / "ckpt/step-900/DONE")
    assert site.fsxwarm("wait", *latest, "--timeout", "5s").status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--latest", "x-*"),
        ("--marker", "DONE"),
        ("--latest", "/nowhere/x-*", "--marker", "DONE"),
        ("/nowhere",),
        ("/", "--timeout", "0s"),
        ("/", "--ready", "2"),
        ("/", "--daemon", "--local"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(site: Site, arguments: tuple[str, ...]) -> None:
    done = site.fsxwarm("wait", *arguments)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)


def test_shards_must_agree_on_the_checkpoint(site: Site) -> None:
    done = site.fsxwarm("preload", "--shard", "1/2", "--latest", "x-*", "--marker", "DONE")
    assert (done.status, "--latest and --shard" in done.err) == (2, True)
