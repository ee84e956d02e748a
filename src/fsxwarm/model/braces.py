"""Shell braces in a path, such as `part-{0..9}.tar` or `{train,val}/x`. They are legal in names: see `--braces`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

MOST: Final = 1_000_000
"""Names that one pattern may stand for."""

_RANGE: Final = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.(-?[0-9]{1,18}))?", re.ASCII)


def expand_braces(pattern: str) -> list[str]:
    r"""Expand a pattern as bash does: alternatives, number ranges with padding and step, nesting, `\{` for a brace.

    Braces without a comma or a range in them stay as they are. ValueError when there would be more than a million.
    """
    names = []
    for name in _expanded(pattern):
        names.append(re.sub(r"\\([{},\\])", r"\1", name))
        if len(names) > MOST:
            raise ValueError(f"{pattern!r} stands for more than {MOST:,} names")
    return names


def _expanded(pattern: str) -> Iterator[str]:
    group = _first_group(pattern)
    if group is None:
        yield pattern
        return
    start, end, parts = group
    for part in parts:
        for middle in _expanded(part):
            for rest in _expanded(pattern[end:]):
                yield pattern[:start] + middle + rest


def _first_group(pattern: str) -> tuple[int, int, Iterator[str]] | None:
    """The first brace that expands: where it begins and ends, and what it may stand for."""
    for start, char in enumerate(pattern):
        if char != "{" or _escaped(pattern, start):
            continue
        closed = _closed(pattern, start)
        if closed is None:
            continue
        end, commas = closed
        inside = pattern[start + 1 : end]
        if commas:
            cuts = [start, *commas, end]
            return start, end + 1, (pattern[a + 1 : b] for a, b in pairwise(cuts))
        if match := _RANGE.fullmatch(inside):
            return start, end + 1, _numbers(match[1], match[2], match[3])
    return None


def _closed(pattern: str, start: int) -> tuple[int, list[int]] | None:
    """Where the brace at `start` closes, and the commas on its own level."""
    depth, commas = 0, []
    for at in range(start, len(pattern)):
        if _escaped(pattern, at):
            continue
        if pattern[at] == "{":
            depth += 1
        elif pattern[at] == "," and depth == 1:
            commas.append(at)
        elif pattern[at] == "}":
            depth -= 1
            if depth == 0:
                return at, commas
    return None


def _escaped(pattern: str, at: int) -> bool:
    first = at
    while first and pattern[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _numbers(first: str, last: str, step: str | None) -> Iterator[str]:
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-").startswith("0") for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    start, end = int(first), int(last)
    pace = abs(int(step or 1)) or 1
    numbers = range(start, end + 1, pace) if start <= end else range(start, end - 1, -pace)
    return (f"{number:0{width}d}" for number in numbers)
