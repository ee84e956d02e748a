"""The age histogram against sorting everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.eviction import AgeHistogram

FILES = st.lists(st.tuples(st.integers(-10, 2_000), st.integers(1, 1_000)), max_size=300)


@given(FILES, st.integers(0, 200_000), st.integers(1, 16))
def test_a_cut_takes_the_oldest_bytes_that_sorting_would_take(
    files: list[tuple[int, int]], need: int, bins: int
) -> None:
    histogram = AgeHistogram(bins)
    for used, size in files:
        histogram.add(used, size)
    cut = histogram.cut(need)
    surely = sum(size for used, size in files if used < cut.first)
    maybe = sum(size for used, size in files if cut.first <= used <= cut.last)
    if sum(size for _, size in files) < need:
        assert all(used < cut.first for used, _ in files)
    else:
        assert surely + cut.room == need
        assert 0 <= cut.room <= maybe


@given(FILES, st.integers(1, 16))
def test_memory_is_bounded_and_nothing_is_forgotten(files: list[tuple[int, int]], bins: int) -> None:
    histogram = AgeHistogram(bins)
    for used, size in files:
        histogram.add(used, size)
        assert len(histogram) <= 2 * bins
    assert (histogram.files, histogram.bytes) == (len(files), sum(size for _, size in files))


def test_one_ancient_file_does_not_blur_the_rest() -> None:
    histogram = AgeHistogram(64)
    histogram.add(0, 1)
    for second in range(10_000):
        histogram.add(1_700_000_000 + second, 10)
    cut = histogram.cut(50_001)
    assert 0 <= cut.last - cut.first <= 10_000 * 4 // 64
    assert cut.first <= 1_700_000_000 + 5_000 <= cut.last + 1


def test_files_of_one_second_stay_in_a_bin_of_their_own() -> None:
    histogram = AgeHistogram(4)
    for _ in range(1_000):
        histogram.add(100, 1)
    for second in range(200, 260):
        histogram.add(second, 1)
    assert (histogram.cut(500).first, histogram.cut(500).last) == (100, 100)


def test_an_empty_histogram_has_nothing_to_cut() -> None:
    cut = AgeHistogram().cut(10)
    assert cut.room == 0
