"""Parts of the tables that commands print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fsxwarm.cli.output import name_some, safe, short_path, shortened
from fsxwarm.engine.looks import Troubles
from fsxwarm.engine.selection import Unusable
from fsxwarm.model.entry import Trouble
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import format_count, format_size

_BAR: Final = 20
_NAMED: Final = 5
_FULL, _EMPTY = "█", "░"
_PLAIN_FULL, _PLAIN_EMPTY = "#", "."


class Unfit(Protocol):
    """List entries of no use, as a selection knows them: those that do not exist, and those not on Lustre."""

    missing: Unusable
    outside: Unusable


def bar(share: float, style: str, *, width: int = _BAR) -> Text:
    """Draw a share between 0 and 1; only nothing looks empty and only everything looks full."""
    cells = round(share * width)
    if 0 < share < 1:
        cells = min(max(cells, 1), width - 1)
    full, empty = (_FULL, _EMPTY) if draws_blocks() else (_PLAIN_FULL, _PLAIN_EMPTY)
    return Text.assemble((full * cells, style), (empty * (width - cells), "dim"))


def percent(share: float) -> str:
    """Write a share between 0 and 1 so that only everything is 100 % and only nothing 0 %."""
    if 0 < share < 1:
        return f"{min(max(share * 100, 0.1), 99.9):.1f} %"
    return f"{share * 100:.0f} %"


def plain_table(first: str, others: Sequence[str], *, header: bool = True) -> Table:
    """A table without a frame: names to the left, numbers to the right."""
    table = Table(
        box=box.SIMPLE_HEAD if header else None,
        show_header=header,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )
    table.add_column(first, overflow="fold")
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def add_tallies(table: Table, rows: Iterable[tuple[str, Tally]]) -> None:
    """Add a row for each tally: what, files, bytes."""
    for what, tally in rows:
        table.add_row(what, f"{tally.files:,}", format_size(tally.bytes))


def show_leftovers(console: Console, selection: Unfit, troubles: Troubles) -> None:
    """Say which list entries were of no use, and what could not be read."""
    for unusable, one, many in (
        (selection.missing, "list entry does not exist", "list entries do not exist"),
        (selection.outside, "list entry is not on FSx for Lustre", "list entries are not on FSx for Lustre"),
    ):
        if unusable.count:
            what = one if unusable.count == 1 else many
            names = name_some(unusable.first, unusable.count)
            console.print(f"{unusable.count:,} {what}: {names}", style="yellow")
    if troubles.count:
        console.print(f"{format_count(troubles.count, 'path')} could not be read:", style="yellow")
        show_troubles(console, troubles)


def show_troubles(console: Console, troubles: Troubles) -> None:
    """Name the first of some troubles, a line each."""
    for trouble in troubles.first[:_NAMED]:
        console.print(f"  {short_path(trouble.path)}: {why(trouble)}")
    if troubles.count > _NAMED:
        console.print(f"  and {troubles.count - _NAMED:,} more")


def why(trouble: Trouble) -> str:
    """The reason of a trouble in words."""
    return shortened(safe(trouble.text)) if trouble.text else os.strerror(trouble.errno)


def draws_blocks() -> bool:
    """Whether standard output can show more than ASCII."""
    return (sys.stdout.encoding or "").lower().startswith("utf")
