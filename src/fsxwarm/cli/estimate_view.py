"""How `fsxwarm preload --dry-run` looks, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from fsxwarm.cli.output import console, show_path
from fsxwarm.cli.s3_view import checked_document
from fsxwarm.cli.schema import EstimateDocument, issues, json_path, tally, unusable
from fsxwarm.cli.tables import add_tallies, plain_table, show_leftovers
from fsxwarm.engine.estimate import Estimate, Need, Speed
from fsxwarm.engine.preflight import Checked
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit
from fsxwarm.model.outcome import MEANINGS
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it would go, and who says so."""

    speed: Speed
    source: Literal["given", "earlier runs"]

    def words(self) -> str:
        """The rates, for people."""
        size = format_rate(self.speed.bytes)
        if self.source == "given":
            return f"at {size}"
        return f"at what earlier runs here reached, up to {self.speed.files:,.0f} files/s and {size}"


def show(found: Estimate, selection: Selection, pace: Pace | None, more: Sequence[str]) -> None:
    """Print an estimate for people, and some lines `more` of what S3 has to do with it."""
    out = console()
    out.print(counts(found))
    out.print()
    for need in found.needs:
        if need.bytes:
            out.print(_room(need), style="" if need.fits else "yellow")
    if not found.released.files:
        out.print("nothing needs to be restored")
    elif pace is None:
        out.print("time: no rate is known yet for this file system; give one, such as --rate 1GB/s")
    else:
        out.print(f"time: about {format_duration(pace.speed.seconds(found.released))} {pace.words()}")
    for line in more:
        out.print(line)
    if found.vanished:
        out.print(f"{format_count(found.vanished, 'path')} vanished meanwhile")
    show_leftovers(out, selection, found.troubles)
    out.print("a dry run: nothing was asked for", style="dim")


def counts(found: Estimate) -> Table:
    """What a preload would come upon."""
    table = plain_table("", ["files", "size"])
    rows = [("resident", found.resident), ("released, to be restored", found.released)]
    if found.unknown.files:
        rows.append(("unknown", found.unknown))
    rows += [(f"blocked: {MEANINGS[reason].what}", some) for reason, some in found.blocked.items()]
    add_tallies(table, rows)
    return table


def progress(found: Estimate) -> str:
    """How far counting is."""
    released = found.released
    return f"{format_count(released.files, 'released file')} found, {format_size(released.bytes)}"


def _room(need: Need) -> str:
    measure = need.measure
    why = ", as its fullest OST allows" if measure.bound_by_ost else ", less the reserve"
    room = f"{format_size(need.bytes)} needed on {show_path(need.mount)}, {format_size(measure.available)} may be used"
    room += f" of {format_size(measure.space.free)} free{why}"
    return f"room: {room}" if need.fits else f"not enough room: {room}"


def estimate_document(
    found: Estimate, selection: Selection, pace: Pace | None, checked: Checked, code: Exit
) -> EstimateDocument:
    """Write an estimate as the object that `--json` prints."""
    seconds = 0.0 if not found.released.files else None if pace is None else pace.speed.seconds(found.released)
    return {
        "schema": "fsxwarm.estimate/1",
        "exit": int(code),
        "released": tally(found.released),
        "resident": tally(found.resident),
        "blocked": {reason.value: tally(some) for reason, some in found.blocked.items()},
        "unknown": tally(found.unknown),
        "vanished": found.vanished,
        "skipped": found.skipped,
        "room": [
            {
                "mount": json_path(need.mount),
                "need": need.bytes,
                "free": need.measure.space.free,
                "available": need.measure.available,
                "fits": need.fits,
            }
            for need in found.needs
        ],
        "s3": checked_document(checked),
        "seconds": seconds,
        "rate_from": None if pace is None else pace.source,
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(found.troubles),
    }
