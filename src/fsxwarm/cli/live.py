"""A line on the terminal that tells how far a scan is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_EVERY: Final = 0.3
_CLEAR: Final = "\r\x1b[K"


@asynccontextmanager
async def ticking(line: Callable[[], str]) -> AsyncIterator[None]:
    """While the body runs, show `line()` on standard error a few times a second; nothing if that is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    task = asyncio.create_task(_tick(line))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


async def _tick(line: Callable[[], str]) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        sys.stderr.write(_CLEAR + line())
        sys.stderr.flush()
