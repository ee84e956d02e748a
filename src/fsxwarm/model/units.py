"""Sizes, durations and rates as people write them: GB is 10^9 bytes, GiB is 2^30; 90s, 15m, 2h, 7d."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_DECIMAL: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_SIZES: Final = {unit.lower(): 1000**power for power, unit in enumerate(_DECIMAL)} | {
    f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtpe", start=1)
}
_MOST_BYTES: Final = 2**63 - 1
_NUMBER: Final = r"(?P<number>[0-9]{1,30}(?:\.[0-9]{1,30})?)"
_SIZE: Final = re.compile(_NUMBER + r"\s*(?P<unit>[A-Za-z]*)", re.ASCII)
_PERCENT: Final = re.compile(_NUMBER + r"\s*%", re.ASCII)
_SHARE: Final = re.compile(_NUMBER + r"\s*(?P<percent>%?)", re.ASCII)

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST_SECONDS: Final = 100 * 366 * 86400
_DURATION: Final = re.compile(_NUMBER + r"\s*(?P<unit>[smhd])\s*", re.ASCII)


def parse_size(text: str) -> int:
    """Read a size such as `500GB`, `1.5 TiB` or plain bytes; returns bytes. ValueError says what is wrong."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no size: write 500GB, 1.5TiB or a number of bytes")
    unit = match["unit"].lower()
    if unit in {"k", "m", "g", "t", "p", "e"}:
        big, two = f"{unit.upper()}B", f"{unit.upper()}iB"
        raise ValueError(f"{text!r} could mean {big} ({_SIZES[unit + 'b']:,} bytes) or {two}: write one of them")
    factor = _SIZES.get(unit or "b")
    if factor is None:
        raise ValueError(f"{text!r} is no size: {match['unit']!r} is no unit; write 500GB, 1.5TiB or a number of bytes")
    size = int(Decimal(match["number"]) * factor)
    if size > _MOST_BYTES:
        raise ValueError(f"{text!r} is larger than any file system")
    return size


def format_size(size: float) -> str:
    """Write bytes for people with three significant digits: `1.23 TB`. Decimal units, as AWS sells them."""
    sign, rest = ("-", -size) if size < 0 else ("", size)
    power = 0
    while power + 1 < len(_DECIMAL) and rest >= 999.5 * 1000**power:
        power += 1
    scaled = rest / 1000**power
    digits = 0 if power == 0 or scaled >= 99.95 else 1 if scaled >= 9.995 else 2  # noqa: PLR2004 - three digits
    return f"{sign}{scaled:.{digits}f} {_DECIMAL[power]}"


@dataclass(frozen=True, slots=True)
class Amount:
    """Some bytes, or a share of a whole that is known later."""

    bytes: int = 0
    percent: float = 0.0

    def of(self, total: int) -> int:
        """Bytes meant, given the whole in bytes."""
        return self.bytes + int(total * self.percent / 100)

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.percent else format_size(self.bytes)


def parse_amount(text: str) -> Amount:
    """Read a size or a percentage: `500GB` or `20%`. ValueError says what is wrong."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        if "%" in text:
            raise ValueError(f"{text!r} is no percentage: write 20%")
        return Amount(bytes=parse_size(text))
    percent = float(match["number"])
    if percent > 100:  # noqa: PLR2004 - per cent
        raise ValueError(f"{text!r} is more than everything: write at most 100%")
    return Amount(percent=percent)


def parse_share(text: str) -> float:
    """Read a share of a whole: `0.2` or `20%`, more than 0 and at most 1. ValueError says what is wrong."""
    match = _SHARE.fullmatch(text.strip())
    share = float(match["number"]) / (100 if match["percent"] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is no share: write 0.2 or 20%, more than 0 and at most 1")
    return share


def parse_duration(text: str) -> float:
    """Read a duration such as `90s`, `15m`, `2h`, `7d` or `1h30m`; returns seconds. ValueError says what is wrong."""
    rest, seconds = text.strip(), Decimal(0)
    parts = list(_DURATION.finditer(rest))
    units = [_SECONDS[part["unit"]] for part in parts]
    whole = "".join(part[0] for part in parts) == rest
    if not parts or not whole or units != sorted(set(units), reverse=True):
        raise ValueError(f"{text!r} is no duration: write 90s, 15m, 2h or 7d")
    for part, unit in zip(parts, units, strict=True):
        seconds += Decimal(part["number"]) * unit
    if seconds > _MOST_SECONDS:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return float(seconds)


def format_duration(seconds: float) -> str:
    """Write seconds for people with the two largest units: `2h 5m`. Readable by `parse_duration`."""
    if seconds < 10:  # noqa: PLR2004 - tenths matter only for a few seconds
        return f"{max(seconds, 0):.1f}s"
    left = round(seconds)
    if left >= 2 * _SECONDS["d"]:
        left = round(left / _SECONDS["h"]) * _SECONDS["h"]
    elif left >= _SECONDS["h"]:
        left = round(left / _SECONDS["m"]) * _SECONDS["m"]
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def parse_rate(text: str) -> int:
    """Read bytes per second: `1GB/s` (or `1GB`). ValueError says what is wrong."""
    try:
        rate = parse_size(text.strip().removesuffix("/s"))
    except ValueError:
        raise ValueError(f"{text!r} is no rate: write 500MB/s or 1GiB/s") from None
    if rate == 0:
        raise ValueError(f"{text!r} would never end: write a rate above zero")
    return rate


def format_rate(bytes_per_second: float) -> str:
    """Write a rate of bytes for people: `1.23 GB/s`."""
    return f"{format_size(bytes_per_second)}/s"


def format_count(count: int, noun: str) -> str:
    """Write a number with its noun: `1 file`, `12,345 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
