"""Several simulated FSx of one user: what is remembered of one is not taken for what another can."""

from __future__ import annotations

from pathlib import Path

from cli.machine import Site
from fsxwarm.sim import launch

OPTIONS = ("--files", "90", "--size", "100KB", "--latency", "0s")
EARLIER = "at what earlier runs here reached"


def test_rates_of_one_are_not_taken_for_another_s(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    with launch.start(tmp_path / "one", *OPTIONS) as fsx, launch.start(tmp_path / "two", *OPTIONS) as other:
        one, two = Site(fsx), Site(other)
        assert one.fsxwarm("preload", one.data, XDG_CACHE_HOME=cache).status == 0
        rest = one.fsx.mount / "genomes"
        assert EARLIER in one.fsxwarm("preload", rest, "--dry-run", XDG_CACHE_HOME=cache).out
        assert EARLIER not in two.fsxwarm("preload", two.data, "--dry-run", XDG_CACHE_HOME=cache).out
    with launch.start(tmp_path / "one", *OPTIONS) as fsx:
        again = Site(fsx).fsxwarm("preload", fsx.mount / "genomes", "--dry-run", XDG_CACHE_HOME=cache)
    assert EARLIER in again.out
