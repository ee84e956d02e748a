"""How `fsxwarm status` looks, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from fsxwarm.cli.output import console, show_path
from fsxwarm.cli.schema import Folder, StatusDocument, issues, json_path, tally, unusable
from fsxwarm.cli.tables import Unfit, add_tallies, bar, percent, plain_table, show_leftovers
from fsxwarm.engine.status import FlagTallies, Status
from fsxwarm.errors import Exit
from fsxwarm.model.tally import Coverage
from fsxwarm.model.units import format_count, format_size


def exit_of(status: Status, selection: Unfit, *, check: bool) -> Exit:
    """The exit status: whether all could be looked at and, with `check`, is resident."""
    known = not (status.troubles.count or selection.missing.count or selection.outside.count)
    return Exit.DONE if known and (status.all_resident or not check) else Exit.INCOMPLETE


def show(status: Status, selection: Unfit, more: Sequence[str] = ()) -> None:
    """Print what was found for people, and some lines `more`."""
    out = console()
    table = plain_table("", ["files", "size", "", ""])
    total = status.total
    rows = [("resident", status.all.resident, "green"), ("released", status.all.released, "blue")]
    if status.unknown.files:
        rows.append(("unknown", status.unknown, "yellow"))
    for what, some, style in rows:
        share = some.bytes / total.bytes if total.bytes else 0.0
        table.add_row(what, f"{some.files:,}", format_size(some.bytes), bar(share, style), percent(share))
    table.add_row(Text("total", "bold"), f"{total.files:,}", format_size(total.bytes))
    out.print(table)
    if status.flags is not None:
        out.print()
        _show_flags(out, status.flags)
    if status.folders:
        out.print()
        _show_folders(out, status.folders)
    if more or status.vanished or status.troubles.count or selection.missing.count or selection.outside.count:
        out.print()
    if status.vanished:
        out.print(f"{format_count(status.vanished, 'path')} vanished meanwhile")
    show_leftovers(out, selection, status.troubles)
    for line in more:
        out.print(line, style="yellow")


def _show_flags(out: Console, flags: FlagTallies) -> None:
    table = plain_table("of these", ["files", "size"])
    rows = [
        ("dirty: changed since the copy in S3 was made", flags.dirty),
        ("never archived: not in S3", flags.never_archived),
        ("pinned: will not be released", flags.pinned),
        ("lost: the copy in S3 is gone", flags.lost),
        ("restoring", flags.restoring),
    ]
    if flags.unread.files:
        rows.append(("flags not readable", flags.unread))
    add_tallies(table, rows)
    out.print(table)


def _show_folders(out: Console, folders: dict[bytes, Coverage]) -> None:
    table = plain_table("folder", ["files", "size", "released", "coverage", ""])
    for folder, coverage in sorted(folders.items()):
        both = coverage.resident + coverage.released
        table.add_row(
            show_path(folder),
            f"{both.files:,}",
            format_size(both.bytes),
            format_size(coverage.released.bytes),
            bar(coverage.share, "green", width=10),
            percent(coverage.share),
        )
    out.print(table)


def status_document(status: Status, selection: Unfit, code: Exit, unlinked: Sequence[bytes] = ()) -> StatusDocument:
    """Write what was found as the object that `--json` prints."""
    document: StatusDocument = {
        "schema": "fsxwarm.status/1",
        "exit": int(code),
        "resident": tally(status.all.resident),
        "released": tally(status.all.released),
        "unknown": tally(status.unknown),
        "coverage": status.all.share,
        "vanished": status.vanished,
        "skipped": status.skipped,
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(status.troubles),
    }
    if status.flags is not None:
        flags = status.flags
        document["flags"] = {
            "dirty": tally(flags.dirty),
            "never_archived": tally(flags.never_archived),
            "pinned": tally(flags.pinned),
            "lost": tally(flags.lost),
            "restoring": tally(flags.restoring),
            "unread": tally(flags.unread),
        }
    if unlinked:
        document["unlinked"] = [json_path(path) for path in unlinked]
    if status.depth is not None:
        document["folders"] = [_folder(path, coverage) for path, coverage in sorted(status.folders.items())]
    return document


def _folder(path: bytes, coverage: Coverage) -> Folder:
    return {
        **json_path(path),
        "resident": tally(coverage.resident),
        "released": tally(coverage.released),
        "coverage": coverage.share,
    }
