"""How long restores take: which rates count, and which limit binds."""

from __future__ import annotations

import pytest

from fsxwarm.model.forecast import TYPICAL, Basis, Ran, forecast
from fsxwarm.model.tally import Tally

SMALL = Tally(11_000, 11_000 * 100_000)
LARGE = Tally(10, 10 * 10**10)


def test_small_files_are_bound_by_files_and_large_ones_by_bytes() -> None:
    assert forecast(SMALL, [], 1e9).binds == "files/s"
    assert forecast(SMALL, [], 1e9).seconds == pytest.approx(11_000 / TYPICAL)
    assert forecast(LARGE, [], 1e9).binds == "bytes/s"
    assert forecast(LARGE, [], 1e9).seconds == pytest.approx(100.0)


def test_runs_of_small_files_tell_the_files_per_second_and_runs_of_large_ones_do_not() -> None:
    small, large = Ran(300.0, 3e7), Ran(0.1, 2e9)
    assert forecast(SMALL, [small, large], None).by_files[:2] == (300.0, Basis.SEEN)
    assert forecast(SMALL, [large], None).by_files[:2] == (TYPICAL, Basis.PUBLISHED)


def test_the_tier_goes_before_what_was_seen() -> None:
    both = forecast(LARGE, [Ran(0.1, 2e9)], 1e9)
    assert both.by_bytes is not None
    assert both.by_bytes[:2] == (1e9, Basis.TIER)
    seen = forecast(LARGE, [Ran(0.1, 2e9)], None)
    assert seen.by_bytes is not None
    assert seen.by_bytes[:2] == (2e9, Basis.SEEN)


def test_where_no_rate_of_bytes_is_known_files_alone_count() -> None:
    found = forecast(SMALL, [], None)
    assert (found.by_bytes, found.binds) == (None, "unknown")
    assert found.seconds == found.by_files.seconds
