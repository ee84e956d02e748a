"""Sizes, durations and rates, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.units import (
    Amount,
    format_duration,
    format_rate,
    format_size,
    parse_amount,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("500GB", 500 * 10**9),
        ("500 GB", 500 * 10**9),
        (" 1.5TiB ", 3 * 2**39),
        ("1.1GB", 1_100_000_000),
        ("1gb", 10**9),
        ("1GiB", 2**30),
        ("7B", 7),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "-1GB", "1 light year", "1e3", "nan", "inf", "1GB2", "٣GB", "1,5GB", "9EB9"]
)
def test_what_is_no_size_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


def test_a_bare_letter_is_ambiguous() -> None:
    with pytest.raises(ValueError, match=r"'500G' could mean GB .* or GiB"):
        parse_size("500G")


def test_a_size_beyond_any_file_system_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than any file system"):
        parse_size("99999EB")


@given(st.integers(0, 2**63 - 1))
def test_plain_bytes_round_trip(size: int) -> None:
    assert parse_size(str(size)) == size


@given(st.integers(0, 9 * 10**18))
def test_a_written_size_is_read_back_within_its_precision(size: int) -> None:
    text = format_size(size)
    assert abs(parse_size(text) - size) <= max(size * 0.005, 0.5)
    assert len(text) <= len("9999 kB")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 KB"), (999_600, "1.00 MB"), (12_345_678, "12.3 MB"), (-1500, "-1.50 KB")],
)
def test_sizes_are_written_with_three_digits(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400), ("1.5h", 5400)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 parsecs", "-5m", "m", "1m1m", "30m1h", "1h!", "1e9s", "5 M"])
def test_what_is_no_duration_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration: write 90s, 15m, 2h or 7d"):
        parse_duration(text)


def test_a_duration_beyond_a_life_is_refused() -> None:
    with pytest.raises(ValueError, match="hundred years"):
        parse_duration("99999999d")


@given(st.floats(0, 10**9))
def test_a_written_duration_is_read_back_within_its_precision(seconds: float) -> None:
    text = format_duration(seconds)
    assert abs(parse_duration(text) - seconds) <= max(seconds * 0.03, 0.51)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (9.4, "9.4s"), (59.6, "1m"), (61, "1m 1s"), (3_661, "1h 1m"), (604_800, "7d"), (180_000, "2d 2h")],
)
def test_durations_are_written_with_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(1, 10**18))
def test_a_rate_is_a_size_a_second(size: int) -> None:
    assert parse_rate(f"{size}/s") == parse_rate(f"{size}") == size


def test_rates_are_written() -> None:
    assert format_rate(1.234e9) == "1.23 GB/s"


@pytest.mark.parametrize("text", ["fast", "0", "0GB/s", "1GB/h"])
def test_what_is_no_rate_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_rate(text)


def test_an_amount_is_bytes_or_a_share_of_the_whole() -> None:
    assert parse_amount("20%").of(1000) == 200
    assert parse_amount("500GB").of(1000) == 500 * 10**9
    assert str(parse_amount("7.5 %")) == "7.5%"
    assert str(Amount(bytes=10**9)) == "1.00 GB"


@pytest.mark.parametrize("text", ["101%", "%", "-5%", "lots", "5%%"])
def test_what_is_no_amount_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_amount(text)


@pytest.mark.parametrize(("text", "share"), [("0.2", 0.2), ("20%", 0.2), ("1", 1.0), ("100%", 1.0)])
def test_shares_are_read(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0", "0%", "1.1", "20", "-0.2", "half", "101%"])
def test_what_is_no_share_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="more than 0 and at most 1"):
        parse_share(text)
