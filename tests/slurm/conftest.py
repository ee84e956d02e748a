"""A real Slurm, where there is one; in CI there always is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm.cluster import Cluster, lacking, missing, slurm


@pytest.fixture(scope="session")
def real_slurm() -> None:
    """Skip where Slurm cannot run; fail where it must."""
    if found := missing():
        lacking(*found)


@pytest.fixture(scope="session")
def cluster(real_slurm: None) -> Iterator[Cluster]:  # noqa: ARG001 - it skips
    """A Slurm with four nodes and no hooks."""
    with slurm() as one:
        yield one
