"""`fsxwarm slurm check`: what would be done for a job, or where its directive is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def check(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fsxwarm", "slurm", "check", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_it_explains_what_would_be_done(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(
        "#!/bin/sh\n#FSXWARM preload=/fsx/imagenet exclude=*.tmp ready=0.2 deadline=30m release=after\nsrun train\n"
    )
    done = check(str(script))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "before the job begins, these become resident:",
        "  /fsx/imagenet",
        "  no files that match *.tmp",
        "it begins with 20% of the bytes",
        "  or after 30m with what is there then",
        "if they do not all fit, it is held",
        "nothing of it is released while the job runs",
        "when the job has ended, the space is given back",
    ]


def test_it_points_at_the_mistake() -> None:
    done = check("-", stdin="#!/bin/sh\n#FSXWARM perload=/fsx\n")

    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "-:2:10: unknown key 'perload' (did you mean preload?)",
        "  #FSXWARM perload=/fsx",
        "           ^",
    ]


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["--comment", "fsxwarm:preload=/fsx"], "", "  /fsx\n"),
        (["--comment", "x fsxwarm:ready=2"], "", "the comment:1:17: ready: '2' is no share"),
        (["-"], "#!/bin/sh\nsrun x\n", "nothing is asked for"),
        (["-"], "srun x\n#FSXWARM preload=/a\n", "-:2: overlooked: it comes after the first command"),
        (["-"], "#FSXWARM preload='/a\x1b[2J'\n", "/a\\x1b[2J"),
    ],
)
def test_comments_and_oversights(arguments: list[str], stdin: str, said: str) -> None:
    assert said in check(*arguments, stdin=stdin).stdout


@pytest.mark.parametrize(
    ("script", "status", "key"),
    [("#FSXWARM preload=/a\n", 0, "directive"), ("#FSXWARM preload=a\n", 2, "error"), ("#fsxwarm\n", 0, "overlooked")],
)
def test_json_is_one_object(script: str, status: int, key: str) -> None:
    done = check("--json", "-", stdin=script)
    answer: dict[str, Any] = json.loads(done.stdout)

    assert (done.returncode, answer["exit"]) == (status, status)
    assert answer[key]


def test_a_script_that_is_not_there_is_said() -> None:
    done = check("/no/such/script")
    assert done.returncode == 2
    assert done.stderr.startswith("fsxwarm: /no/such/script: No such file or directory (")


@pytest.mark.parametrize("arguments", [[], ["x.sh", "--comment", "fsxwarm:preload=/a"]])
def test_it_takes_one_of_script_and_comment(arguments: list[str]) -> None:
    done = check(*arguments)
    assert done.returncode == 2
    assert "name a batch script, or a --comment" in done.stderr


def test_a_script_without_end_is_usage() -> None:
    with Path("/dev/zero").open("rb") as endless:
        for script in ("/dev/zero", "-"):
            command = [sys.executable, "-m", "fsxwarm", "slurm", "check", script]
            done = subprocess.run(command, stdin=endless, capture_output=True, text=True, check=False, timeout=60)
            assert (done.returncode, done.stderr.splitlines()) == (
                2,
                [f"fsxwarm: {script}: File too large (name a batch script)"],
            )
