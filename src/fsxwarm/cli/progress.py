"""Progress of a preload on standard error: bars, lines, or JSON. A ticker pulls the counters; nothing is pushed."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fsxwarm.cli.output import console
from fsxwarm.cli.saying import Saying
from fsxwarm.cli.schema import ProgressEvent, tally
from fsxwarm.cli.signals import leave_gone_terminals
from fsxwarm.cli.snapshot import Snapshot, snapshot
from fsxwarm.cli.tables import percent
from fsxwarm.client.glance import hindrance
from fsxwarm.engine.account import Account
from fsxwarm.engine.warm import Warmer
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_LANES_SHOWN: Final = 4


class Mode(StrEnum):
    """Ways of showing progress."""

    AUTO = "auto"
    BAR = "bar"
    LINES = "lines"
    JSON = "json"
    NONE = "none"


class _Screen(Protocol):
    every: float

    def show(self, now: Snapshot) -> None: ...

    def say(self, line: str) -> None: ...


@asynccontextmanager
async def showing(mode: Mode, warmer: Warmer, account: Account, saying: Saying) -> AsyncIterator[None]:
    """Show how far a warming is while the body runs. Bars need a terminal; without one they are lines."""
    out = console(stderr=True)
    if mode is Mode.NONE:
        yield
        return
    if mode is Mode.JSON:
        screen: _Screen = _Json()
    elif mode is not Mode.LINES and out.is_terminal and not out.is_dumb_terminal:
        with Live(
            console=out, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as live:
            async with _ticking(_Bars(live), warmer, account, saying):
                yield
        return
    else:
        screen = _Lines(out)
    async with _ticking(screen, warmer, account, saying):
        yield


@asynccontextmanager
async def _ticking(screen: _Screen, warmer: Warmer, account: Account, saying: Saying) -> AsyncIterator[None]:
    task = asyncio.create_task(_tick(screen, warmer, account, saying))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        leave_gone_terminals()
        for line in saying.rest():
            screen.say(line)


async def _tick(screen: _Screen, warmer: Warmer, account: Account, saying: Saying) -> None:
    now = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(screen.every)
        seen = snapshot(warmer, account, now())
        for line in saying.due(seen, now()):
            screen.say(line)
        screen.show(seen)


def choose(mode: Mode, *, json: bool) -> Mode:
    """Progress for people is left out with --json unless it was asked for."""
    return Mode.NONE if mode is Mode.AUTO and json else mode


# ---- screens -------------------------------------------------------------------------------------------------------


class _Bars:
    """Bars that are drawn again four times a second, with messages above them."""

    every = 0.25

    def __init__(self, live: Live) -> None:
        self._live = live

    def say(self, line: str) -> None:
        self._live.console.print(line)

    def show(self, now: Snapshot) -> None:
        self._live.update(Group(_bars(now), *_details(now)), refresh=True)


class _Lines:
    """A line every five seconds, for logs."""

    every = 1.0
    _between: Final = 5

    def __init__(self, out: Console) -> None:
        self._out = out
        self._ticks = 0

    def say(self, line: str) -> None:
        self._out.print(line)

    def show(self, now: Snapshot) -> None:
        self._ticks += 1
        if self._ticks % self._between == 0:
            self._out.print(line_of(now))


class _Json:
    """One JSON object a line, once a second."""

    every = 1.0

    def say(self, line: str) -> None:
        _print({"event": "message", "time": time.time(), "text": line})

    def show(self, now: Snapshot) -> None:
        event: ProgressEvent = {
            "event": "progress",
            "time": time.time(),
            "scanning": now.scanning,
            "found": tally(now.found),
            "settled": tally(now.done),
            "resident": tally(now.resident),
            "restored": tally(now.restored),
            "failed": now.failed,
            "blocked": now.blocked,
            "files_per_second": now.files_rate,
            "bytes_per_second": now.bytes_rate,
            "eta_seconds": now.eta,
            "limit": now.limit,
            "in_flight": now.in_flight,
            "window": now.window,
            "watched": now.watched,
            "retries": now.retries,
            "stalled": now.stalled,
            "thawing": now.thawing,
        }
        _print(event)


def _print(event: object) -> None:
    print(json.dumps(event), file=sys.stderr, flush=True)  # noqa: T201 - printing is what this is for


# ---- words ---------------------------------------------------------------------------------------------------------


def line_of(now: Snapshot) -> str:
    """One line for a log."""
    if now.scanning and not now.asked:
        return f"scanning: {format_count(now.found.files, 'file')}, {format_size(now.found.bytes)} found"
    parts = [
        f"{percent(now.share)} of {format_size(now.found.bytes)}, {_of(now)} files",
        _pace(now),
        _flight(now),
        *_trouble(now),
    ]
    if now.scanning:
        parts.append("still scanning")
    return "; ".join(part for part in parts if part)


def _bars(now: Snapshot) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    files_share = now.done.files / now.found.files if now.found.files else 0.0
    more = "+" if now.scanning else ""
    sizes = f"{format_size(now.done.bytes)} of {format_size(now.found.bytes)}{more}"
    rates = (format_rate(now.bytes_rate), f"{now.files_rate:,.0f} files/s") if now.asked else ("", "")
    table.add_row("bytes", _bar(now.share), percent(now.share), sizes, rates[0])
    table.add_row("files", _bar(files_share), percent(files_share), _of(now) + more, rates[1])
    return table


def _bar(share: float) -> ProgressBar:
    return ProgressBar(total=1.0, completed=share, complete_style="blue", finished_style="green")


def _details(now: Snapshot) -> list[Text]:
    lines = []
    scan = f"scan   {'for' if now.scanning else 'done in'} {format_duration(now.scan_seconds)}: "
    scan += f"{format_count(now.found.files, 'file')}, {now.already:,} of them resident already"
    lines.append(scan)
    if now.asked:
        lines.append(f"time   {format_duration(now.restore_seconds)}, {_hindrance(now) or _left(now) + _limit(now)}")
        lines.append(f"FSx    {_flight(now)}")
    if len(now.lanes) > 1:
        lanes = ", ".join(f"MDT{lane.mdt} {lane.in_flight}/{lane.window}" for lane in now.lanes[:_LANES_SHOWN])
        more = len(now.lanes) - _LANES_SHOWN
        lines.append(f"       {lanes}" + (f" and {more} more" if more > 0 else ""))
    if trouble := _trouble(now):
        lines.append(f"       {', '.join(trouble)}")
    return [Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in lines]


def _of(now: Snapshot) -> str:
    return f"{now.done.files:,} of {now.found.files:,}"


def _flight(now: Snapshot) -> str:
    if not now.asked:
        return ""
    text = f"{now.in_flight:,} in flight, window {now.window:,}"
    return f"{text}, {now.watched:,} more by others" if now.watched else text


def _left(now: Snapshot) -> str:
    if now.eta is None:
        return "time left unknown"
    return "nearly done" if now.eta < 1 else f"{format_duration(now.eta)} left"


def _limit(now: Snapshot) -> str:
    return "" if now.limit == "unknown" or not now.files_rate else f"; the limit is {now.limit}"


def _hindrance(now: Snapshot) -> str:
    stuck = hindrance(now.in_flight, now.stalled)
    return stuck or ("files are in flight and none becomes resident" if now.standstill else "")


def _pace(now: Snapshot) -> str:
    if not now.asked:
        return ""
    rates = f"{now.files_rate:,.0f} files/s, {format_rate(now.bytes_rate)}, {_left(now)}{_limit(now)}"
    return _hindrance(now) or rates


def _trouble(now: Snapshot) -> list[str]:
    counts = {
        "being thawed": now.thawing,
        "retry" if now.retries == 1 else "retries": now.retries,
        "stalled": now.stalled,
        "failed": now.failed,
        "blocked": now.blocked,
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]
