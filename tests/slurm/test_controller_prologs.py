"""PrologSlurmctld and EpilogSlurmctld alone: on the controller, as Slurm's own user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm.site import UID, Site, site


@pytest.fixture(scope="module")
def machine(real_slurm: None) -> Iterator[Site]:  # noqa: ARG001 - it skips
    hooks = ("PrologSlurmctld={etc}/fsxwarm/prologctld.sh", "EpilogSlurmctld={etc}/fsxwarm/epilogctld.sh")
    with site(*hooks) as one:
        yield one


def test_a_job_s_data_is_there_when_it_begins_and_given_back_when_it_ends(machine: Site) -> None:
    data = machine.data("controller")
    job = machine.cluster.sbatch("#!/bin/sh\nsleep 300\n", f"--comment=fsxwarm:preload={data} release=after")
    machine.until(lambda: machine.leases(job) == [str(data)] and machine.released(data) == 0)
    assert [one["owner"] for one in machine.jobs()] == [UID]

    machine.cluster.run("scancel", job)
    machine.until(lambda: machine.leases(job) == [] and machine.released(data) == 4)


def test_a_bad_comment_holds_nothing_up(machine: Site) -> None:
    job = machine.cluster.sbatch("#!/bin/sh\ntrue\n", "--comment=fsxwarm:preload=x")

    assert machine.cluster.wait(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert set(machine.cluster.states().values()) <= {"idle", "allocated", "mixed", "completing"}
