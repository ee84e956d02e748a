"""`preload --shard auto` in tasks and arrays of a real Slurm: the union is the tree, the intersection empty."""

from __future__ import annotations

import json
import random
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fsxwarm.sim.launch import SimulatedFsx, start
from slurm.cluster import Cluster

FILES = 120
FSXWARM = (sys.executable, "-m", "fsxwarm")


@dataclass
class Lab:
    """A cluster with a simulated FSx of released files; reports go to `report`, with each shard in the name."""

    cluster: Cluster
    fsx: SimulatedFsx
    report: Path

    @property
    def environ(self) -> dict[str, str]:
        homes = {"XDG_CACHE_HOME": str(self.fsx.folder / "cache"), "XDG_STATE_HOME": str(self.fsx.folder / "state")}
        return self.fsx.environ(self.cluster.environ) | homes

    @property
    def preload(self) -> list[str]:
        return [*FSXWARM, "preload", str(self.fsx.mount), "--shard", "auto", "--report", str(self.report)]

    def srun(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.cluster.run("srun", "-N4", "-n4", *command, environ=self.environ, check=check)

    def merged(self) -> Any:
        done = self.cluster.run(*FSXWARM, "report", "merge", self.report, "--json", check=False)
        return json.loads(done.stdout)

    def cold(self) -> int:
        done = self.cluster.run(*FSXWARM, "status", self.fsx.mount, "--json", "--local", environ=self.environ)
        return int(json.loads(done.stdout)["released"]["files"])


@pytest.fixture
def lab(cluster: Cluster, tmp_path: Path) -> Iterator[Lab]:
    """Restoring all of it takes about four seconds."""
    options = ("--files", str(FILES), "--size", "100KB", "--latency", "1s", "--agents", "32")
    with start(tmp_path / "fsx", *options) as fsx:
        yield Lab(cluster, fsx, tmp_path / "report.jsonl")


def assert_each_file_once(lab: Lab, documents: Sequence[Any]) -> None:
    """All files are resident, and each was found by one shard and asked for once."""
    assert [sorted(one["shard"] for one in documents), lab.cold()] == [["1/4", "2/4", "3/4", "4/4"], 0]
    assert sum(one["found"]["files"] for one in documents) == FILES
    assert sum(one["outcomes"]["restored"]["files"] for one in documents) == FILES
    assert lab.fsx.control("counters")["restored"] == FILES


def test_tasks_of_srun_share_the_tree_out(lab: Lab) -> None:
    lab.srun(f"--output={lab.report.parent}/%t.out", *lab.preload, "--json", "--progress", "none")
    assert_each_file_once(lab, [json.loads((lab.report.parent / f"{task}.out").read_text()) for task in range(4)])
    assert (lab.merged()["exit"], lab.merged()["outcomes"]["restored"]["files"]) == (0, FILES)


def test_tasks_of_an_array_share_the_tree_out(lab: Lab) -> None:
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in lab.environ.items())
    script = f"#!/bin/sh\n{exports}exec {shlex.join([*lab.preload, '--json', '--progress', 'none'])}\n"
    numbers = range(10, 18, 2)
    output = f"--output={lab.report.parent}/%a.out"
    done = lab.cluster.run("sbatch", "--parsable", "--wait", "--array=10-16:2", output, stdin=script)
    assert done.returncode == 0
    assert_each_file_once(lab, [json.loads((lab.report.parent / f"{one}.out").read_text()) for one in numbers])


def test_a_batch_script_that_forgets_srun_is_told_so(lab: Lab) -> None:
    """Its variables speak of four tasks, but it is one process: three parts would be nobody's."""
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in lab.environ.items())
    output = lab.report.parent / "out"
    script = f"#!/bin/sh\n{exports}exec {shlex.join(lab.preload)}\n"
    lab.cluster.run("sbatch", "--wait", "-N4", "-n4", f"--output={output}", stdin=script, check=False)
    assert "put srun before fsxwarm" in output.read_text()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_killed_task_is_run_again_alone(lab: Lab, seed: int) -> None:
    chance = random.Random(seed)
    victim, seconds = chance.randrange(4), chance.uniform(0.5, 3.0)
    command = shlex.join([*lab.preload, "--progress", "none"])
    script = f'if [ "$SLURM_PROCID" = {victim} ]; then exec timeout -s KILL {seconds} {command}; fi; exec {command}'
    assert lab.srun("sh", "-c", script, check=False).returncode != 0
    dead = f"{victim + 1}/4"
    merged = lab.merged()
    assert (merged["exit"], merged["missing"], len(merged["shards"])) == (3, [dead], 3)
    words = shlex.split(merged["again"][dead])
    lab.cluster.run(*FSXWARM, *words[1:], environ=lab.environ)
    whole = lab.merged()
    assert (whole["exit"], whole["missing"], lab.cold()) == (0, [], 0)
    assert whole["found"]["files"] == FILES
    assert sum(whole["outcomes"][outcome]["files"] for outcome in ("resident", "restored")) == FILES
    assert lab.fsx.control("counters")["restored"] == FILES
