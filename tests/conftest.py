"""Fixtures that several test folders share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fsxwarm.sim.launch import SimulatedFsx, start

SimFsx = Callable[..., SimulatedFsx]

# How long an example takes says how busy the machine is, not whether the code is right.
# In CI the same examples are played each time; new ones are for those who can look into what they find.
settings.register_profile(
    "fsxwarm",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("fsxwarm")


@pytest.fixture
def sim_fsx(tmp_path: Path) -> Iterator[SimFsx]:
    """Start simulated FSx for Lustre as real processes: `sim_fsx("--files", "20", "--size", "64KiB", …)`.

    `name` tells several apart; the same name again, after the first was stopped, goes on with its files. All end with
    the test.
    """
    with ExitStack() as running:

        def make(*options: str, name: str = "fsx") -> SimulatedFsx:
            quick = () if "--latency" in options else ("--latency", "0ms")
            return running.enter_context(start(tmp_path / name, *quick, *options))

        yield make
