"""Data before nodes: burst_buffer.lua on a real Slurm. Jobs stay pending until it is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.cluster import NODES
from slurm.site import HOOKS, UID, Site, site

STAGES = {name: (HOOKS / name).read_text() for name in ("burst_buffer.lua", "burst_buffer.conf")}


@pytest.fixture(scope="module")
def machine(real_slurm: None) -> Iterator[Site]:  # noqa: ARG001 - it skips
    with site("BurstBufferType=burst_buffer/lua", etc=STAGES, files=400) as one:
        yield one


@pytest.fixture(autouse=True)
def no_node_drained(machine: Site) -> Iterator[None]:
    yield
    machine.hold_restores(hold=False)
    assert set(machine.cluster.states()) == set(NODES)
    assert not [state for state in machine.cluster.states().values() if "drain" in state or "down" in state]


def script(*lines: str | Path) -> str:
    return "\n".join(["#!/bin/sh", *(f"#FSXWARM {line}" for line in lines), "echo ran", ""])


def ran(machine: Site, job: str) -> None:
    assert machine.cluster.wait(job, "COMPLETED", "FAILED", "CANCELLED")["JobState"] == "COMPLETED"
    assert machine.cluster.output(job) == "ran\n"


def warmed(machine: Site, job: str) -> list[dict[str, object]]:
    return [one for one in machine.jobs() if one["slurm_job_id"] == job and one["kind"] == "preload"]


def stages(machine: Site, job: str) -> None:
    """Wait until a job waits for its data, and the daemon has it."""
    machine.cluster.until(job, lambda shown: shown["Reason"] == "BurstBufferStageIn")
    machine.until(lambda: bool(warmed(machine, job)))


def test_a_job_waits_for_its_data_and_its_nodes_stay_free(machine: Site) -> None:
    data = machine.data("first")
    machine.hold_restores(hold=True)
    job = machine.cluster.sbatch(script(f"preload={data}"), "-N4", "--exclusive")
    stages(machine, job)

    assert set(machine.cluster.states().values()) == {"idle"}
    assert warmed(machine, job)[0]["owner"] == UID
    assert machine.leases(job) == [str(data)]
    machine.cluster.run("srun", "-N4", "true", user="games")  # others use the nodes meanwhile

    machine.hold_restores(hold=False)
    machine.until(lambda: machine.released(data) == 0)
    ready = time.monotonic()
    machine.cluster.wait(job, "RUNNING", "COMPLETED")
    assert time.monotonic() - ready < 5  # the cluster's own scheduling takes up to 3 s
    ran(machine, job)
    machine.until(lambda: machine.leases(job) == [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("perload=/x", "line 2, column 10: unknown key 'perload' (did you mean preload?)"),
        ("preload=/no/such/path", "there is no such path that you can reach"),
    ],
)
def test_what_cannot_be_had_holds_the_job_with_the_reason(machine: Site, line: str, said: str) -> None:
    job = machine.cluster.sbatch(script(line))
    shown = machine.cluster.until(job, lambda shown: "burst_buffer" in shown["Reason"])

    assert shown["JobState"] == "PENDING"
    assert shown["Priority"] == "0"
    assert said.replace(" ", "_") in shown["Reason"]
    machine.cluster.run("scancel", job)


def test_files_that_fail_hold_the_job(machine: Site) -> None:
    data = machine.data("bad")
    machine.daemon.fsx.control("fail", paths=[str(data / "0")], fault="object missing")
    job = machine.cluster.sbatch(script(f"preload={data}"))

    shown = machine.cluster.until(job, lambda shown: "burst_buffer" in shown["Reason"])
    assert "1_file_did_not_become_resident" in shown["Reason"]
    machine.cluster.run("scancel", job)
    machine.daemon.fsx.control("mend")


def test_a_cancelled_job_s_warming_is_cancelled_unless_others_want_it(machine: Site) -> None:
    alone, shared = machine.data("alone"), machine.data("shared")
    machine.hold_restores(hold=True)
    jobs = [
        machine.cluster.sbatch(script(f"preload={alone}")),
        machine.cluster.sbatch(script(f"preload={shared}")),
        machine.cluster.sbatch(script(f"preload={shared}")),
    ]
    for job in jobs:
        stages(machine, job)
    machine.cluster.run("scancel", jobs[0], jobs[1])
    for job in jobs[:2]:
        machine.until(lambda job=job: warmed(machine, job)[0]["phase"] == "cancelled")  # type: ignore[misc]  # bound now
        machine.until(lambda job=job: machine.leases(job) == [])  # type: ignore[misc]  # the same

    assert warmed(machine, jobs[2])[0]["phase"] == "running"
    machine.hold_restores(hold=False)
    ran(machine, jobs[2])
    assert [len(warmed(machine, job)) for job in jobs] == [1, 1, 1]


def test_a_share_is_enough_to_begin(machine: Site) -> None:
    data = machine.data("share", files=8)
    machine.daemon.fsx.control("fail", paths=[str(data / "7")], fault="object missing")
    ran(machine, machine.cluster.sbatch(script(f"preload={data}", "ready=0.5")))
    machine.daemon.fsx.control("mend")


def test_a_deadline_lets_the_job_run(machine: Site) -> None:
    data = machine.data("late")
    machine.hold_restores(hold=True)
    ran(machine, machine.cluster.sbatch(script(f"preload={data} deadline=2s")))


def test_space_is_given_back_after_the_run(machine: Site) -> None:
    data = machine.data("after")
    ran(machine, machine.cluster.sbatch(script(f"preload={data} release=after")))
    machine.until(lambda: machine.released(data) == 4)


def test_jobs_that_ask_for_nothing_run(machine: Site) -> None:
    before = len(machine.jobs())
    ran(machine, machine.cluster.sbatch("#!/bin/sh\necho ran\n"))
    assert len(machine.jobs()) == before


def test_the_daemon_may_go_and_come_back_meanwhile(machine: Site) -> None:
    data = machine.data("killed")
    machine.hold_restores(hold=True)
    job = machine.cluster.sbatch(script(f"preload={data}"))
    stages(machine, job)
    machine.kill_daemon()
    machine.hold_restores(hold=False)
    machine.start_daemon()
    ran(machine, job)
    assert machine.released(data) == 0


def test_jobs_of_one_dataset_share_one_warming(machine: Site) -> None:
    data = machine.data("many", files=20)
    asked = machine.daemon.fsx.control("counters").get("items", 0)
    jobs = [machine.cluster.sbatch(script(f"preload={data}")) for _ in range(12)]
    for job in jobs:
        ran(machine, job)
    assert machine.daemon.fsx.control("counters").get("items", 0) - asked <= 20
