"""`fsxwarm preload --shard`: several processes share the files out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.machine import Site

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
    document = site.fsxwarm("preload", site.data, "--shard", "1/4", "--window", "100", "--json").json
    assert {target["window"] for target in document["window"]["targets"]} == {25}


def test_a_dry_run_is_about_the_shard(site: Site) -> None:
    found = [
        site.fsxwarm("preload", site.data, "--shard", f"{index}/3", "--dry-run", "--json").json for index in (1, 2, 3)
    ]
    assert sum(document["released"]["files"] for document in found) == 12
    assert [document["shard"] for document in found] == ["1/3", "2/3", "3/3"]
    assert "only shard 2/3" in site.fsxwarm("preload", site.data, "--shard", "2/3", "--dry-run").err


@pytest.mark.parametrize("text", ["0/4", "5/4", "auto", "1:4"])
def test_no_shard_is_a_usage_error(site: Site, text: str) -> None:
    done = site.fsxwarm("preload", site.data, "--shard", text)
    assert done.status == 2
    assert done.err.startswith("fsxwarm: --shard: ")
    assert done.err.count("\n") == 1
