"""A line on the terminal that tells how far a scan is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from fsxwarm.cli.output import complain, redraw
from fsxwarm.cli.signals import leave_gone_terminals

_EVERY: Final = 0.3


@asynccontextmanager
async def ticking(line: Callable[[], str], *, in_log: float | None = None) -> AsyncIterator[None]:
    """While the body runs, show `line()` on standard error: one that changes a few times a second on a terminal.

    Elsewhere a new one every `in_log` seconds, or none.
    """
    if sys.stderr.isatty():
        telling = _tick(line)
    elif in_log is not None:
        telling = _log(line, in_log)
    else:
        yield
        return
    task = asyncio.create_task(telling)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        leave_gone_terminals()


async def _tick(line: Callable[[], str]) -> None:
    try:
        while True:
            await asyncio.sleep(_EVERY)
            redraw(line())
    finally:
        redraw()


async def _log(line: Callable[[], str], every: float) -> None:
    while True:
        await asyncio.sleep(every)
        complain(line())
