"""Release tasks of FSx, as far as they can be worked out without asking: days, paths, and the report of failures.

The rules are those of the API (CreateDataRepositoryTask, CompletionReport) and of the FSx for Lustre user guide
("Releasing files", "Working with task completion reports").
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

MOST_PATHS: Final = 32
"""Paths that one task takes."""

_DAY: Final = 86_400
_LONGEST: Final = 4096
_UNSAYABLE: Final = re.compile("[\x00\x85\u2028\u2029\r\n]")
_REPORT: Final = "failures.csv"
_GUARDED: Final = re.compile(r"""(["'])([@+=-].*)\1""", re.DOTALL)


def whole_days(seconds: float) -> int | None:
    """An age as the days that a task counts in; None for what is no whole number of them."""
    days, rest = divmod(seconds, _DAY)
    return None if rest else int(days)


def inner_path(path: bytes, mount: bytes, below: str) -> str:
    """A path as a task names it: relative to the file system's root, `/` for all of it.

    `below` is the folder of the file system that is mounted at `mount`, empty for all of it. ValueError says why a
    name cannot be sent.
    """
    try:
        inside = path[len(mount.rstrip(b"/")) :].strip(b"/").decode()
    except UnicodeDecodeError:
        raise ValueError("its name is no UTF-8") from None
    named = "/".join(part for part in (below.strip("/"), inside) if part)
    if _UNSAYABLE.search(named):
        raise ValueError("its name has a line break")
    if len(named) > _LONGEST:
        raise ValueError(f"its path is longer than {_LONGEST} characters")
    return named or "/"


def outermost(paths: Sequence[str]) -> list[str]:
    """Leave out paths that are named twice or lie in another one; the others keep their order."""
    if "/" in paths:
        return ["/"]
    unique = list(dict.fromkeys(paths))
    named = set(unique)
    return [path for path in unique if not any(parent in named for parent in _parents(path))]


def in_tasks(paths: Sequence[str]) -> list[tuple[str, ...]]:
    """Divide paths among tasks."""
    return [tuple(paths[start : start + MOST_PATHS]) for start in range(0, len(paths), MOST_PATHS)]


class Unreleased(NamedTuple):
    """A file that a task could not release: its path within the file system, and the service's word for why."""

    path: str
    reason: str


def report_of(folder: str, task: str) -> str:
    """Where a task's report of failures is, below the `folder` in S3 that it was told."""
    return f"{folder.rstrip('/')}/{task}/{_REPORT}"


def read_report(text: str, *, whole: bool = True) -> list[Unreleased]:
    """Read a report of failures: FilePath, FileStatus, ErrorCode, as CSV. What is cut short or garbled is left out.

    Without its `whole` text the last line counts as cut short.
    """
    found: list[Unreleased] = []
    lines = text.splitlines(keepends=True)
    rows = csv.reader(lines if whole else lines[:-1])
    with suppress(csv.Error):  # what came before it stays in the list
        found.extend(Unreleased(_bare(row[0]), row[2]) for row in rows if len(row) >= 3)  # noqa: PLR2004 - the fields
    return found


def _bare(path: str) -> str:
    """Names that begin as a spreadsheet's formula would are in quotes, inside those of CSV."""
    guarded = _GUARDED.fullmatch(path)
    return path if guarded is None else guarded[2]


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]
