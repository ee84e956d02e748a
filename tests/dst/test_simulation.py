"""Five hundred simulated runs keep all promises."""

from __future__ import annotations

import gc

import pytest

from dst.simulate import CHUNK, broken_seeds

SEEDS = 500


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_promise_is_kept(first: int, caplog: pytest.LogCaptureFixture) -> None:
    assert broken_seeds(range(first, first + CHUNK)) == []
    gc.collect()
    assert "never retrieved" not in caplog.text
