"""The cluster that the other tests here stand on."""

from __future__ import annotations

from slurm.cluster import NODES, USER, Cluster


def test_four_tasks_run_on_four_nodes(cluster: Cluster) -> None:
    done = cluster.run("srun", "-N4", "sh", "-c", "echo $SLURM_PROCID/$SLURM_NTASKS on $SLURMD_NODENAME", user=USER)

    assert sorted(done.stdout.splitlines()) == [f"{number}/4 on {node}" for number, node in enumerate(NODES)]


def test_a_batch_job_of_an_ordinary_user_runs_as_that_user(cluster: Cluster) -> None:
    job = cluster.sbatch("#!/bin/sh\nid -un\n")

    assert cluster.wait(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert cluster.output(job) == f"{USER}\n"
