"""`fsxwarm preload --shard`: several processes share the files out."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.machine import Site

LOST = 0x4D
STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"}


@pytest.mark.parametrize("count", [2, 5])
def test_each_file_is_restored_by_exactly_one_shard(site: Site, count: int) -> None:
    os.link(site.files[0], site.data / "another-name")
    listed = site.fsx.folder / "list"
    listed.write_text("".join(f"{path}\n" for path in site.files))
    documents = [
        site.fsxwarm("preload", site.data, "--files-from", listed, "--shard", f"{index}/{count}", "--json").json
        for index in range(1, count + 1)
    ]
    assert sum(document["outcomes"]["restored"]["files"] for document in documents) == 12
    assert sum(document["found"]["files"] for document in documents) == 12
    assert [document["shard"] for document in documents] == [f"{index}/{count}" for index in range(1, count + 1)]
    assert not any(site.released(path) for path in site.files)


def test_a_task_of_slurm_takes_its_part_and_names_its_report(site: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    done = site.fsxwarm("preload", site.data, "--shard=auto", "--report", report, "--json", SLURM_PROCID="2", **STEP)
    assert (done.status, done.json["shard"]) == (0, "3/4")
    assert not report.exists()
    header = json.loads((tmp_path / "report.3-of-4.jsonl").read_text().splitlines()[0])
    assert header["shard"] == "3/4"
    assert "--shard=3/4" in header["arguments"]


def test_windows_are_for_all_shards_together(site: Site) -> None:
    windows = set()
    for index in range(1, 5):  # one of them may have no file
        document = site.fsxwarm("preload", site.data, "--shard", f"{index}/4", "--window", "100", "--json").json
        windows |= {target["window"] for target in document["window"]["targets"]}
    assert windows == {25}


def test_a_dry_run_is_about_the_shard(site: Site) -> None:
    found = [
        site.fsxwarm("preload", site.data, "--shard", f"{index}/3", "--dry-run", "--json").json for index in (1, 2, 3)
    ]
    assert sum(document["released"]["files"] for document in found) == 12
    assert [document["shard"] for document in found] == ["1/3", "2/3", "3/3"]
    assert "only shard 2/3" in site.fsxwarm("preload", site.data, "--shard", "2/3", "--dry-run").err


def test_status_counts_a_shard(site: Site) -> None:
    parts = [site.fsxwarm("status", site.data, "--shard", f"{index}/3", "--json").json for index in (1, 2, 3)]
    assert sum(document["released"]["files"] for document in parts) == 12
    site.restore(*site.files)
    parts = [site.fsxwarm("status", site.data, "--shard", f"{index}/3", "--json").json for index in (1, 2, 3)]
    assert sum(document["resident"]["files"] for document in parts) == 12


@pytest.mark.parametrize("text", ["0/4", "5/4", "auto", "1:4"])
def test_no_shard_is_a_usage_error(site: Site, text: str) -> None:
    done = site.fsxwarm("preload", site.data, "--shard", text)
    assert done.status == 2
    assert done.err.startswith("fsxwarm: --shard: ")
    assert done.err.count("\n") == 1


def _reports(site: Site, folder: Path, *shards: str) -> None:
    for shard in shards:
        site.fsxwarm("preload", site.data, "--shard", shard, "--report", folder / "r.jsonl")


def test_reports_of_all_shards_are_merged(site: Site, tmp_path: Path) -> None:
    _reports(site, tmp_path, "1/3", "2/3", "3/3")
    done = site.fsxwarm("report", "merge", *sorted(tmp_path.glob("r.*.jsonl")), "--json")
    assert (done.status, done.err) == (0, "")
    assert done.json["found"] == {"files": 12, "bytes": 1_200_000}
    assert done.json["outcomes"]["restored"]["files"] == 12
    text = site.fsxwarm("report", "merge", tmp_path / "r.jsonl")
    assert text.status == 0
    assert [line.split()[0] for line in text.out.splitlines() if line[:1].isdigit()] == ["1/3", "2/3", "3/3"]


def test_a_dead_shard_is_named_and_run_again_alone(site: Site, tmp_path: Path) -> None:
    _reports(site, tmp_path, "1/3", "3/3")
    done = site.fsxwarm("report", "merge", tmp_path / "r.jsonl", "--json")
    assert (done.status, done.json["exit"], done.json["missing"]) == (3, 3, ["2/3"])
    words = shlex.split(done.json["again"]["2/3"])
    assert "missing: 1 shard: 2/3" in site.fsxwarm("report", "merge", tmp_path / "r.jsonl").out
    assert site.fsxwarm(*words[1:]).status == 0
    again = site.fsxwarm("report", "merge", tmp_path / "r.jsonl", "--json")
    assert (again.status, again.json["missing"], again.json["outcomes"]["restored"]["files"]) == (0, [], 12)


def test_an_old_report_does_not_pass_for_a_killed_shard_s(site: Site, tmp_path: Path) -> None:
    _reports(site, tmp_path, "1/2", "2/2")
    site.fsx.control("coordinator", seconds=600.0)
    site.lfs("hsm_release", *site.files)
    report = tmp_path / "r.2-of-2.jsonl"
    command = [
        sys.executable,
        "-m",
        "fsxwarm",
        "preload",
        site.data,
        "--shard",
        "2/2",
        "--report",
        tmp_path / "r.jsonl",
    ]
    process = subprocess.Popen([*command, "--progress", "json"], env=site.environ, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline()
    process.kill()
    process.wait()
    process.stderr.close()
    assert not report.exists()
    assert site.fsxwarm("report", "merge", tmp_path / "r.jsonl", "--json").json["missing"] == ["2/2"]


def test_one_report_of_all_retries_what_failed(site: Site, tmp_path: Path) -> None:
    lost = site.files[2:6]
    site.fsx.control("flags", paths=[str(path) for path in lost], flags=LOST)
    site.fsxwarm("preload", site.data, "--files-from", "-", "--shard", "1/2", "--report", tmp_path / "r", stdin=b"x\n")
    site.fsxwarm("preload", site.data, "--files-from", "-", "--shard", "2/2", "--report", tmp_path / "r", stdin=b"x\n")
    done = site.fsxwarm("report", "merge", tmp_path / "r", "--into", tmp_path / "all", "--json")
    assert done.status == 3
    lines = [json.loads(line) for line in (tmp_path / "all").read_text().splitlines()]
    assert {line["path"] for line in lines if line.get("outcome") == "blocked"} == {str(path) for path in lost}
    assert [line["outcome"] for line in lines[1:-1]].count("missing") == 1
    assert lines[0]["shard"] == "1/1"
    assert "--shard" not in " ".join(lines[0]["arguments"])
    again = site.fsxwarm("preload", "--retry-failed", tmp_path / "all", "--json")
    assert again.json["found"]["files"] == len(lost)
    assert site.fsxwarm("report", "merge", tmp_path / "all", "--json").json["found"]["files"] == 12


def test_a_report_that_is_none_is_a_usage_error(site: Site, tmp_path: Path) -> None:
    for source in ("/nowhere/r.jsonl", "/etc/passwd", tmp_path):
        done = site.fsxwarm("report", "merge", source)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert site.fsxwarm("report", "merge").status == 2
