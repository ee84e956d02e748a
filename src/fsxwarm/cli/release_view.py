"""How `fsxwarm release` looks, as text and as JSON."""

from __future__ import annotations

from rich.console import Console

from fsxwarm.cli.output import console, name_some
from fsxwarm.cli.schema import ReleaseDocument, issues, json_path, tally, unusable
from fsxwarm.cli.tables import add_tallies, plain_table, show_leftovers
from fsxwarm.client.missing import LEFT_ALONE
from fsxwarm.engine.make_room import Room
from fsxwarm.engine.release import Released
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit
from fsxwarm.model.release import Reason
from fsxwarm.model.units import format_count, format_size


def show(released: Released, selection: Selection, room: Room | None) -> None:
    """Print what was released and what was not, and why."""
    out = console()
    table = plain_table("", ["files", "size"])
    first = "would be released" if released.dry_run else "released"
    rows = [
        (first, released.released),
        ("released before, or empty", released.already),
        ("used too recently", released.recent),
    ]
    add_tallies(table, [row for row in rows if row[1].files or row[0] == first])
    out.print(table)
    if released.left:
        out.print()
        left = plain_table("left alone", ["files", "size"])
        add_tallies(
            left, [(LEFT_ALONE[reason], released.left[reason].tally) for reason in Reason if reason in released.left]
        )
        out.print(left)
        out.print()
        for reason in Reason:
            if reason in released.left:
                some = released.left[reason]
                out.print(f"{reason.value.replace('_', ' ')}: {name_some(some.first, some.tally.files)}", style="dim")
    elif released.vanished or room is not None:
        out.print()
    if released.vanished:
        out.print(f"{format_count(released.vanished, 'path')} vanished meanwhile")
    if room is not None:
        _show_room(out, room, dry_run=released.dry_run)
    show_leftovers(out, selection, released.troubles)


def _show_room(out: Console, room: Room, *, dry_run: bool) -> None:
    free = room.before + room.gained if dry_run else room.after
    share = f"{free / room.total:.0%}" if room.total else "0%"
    verb = "would be free" if dry_run else "free now"
    line = f"{format_size(free)} of {format_size(room.total)} ({share}) {verb}, {format_size(room.before)} before"
    if not room.reached:
        short = room.wanted - room.before - room.gained
        out.print(f"{line}: {format_size(short)} short of {format_size(room.wanted)}", style="yellow")
    elif not dry_run and room.after < room.wanted:
        out.print(f"{line}; the servers give back the rest of what was released in a while")
    else:
        out.print(line)


def release_document(released: Released, selection: Selection, room: Room | None, code: Exit) -> ReleaseDocument:
    """Write the result as the object that `--json` prints."""
    document: ReleaseDocument = {
        "schema": "fsxwarm.release/1",
        "exit": int(code),
        "dry_run": released.dry_run,
        "released": tally(released.released),
        "already": tally(released.already),
        "recent": tally(released.recent),
        "left": {
            reason.value: {**tally(left.tally), "first": [json_path(path) for path in left.first]}
            for reason, left in released.left.items()
        },
        "vanished": released.vanished,
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(released.troubles),
    }
    if room is not None:
        document["room"] = {
            "total": room.total,
            "wanted": room.wanted,
            "free_before": room.before,
            "free_after": room.after,
            "gained": room.gained,
            "reached": room.reached,
        }
    return document
