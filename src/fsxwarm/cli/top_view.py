"""How the whole looks at a glance in a terminal: as much as fits its lines, the most urgent first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fsxwarm.cli.output import safe
from fsxwarm.cli.tables import bar, draws_blocks, percent
from fsxwarm.client import wire
from fsxwarm.client.glance import coverage, flight, hindrance, points, rate, settled, share, user, what
from fsxwarm.client.missing import misses, shortfall
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_STEPS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_STEPS: Final = "_.-=#"
_SPACES: Final = 4
"""File systems, and configured paths, that are shown."""
_HALF: Final = 0.5
_MISSES: Final = 6
"""Lines on what is not resident."""
_WIDE: Final = 100
_WHAT_AT_LEAST: Final = 24
_GIVEN_UP: Final = (1, 5, 6, 3, 2)
"""Columns of the jobs, in the order in which a narrow terminal does without them: owner, files, rate, bar, phase."""
_NUMBERS: Final = {4, 5, 6, 7}
_PATH_AT_LEAST: Final = 20


def view(overview: wire.Overview, *, width: int, height: int | None, note: str = "", keys: bool = False) -> Group:
    """All of it for a terminal of `width` columns and `height` lines (None: as many as it takes).

    `note` is said on top, in red; `keys` says how to leave.
    """
    head = [*_head(overview, width, note, keys=keys), *_spaces(overview["rooms"]), *_stocks(overview)]
    failures = list(_failures(overview["jobs"], width))
    left = None if height is None else max(0, height - len(head) - (len(failures[:_MISSES]) + 2 if failures else 0))
    jobs = overview["jobs"] if left is None else overview["jobs"][: max(1, left * 3 // 5 - 2)]
    parts: list[Text | Table] = [*head, Text(), _jobs(jobs, len(overview["jobs"]) - len(jobs), width)]
    if failures:
        parts += [Text("not resident, and what to do", style="bold"), *failures[:_MISSES], Text()]
    room = None if left is None else left - len(jobs) - 4 - (len(overview["jobs"]) > len(jobs))
    if overview["slowest"] and (room is None or room > 0):
        parts.append(Text("longest at FSx", style="bold"))
        parts += [_slow(one, width) for one in overview["slowest"][:room]]
    return Group(*parts)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _head(overview: wire.Overview, width: int, note: str, *, keys: bool) -> Iterator[Text]:
    health = overview["health"]
    jobs = ", ".join(f"{count:,} {phase}" for phase, count in sorted(health["jobs"].items()) if count) or "none yet"
    up = format_duration(max(0.0, overview["at"] - health["started"]))
    clock = time.strftime("%H:%M:%S", time.localtime(overview["at"]))
    end = "   (q leaves)" if keys else ""
    yield _line(f"fsxwarm {health['version']}  {clock}, up {up}; jobs: {jobs}{end}", "bold")
    if note:
        yield _line(safe(note), "bold red")
    for problem in health.get("problems", []):
        yield _line(safe(problem), "bold red")
    if health["stalled"] and "problems" not in health:
        yield _line("files are in flight and none becomes resident", "bold red")
    files, size = rate(overview)
    window, in_flight, stalled, watched = flight(health)
    matter = hindrance(in_flight, stalled)
    known = in_flight and files and overview["limit"] != "unknown"
    limit = f"; the limit is {overview['limit']}" if known else ""
    yield _line(
        f"rate    {matter or f'{files:,.0f} files/s, {format_rate(size)}{limit}'}", "bold red" if matter else ""
    )
    stuck = f", {stalled:,} of them stalled" if stalled else ""
    others = f", {watched:,} more by others" if watched else ""
    yield _line(f"window  {in_flight:,} in flight{stuck}, up to {window:,}{others}")
    past = [point.bytes for point in points(overview["past"])]
    if any(past):
        drawn = _sparkline(past, min(width - 24, 60))
        yield _line(f"hour    {drawn} up to {format_rate(max(past))}")


def _sparkline(values: Sequence[float], width: int) -> str:
    """A curve in one line, the newest to the right; each cell shows the highest of its stretch."""
    steps = _STEPS if draws_blocks() else _PLAIN_STEPS
    cells = max(1, min(width, len(values)))
    top = max(values)
    heights = [
        max(
            values[
                len(values) * cell // cells : max(len(values) * cell // cells + 1, len(values) * (cell + 1) // cells)
            ]
        )
        for cell in range(cells)
    ]
    return "".join(steps[min(len(steps) - 1, round(height / top * (len(steps) - 1)))] for height in heights)


def _spaces(rooms: Sequence[wire.Room]) -> Iterator[Text]:
    for room in rooms[:_SPACES]:
        share_free = room["free"] / room["total"] if room["total"] else 0.0
        low = bool(room["low"]) and room["free"] < room["low"]
        text = Text("space   ", no_wrap=True, overflow="ellipsis")
        text.append_text(bar(1 - share_free, "red" if low else "blue", width=10))
        text.append(f" {percent(share_free)} free: {format_size(room['free'])} of {format_size(room['total'])}")
        text.append(f" on {safe(room['path'])}")
        if room["low"]:
            dry = ", dry run" if room["dry_run"] else ""
            text.append(f"; room is made below {format_size(room['low'])}{dry}", "red" if low else "")
        yield text


def _stocks(overview: wire.Overview) -> Iterator[Text]:
    for stock in overview["stocks"][:_SPACES]:
        part, released = coverage(stock), stock["released"]
        text = Text("warm    ", no_wrap=True, overflow="ellipsis")
        text.append_text(bar(part, "red" if part > _HALF else "blue", width=10))
        age = format_duration(max(0.0, overview["at"] - stock["at"]))
        text.append(f" {percent(part)} of {safe(stock['path'])}, {format_size(released['bytes'])} released; {age} ago")
        yield text


def _jobs(jobs: Sequence[wire.Job], more: int, width: int) -> Table:
    """A table that gives up columns as the terminal narrows; what a job is about gets what is left."""
    if not jobs:
        return _nothing()
    titles = ["job", "owner", "phase", "", "done", "files", "rate", "left", "what"]
    rows = [_row(job, wide=width >= _WIDE) for job in jobs]
    rows += [[*[""] * (len(titles) - 1), f"and {format_count(more, 'job')} more"]] if more > 0 else []
    widths = [max(map(cell_len, map(str, cells))) for cells in zip(titles, *rows, strict=True)]
    shown = [number for number, cells in enumerate(widths) if cells]
    for number in _GIVEN_UP:
        if sum(widths[one] + 1 for one in shown[:-1]) + _WHAT_AT_LEAST > width and number in shown:
            shown.remove(number)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for number in shown[:-1]:
        right = "right" if number in _NUMBERS else "left"
        table.add_column(titles[number], justify=right, no_wrap=True, width=widths[number])  # type: ignore[arg-type]  # one of two words
    room = max(1, width - sum(widths[number] + 1 for number in shown[:-1]))
    table.add_column("what", no_wrap=True, overflow="ellipsis", max_width=room)
    for row in rows:
        table.add_row(*[row[number] for number in shown])
    return table


def _nothing() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("no jobs: `fsxwarm preload PATH` makes one")
    return table


def _row(job: wire.Job, *, wide: bool) -> list[str | Text]:
    done, found, part = settled(job), job["counters"]["found"], share(job)
    more = "" if job["counters"]["scanned"] or job["final"] else "+"
    bad = shortfall(job)
    style = "red" if bad or job["exit"] or job["phase"] == "failed" else "green" if job["final"] else "blue"
    return [
        job["id"],
        user(job["owner"]),
        job["phase"],
        "" if part is None else bar(part, style, width=16 if wide else 8),
        "" if part is None else percent(part),
        f"{done['files']:,}/{found['files']:,}{more}" if wide else f"{found['files']:,}{more}",
        format_rate(job["bytes_per_second"]) if job["bytes_per_second"] and not job["final"] else "",
        "" if job["eta"] is None or job["final"] else format_duration(job["eta"]),
        safe(what(job)) + (f" ({bad})" if bad else ""),
    ]


def _failures(jobs: Sequence[wire.Job], width: int) -> Iterator[Text]:
    """A reason a line, with what to do beside it, or below it where there is no room."""
    for miss in misses(jobs):
        text = _line(f"{miss.files:>9,} ", "red")
        text.append(miss.what, "default")
        todo = f"; {miss.todo}" if miss.todo else ""
        if cell_len(str(text) + todo) <= width or not todo:
            text.append(todo, "default")
            yield text
        else:
            yield text
            yield _line(f"{'':10}{miss.todo}", "dim")


def _slow(slow: wire.Slow, width: int) -> Text:
    moved = "" if slow["moved"] is None else f", {format_size(slow['moved'])} moved"
    again = f", asked {slow['attempts']} times" if slow["attempts"] > 1 else ""
    tail = f"  {format_size(slow['size'])}{moved}{again}"
    path = safe(slow["path"])
    room = max(_PATH_AT_LEAST, width - len(tail) - 11)
    shown = path if len(path) <= room else f"…{path[len(path) - room + 1 :]}" if draws_blocks() else path[-room:]
    return _line(f"{format_duration(slow['seconds']):>9}  {shown}{tail}")
