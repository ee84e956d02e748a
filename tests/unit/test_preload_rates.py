"""Rates of earlier runs: remembered where possible, and never in the way."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.store.rates import Rate, RateStore, rates_file


def test_runs_are_remembered_by_file_system_and_old_ones_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "new" / "rates.json"
    for number in range(15):
        RateStore(file).remember("fs-1@tcp:/a", Rate(number, 100.0, 1e9))
    RateStore(file).remember("fs-2@tcp:/b", Rate(1.0, 50.0, 5e8))
    assert [rate.at for rate in RateStore(file).rates("fs-1@tcp:/a")] == list(range(5, 15))
    assert RateStore(file).rates("fs-2@tcp:/b") == [Rate(1.0, 50.0, 5e8)]
    assert RateStore(file).rates("fs-3@tcp:/c") == []
    assert [path.name for path in file.parent.iterdir()] == ["rates.json"]


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_a_damaged_file_counts_as_none_and_is_replaced(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rates.json"
        file.write_bytes(data)
        assert RateStore(file).rates("fs") == []
        RateStore(file).remember("fs", Rate(1.0, 2.0, 3.0))
        assert RateStore(file).rates("fs") == [Rate(1.0, 2.0, 3.0)]


@pytest.mark.parametrize("runs", ["7", "[7]", "[[1, 2]]", '[["a", 1, 1]]', "[[1, NaN, 1]]", "[[1, -1, 1]]", "[true]"])
def test_runs_that_are_none_are_left_out(tmp_path: Path, runs: str) -> None:
    file = tmp_path / "rates.json"
    systems = f'{{"bad": {runs}, "good": [[1, 2, 3]]}}'
    file.write_text(f'{{"schema": "fsxwarm.rates/1", "file_systems": {systems}}}')
    assert RateStore(file).rates("bad") == []
    assert RateStore(file).rates("good") == [Rate(1.0, 2.0, 3.0)]


def test_nowhere_to_write_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for file in (tmp_path / "file" / "rates.json", tmp_path, None):
        RateStore(file).remember("fs", Rate(1.0, 2.0, 3.0))
        assert RateStore(file).rates("fs") == []


def test_the_cache_is_where_the_user_has_it() -> None:
    assert rates_file({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/fsxwarm/rates.json")
    assert rates_file({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/fsxwarm/rates.json")
    assert rates_file({}) is None
