"""`fsxwarm report`: the reports that preloads wrote."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from fsxwarm import __version__
from fsxwarm.cli.merge_view import merged_document, show_merged
from fsxwarm.cli.options import Json
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.cli.wanted import not_whole
from fsxwarm.engine.merge import Merged, ShardReport, read_report, write_merged
from fsxwarm.errors import Exit, FsxwarmError, worst
from fsxwarm.model.shard import is_named_after

report = typer.Typer(help="Work with the reports that `preload --report` writes.", no_args_is_help=True)


@report.callback()
def _root() -> None:
    """Make it a command with sub-commands, though there is only one."""


@report.command()
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="The shards' reports; or the name that was given to --report, for all that were written under it.",
        ),
    ],
    *,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="FILE",
            help="Also write one report of all, for `preload --retry-failed`.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> Exit:
    """Make one table and one exit status of the reports of all shards of a `preload --shard`.

    Shards whose report is missing or unfinished are named, with the command that runs one again: what is resident
    already is skipped then. Exits with the gravest status of all shards, and with 3 if one is missing or unfinished.
    """
    try:
        merged = Merged(asyncio.run(_read(files)))
        problem = None if into is None else asyncio.run(write_merged(merged, into, __version__))
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    for source in merged.superseded:
        complain(f"{source} is left out: there is a later report of its shard")
    for one in merged.finished:
        if one.unlisted:
            complain(not_whole(one.source, one.unlisted))
    if not merged.alike:
        complain("the shards were not all run with the same arguments")
    if json:
        emit_json(merged_document(merged))
    else:
        show_merged(merged, into if problem is None else None)
    if problem is not None:
        complain(problem)
        return worst(merged.exit, Exit.UNFORESEEN)
    return merged.exit


async def _read(files: list[Path]) -> list[ShardReport]:
    return [await read_report(source) for file in files for source in _sources(file)]


def _sources(file: Path) -> list[Path]:
    """The file; or, where there is none, the reports that shards wrote under that name."""
    if file.exists() or not file.parent.is_dir():
        return [file]
    return sorted(one for one in file.parent.iterdir() if is_named_after(one.name, file.name)) or [file]
