"""Arguments and options that several commands share, and how their texts are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from fsxwarm.cli.output import safe
from fsxwarm.config import Backend
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.braces import expand_braces
from fsxwarm.model.s3 import CheckS3, is_uri
from fsxwarm.model.units import parse_duration

T = TypeVar("T")

WHICH: Final = "Which files"
PACE: Final = "Room and pace"
S3: Final = "S3"
WHO: Final = "Lustre and daemon"
"""Titles under which a command's help has its options."""

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Files and folders on FSx for Lustre, or s3://bucket/prefix of what is linked there.",
        show_default=False,
    ),
]
FilesFrom = Annotated[
    str | None,
    typer.Option(
        "--files-from",
        metavar="FILE",
        help="Also take the files that FILE lists, one a line, in that order; - is standard input.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]
Nul = Annotated[
    bool,
    typer.Option(
        "-0",
        "--null",
        help="The list is separated by NUL bytes, as `find -print0` writes it.",
        rich_help_panel=WHICH,
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="GLOB",
        help="Only files that match, such as `*.tar` or `train/**/*.bin`. May be given several times.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="Leave out files and folders that match. May be given several times.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]
Braces = Annotated[
    bool,
    typer.Option(
        "--braces",
        help="Expand braces in PATH as a shell does: `shard-{000..127}.tar`, `{train,val}`.",
        rich_help_panel=WHICH,
    ),
]
CheckS3Option = Annotated[
    CheckS3,
    typer.Option(
        "--check-s3",
        metavar="WHEN",
        help="Look first at what S3 holds: always (fail if that cannot be done), never, or auto: if there are AWS"
        " credentials, as long as one request tells of 200 files or more.",
        rich_help_panel=S3,
    ),
]
BackendOption = Annotated[
    Backend | None,
    typer.Option(
        "--backend",
        metavar="HOW",
        help="How Lustre is spoken to: native (its own calls, without a process for each), lfs, or auto, the default:"
        " native where that works.",
        show_default=False,
        rich_help_panel=WHO,
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a line of JSON for each file that is not resident at the end: why, and what to do.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs instead of text.")]


_DIGITS: Final = 10
"""More than any number has that means something."""


def expanded(paths: Sequence[str], *, braces: bool) -> Sequence[str]:
    """The PATHs, with `braces` as a shell would expand them. FsxwarmError USAGE."""
    return [name for path in paths for name in read(expand_braces, path, "--braces")] if braces else paths


def absolute(path: str) -> bytes:
    """The path as bytes, from the root; links and `..` are left to the file system, S3 addresses as they are."""
    if not path:
        raise FsxwarmError(Kind.NO_SUCH_PATH, "an empty PATH names nothing", hint="check for an unset variable")
    name = os.fsencode(path)
    return name if name.startswith(b"/") or is_uri(path) else here().rstrip(b"/") + b"/" + name


def read(parse: Callable[[str], T], text: str, option: str) -> T:
    """Parse an option's text; a ValueError becomes a usage error that names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, f"{option}: {error}") from None


def whole(least: int, most: int) -> Callable[[str], int]:
    """Make a parser of whole numbers from `least` to `most`. What it raises is the command line's own error."""

    def number(given: str) -> int:
        text = str(given)  # a default comes as the number that it is
        if not (text.isascii() and text.isdigit() and len(text) < _DIGITS and least <= int(text) <= most):
            raise typer.BadParameter(f"'{safe(text)}' is no whole number from {least:,} to {most:,}")
        return int(text)

    return number


def some_time(text: str | None, option: str) -> float | None:
    """An option's duration, in seconds, that is more than none at all. FsxwarmError USAGE."""
    if text is None:
        return None
    seconds = read(parse_duration, text, option)
    if seconds <= 0:
        raise FsxwarmError(Kind.USAGE, f"{option} leaves no time at all", hint="write 90s, 15m or 2h")
    return seconds


def here() -> bytes:
    """The current folder. FsxwarmError NO_SUCH_PATH if it is gone."""
    try:
        return bytes(Path.cwd())
    except FileNotFoundError:
        raise FsxwarmError(
            Kind.NO_SUCH_PATH,
            "the current folder has been deleted",
            hint="change to another one, or use absolute paths",
        ) from None
