"""`fsxwarm slurm submit`, and commands inside jobs, on a real Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.site import Site, site


@pytest.fixture(scope="module")
def machine(real_slurm: None) -> Iterator[Site]:  # noqa: ARG001 - it skips
    with site(files=100) as one:
        yield one


def fsxwarm(machine: Site, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command, as root, who is no administrator from afar: on some machines Python is closed to other users."""
    environ = {**machine.cluster.environ, **machine.environ}
    environ |= {"PATH": f"{machine.daemon.fsx.folder}/bin:{environ['PATH']}"}
    environ |= {"FSXWARM_MOUNTS": str(machine.daemon.fsx.folder / "mounts"), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "fsxwarm", *arguments], env=environ, capture_output=True, text=True, check=False,
        timeout=120, cwd=machine.cluster.folder / "out",
    )  # fmt: skip


def script(machine: Site, text: str) -> Path:
    path = machine.cluster.folder / "train.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    return path


def test_a_script_s_job_runs_when_its_data_is_there(machine: Site) -> None:
    data = machine.data("submitted")
    machine.hold_restores(hold=True)
    done = fsxwarm(
        machine, "slurm", "submit", "--warm-options", "-p cpu", "-N2", "--parsable",
        script(machine, f"#FSXWARM preload={data}\necho ran $1"), "well",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    warming = done.stderr.split()[2]

    machine.cluster.until(warming, lambda shown: shown["JobState"] == "RUNNING")
    shown = machine.cluster.job(job)
    assert (shown["JobState"], shown["Dependency"]) == ("PENDING", f"afterok:{warming}(unfulfilled)")
    assert machine.cluster.job(warming)["Partition"] == "cpu"

    machine.hold_restores(hold=False)
    machine.cluster.wait(job, "COMPLETED")
    assert machine.released(data) == 0
    assert (machine.cluster.folder / "out" / f"slurm-{job}.out").read_text() == "ran well\n"


def test_space_is_given_back_by_a_third_job(machine: Site) -> None:
    data = machine.data("given")
    for path in data.iterdir():
        os.chown(path, 0, 0)
    done = fsxwarm(machine, "slurm", "submit", script(machine, f"#FSXWARM preload={data} release=after\ntrue"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Submitted batch job ")
    last = done.stderr.splitlines()[-1].split()[2]

    assert machine.cluster.wait(last, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert machine.released(data) == 4


def test_a_script_without_directives_is_submitted_as_it_is(machine: Site) -> None:
    done = fsxwarm(machine, "slurm", "submit", "--parsable", script(machine, "true"))
    assert "is submitted as it is" in done.stderr
    machine.cluster.wait(done.stdout.strip(), "COMPLETED")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("#FSXWARM perload=/x", [], "line 2, column 10: unknown key 'perload'"),
        ("#FSXWARM preload=/x", ["--partition=none"], "invalid partition"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left_behind(
    machine: Site, text: str, options: list[str], said: str
) -> None:
    done = fsxwarm(machine, "slurm", "submit", *options, script(machine, text))

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    queue = machine.cluster.run("squeue", "-h", "-t", "PENDING,RUNNING", "-o", "%i").stdout
    assert queue == ""


def test_commands_work_from_inside_a_job_over_the_network(machine: Site) -> None:
    data = machine.data("inside")
    fsxwarm = f"{sys.executable} -m fsxwarm"
    lines = [
        f"{fsxwarm} preload --daemon --no-wait {data}",
        f"{fsxwarm} wait --daemon --timeout 60s {data}",
        f"{fsxwarm} jobs list --all --json",
        f"{fsxwarm} status --daemon --check {data}",
    ]
    environ = {**machine.cluster.environ, **machine.environ, "PATH": os.environ["PATH"]}
    before = len(machine.jobs())
    machine.hold_restores(hold=True)
    with subprocess.Popen(
        ["srun", "-N1", "sh", "-ec", "\n".join(lines)], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd="/",
    ) as running:  # fmt: skip
        machine.until(lambda: len(machine.jobs()) > before)
        threading.Timer(6.0, machine.hold_restores, kwargs={"hold": False}).start()  # `wait` waits by then
        out, told = running.communicate(timeout=120)

    assert running.returncode == 0, out + told
    assert "the daemon has it as job" in told
    assert str(data) in out
    assert machine.released(data) == 0
