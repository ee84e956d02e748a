from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.contest import Row, Trouble, Way, contest
from fsxwarm.sim.datasets import Dataset
from fsxwarm.sim.faults import Fault
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.spec import WorldSpec

TREE = Row(Dataset(300, fixed(100_000)))
BENCHES = Path(__file__).parent.parent / "bench"


def test_both_ways_of_fsxwarm_and_a_shell_line_restore_a_tree_and_none_is_quicker_than_the_bound() -> None:
    native, lfs, shell = (contest(TREE, way) for way in (Way(), Way(lfs=True), Way(line=(50, 8))))
    for run in (native, lfs, shell):
        assert (run.files, run.sound, run.left, run.asked_twice) == (300, 300, 0, 0)
        assert run.ratio >= 1.0
    assert native.processes == 0
    assert lfs.processes > 0
    assert shell.processes == 1 + 300 // 50
    assert shell.rpcs["request"] + shell.rpcs["getattr"] == pytest.approx(2 * 300, abs=2 * 300 // 50)
    assert shell.deepest > native.deepest


def test_a_fixed_window_holds_the_queue_to_its_size() -> None:
    assert contest(TREE, Way(window=8)).deepest == 16, "8 at each of two metadata targets"


def test_files_without_an_object_stay_released_and_nobody_waits_for_them() -> None:
    run = contest(replace(TREE, trouble=Trouble(Fault.OBJECT_MISSING, 0.1)), Way())
    assert 0 < run.lost < 60
    assert run.left == run.lost == run.files - run.sound
    assert run.resident < run.ended


def test_files_that_stall_once_are_cured() -> None:
    run = contest(replace(TREE, trouble=Trouble(Fault.STUCK, 0.01, tries=1)), Way())
    assert 0 < run.files - run.sound < 10
    assert run.left == run.lost == 0
    assert run.ended > 75


def test_files_that_stall_hardly_hold_up_the_others() -> None:
    tree = Row(Dataset(1500, fixed(3_000_000)), WorldSpec(max_requests=10_000))
    run = contest(replace(tree, trouble=Trouble(Fault.STUCK, 0.05, tries=1)), Way())
    assert run.sound < run.files
    assert run.resident < 15  # the stalled ones are cured after 75 seconds
    assert run.ended > 75


def test_one_stat_for_each_resident_file_and_no_other_call() -> None:
    for way in ("residents counted by the walk", "every file an entry"):
        command = [sys.executable, str(BENCHES / "resident.py"), "25000", way]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert found.pop("seconds") > 0
        assert found.pop("memory") > 10**7
        assert found == {"status": 0, "resident": 25000, "stats": 25000, "requests": 0, "looks": 0, "calls": 0}


def test_a_bench_that_there_is_not_is_a_usage_error() -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCHES / "run.py"), "nope"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "no bench is called nope" in ended.stderr
