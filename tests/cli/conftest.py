"""Fixtures of the command's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.machine import Site
from fsxwarm.sim import launch


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    options = ("--files", "36", "--size", "100KB", "--latency", "0s")
    with launch.start(tmp_path / "fsx", *options) as fsx:
        yield Site(fsx)
