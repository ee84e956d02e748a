"""The option `--shard`: which part of the files is this process's, and how the command line of another part looks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from fsxwarm.cli.options import WHICH, read
from fsxwarm.model.shard import Shard, parse_shard

ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only one of N equal parts of the files, such as 3/16: so N machines share them out. `auto` finds I and N"
        " in a task of srun or of a job array, auto/N finds I in an indexed job of Kubernetes. The windows of a"
        " preload are divided by N, and the name of its report gets the shard.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]


_DEVICES: Final = frozenset({"/dev", "/dev/fd", "/proc/self/fd"})


def this_shard(text: str | None) -> Shard | None:
    """Read the option; FsxwarmError USAGE says what is wrong with it."""
    return None if text is None else read(lambda text: parse_shard(text, os.environ), text, "--shard")


def named_for(report: Path | None, shard: Shard | None) -> Path | None:
    """Where a shard's report goes; not beside what is no file, which the report's writer refuses by its own name."""
    if report is None or shard is None or report.name in {"", "..", "-"} or str(report.parent) in _DEVICES:
        return report
    return report.with_name(shard.name(report.name))


def with_shard(arguments: Sequence[str], shard: Shard | None) -> list[str]:
    """A command's arguments as they are for this shard, whatever `--shard` they had."""
    if shard is None:
        return list(arguments)
    changed: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*changed, argument, *rest]
        if argument == "--shard":
            changed += [argument, str(shard)]
            next(rest, None)
        elif argument.startswith("--shard="):
            changed.append(f"--shard={shard}")
        else:
            changed.append(argument)
    return changed
