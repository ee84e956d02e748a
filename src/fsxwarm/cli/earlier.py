"""What earlier runs of this user reached on a file system."""

from __future__ import annotations

import asyncio
import os

from fsxwarm.app import App
from fsxwarm.model.entry import Trouble
from fsxwarm.store.rates import Rate, RateStore, rates_file


async def earlier_runs(app: App, mount: bytes) -> list[Rate]:
    """The last runs on the file system mounted at a path, oldest first."""
    source = await _source(app, mount)
    return [] if source is None else await asyncio.to_thread(_store().rates, source)


async def remember_run(app: App, mount: bytes, rate: Rate) -> None:
    """Keep what a run reached."""
    source = await _source(app, mount)
    if source is not None:
        _store().remember(source, rate)  # in no thread, which may be denied us: at the end it keeps nobody waiting


async def _source(app: App, mount: bytes) -> str | None:
    """What is mounted, as the mount table has it."""
    place = await app.tree.resolve(mount)
    return None if isinstance(place, Trouble) else place.source


def _store() -> RateStore:
    return RateStore(rates_file(os.environ))
