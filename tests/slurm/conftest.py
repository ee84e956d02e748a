"""A real Slurm, where there is one; in CI there always is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from slurm.cluster import Cluster, missing, slurm


@pytest.fixture(scope="session")
def real_slurm() -> None:
    """Skip where Slurm cannot run; fail where it must."""
    lacking = missing()
    if not lacking:
        return
    told = f"no real Slurm here, for want of {', '.join(lacking)}: run as root with slurmctld slurmd slurm-client munge"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


@pytest.fixture(scope="session")
def cluster(real_slurm: None) -> Iterator[Cluster]:  # noqa: ARG001 - it skips
    """A Slurm with four nodes and no hooks."""
    with slurm() as one:
        yield one
