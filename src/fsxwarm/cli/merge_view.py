"""How `fsxwarm report merge` looks, as text and as JSON."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from rich.table import Table

from fsxwarm.cli.output import console, name_errors, name_some, safe
from fsxwarm.cli.schema import Cold, FilePath, Tally, errnos, json_path, tally
from fsxwarm.cli.shards import with_shard
from fsxwarm.cli.tables import add_tallies, plain_table
from fsxwarm.engine.advice import advice
from fsxwarm.engine.merge import Merged, ShardReport
from fsxwarm.errors import Exit
from fsxwarm.model.outcome import Meaning, Outcome, Reason
from fsxwarm.model.shard import Shard
from fsxwarm.model.units import format_count, format_duration, format_size

_ROWS: Final = 40
"""Shards up to which each has a row; of more, those that are not done."""
_NAMED: Final = 20
_ALWAYS: Final = (Outcome.RESIDENT, Outcome.RESTORED)
_UNREAD: Final = {
    "unreadable": ("path could not be read", "paths could not be read"),
    "missing": ("list entry does not exist", "list entries do not exist"),
    "outside": ("list entry is not on FSx for Lustre", "list entries are not on FSx for Lustre"),
}


class ShardDocument(TypedDict):
    """One shard's report. `exit` is null while it is unfinished; `error` is why the shard gave up."""

    shard: str
    report: FilePath
    started: float
    ended: float | None
    exit: int | None
    error: NotRequired[str]
    found: Tally
    outcomes: dict[str, Tally]


class MergedDocument(TypedDict):
    """`fsxwarm.merged/1`. `again` has the command for each shard that did not come to its end.

    `unlisted` counts files that are not resident and have no line in any report.
    """

    schema: str
    exit: int
    count: int
    shards: list[ShardDocument]
    missing: list[str]
    unfinished: list[str]
    again: dict[str, str]
    found: Tally
    outcomes: dict[str, Tally]
    cold: list[Cold]
    unread: dict[str, list[FilePath]]
    unlisted: int


def show_merged(merged: Merged, into: Path | None) -> None:
    """Print it for people; `into` is where one report of all was written."""
    out = console()
    out.print(_shards(merged))
    out.print()
    total = plain_table("", ["files", "size"])
    add_tallies(total, [(_title(one), some) for one, some in merged.outcomes.items() if some.files or one in _ALWAYS])
    out.print(total)
    out.print()
    for (outcome, reason), left in merged.left.items():
        meaning = _meaning(merged, reason)
        why = f": {meaning.what}" if meaning else ""
        out.print(f"{format_count(left.tally.files, 'file')} {outcome.value}{safe(why)}", style="yellow")
        out.print(f"  {name_some(left.first, left.tally.files)}")
        if left.errnos:
            out.print(f"  {name_errors(left.errnos)}")
        if meaning:
            out.print(f"  → {meaning.todo}")
    for what, paths in merged.unread.items():
        if paths:
            out.print(f"{len(paths):,} {_UNREAD[what][len(paths) > 1]}: {name_some(paths, len(paths))}", style="yellow")
    for one in merged.finished:
        if one.error:
            out.print(f"shard {one.shard} gave up: {safe(one.error)}", style="yellow")
    _show_holes(merged)
    if any(outcome is Outcome.FAILED for outcome, _ in merged.left):
        if into is None:
            out.print("to have one report of all, and try again what failed: add --into FILE")
        else:
            out.print(f"to try again what failed: fsxwarm preload --retry-failed {safe(shlex.quote(str(into)))}")


def _show_holes(merged: Merged) -> None:
    out = console()
    for shards, what in ((merged.unfinished, "unfinished"), (merged.missing, "missing")):
        if shards:
            some = ", ".join(map(str, shards[:_NAMED]))
            more = f" and {len(shards) - _NAMED:,} more" if len(shards) > _NAMED else ""
            out.print(f"{what}: {format_count(len(shards), 'shard')}: {some}{more}", style="yellow")
    if again := merged.to_run_again:
        out.print(f"to run one again: {safe(_again(merged, again[0]))}")


def _shards(merged: Merged) -> Table:
    table = plain_table("shard", ["files", "size", "restored", "not resident", "started", "took", ""])
    for one in merged.reports:
        if merged.count <= _ROWS or one.exit is not Exit.DONE:
            table.add_row(*_row(one))
    if merged.count > _ROWS:
        done = sum(one.exit is Exit.DONE for one in merged.reports)
        table.add_row(f"{done:,} shards done")
    return table


def _row(one: ShardReport) -> list[str]:
    began = time.strftime("%m-%d %H:%M:%S", time.localtime(one.started))
    if one.exit is None:
        return [str(one.shard), "", "", "", "", began, "", "unfinished"]
    restored = one.outcomes.get(Outcome.RESTORED)
    cold = sum(left.tally.files for left in one.left.values()) + one.unlisted
    return [
        str(one.shard),
        f"{one.found.files:,}",
        format_size(one.found.bytes),
        f"{restored.files if restored else 0:,}",
        f"{cold:,}",
        began,
        "" if one.ended is None else format_duration(one.ended - one.started),
        "done" if one.exit is Exit.DONE else f"exit {int(one.exit)}",
    ]


def _title(outcome: Outcome) -> str:
    return "resident already" if outcome is Outcome.RESIDENT else outcome.value


def _again(merged: Merged, shard: Shard) -> str:
    return shlex.join(["fsxwarm", *with_shard(merged.reports[0].arguments, shard)])


def merged_document(merged: Merged) -> MergedDocument:
    """Write it as the object that `--json` prints."""
    return {
        "schema": "fsxwarm.merged/1",
        "exit": int(merged.exit),
        "count": merged.count,
        "shards": [_shard(one) for one in merged.reports],
        "missing": [str(shard) for shard in merged.missing],
        "unfinished": [str(shard) for shard in merged.unfinished],
        "again": {str(shard): _again(merged, shard) for shard in merged.to_run_again},
        "found": tally(merged.found),
        "outcomes": {outcome.value: tally(some) for outcome, some in merged.outcomes.items()},
        "cold": [
            {
                **tally(left.tally),
                "outcome": outcome.value,
                "reason": reason or None,
                "first": [json_path(path) for path in left.first],
                "errnos": errnos(left.errnos),
                "what": meaning.what if meaning else "",
                "todo": meaning.todo if meaning else "",
            }
            for (outcome, reason), left in merged.left.items()
            for meaning in [_meaning(merged, reason)]
        ],
        "unread": {what: [json_path(path) for path in paths] for what, paths in merged.unread.items()},
        "unlisted": merged.unlisted,
    }


def _meaning(merged: Merged, reason: str) -> Meaning | None:
    fit = all("--fit" in one.arguments for one in merged.reports)
    return advice(Reason(reason), fit=fit) if reason in set(Reason) else None


def _shard(one: ShardReport) -> ShardDocument:
    document: ShardDocument = {
        "shard": str(one.shard),
        "report": json_path(bytes(one.source)),
        "started": one.started,
        "ended": one.ended,
        "exit": None if one.exit is None else int(one.exit),
        "found": tally(one.found),
        "outcomes": {outcome.value: tally(some) for outcome, some in one.outcomes.items()},
    }
    if one.error:
        document["error"] = one.error
    return document
