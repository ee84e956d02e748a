"""All that is done again and again, in one place: when, and what came of it; not what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fsxwarm.errors import FsxwarmError


@dataclass(slots=True)
class Errand:
    """One thing that is done `every` so many seconds, counted from its last end. `trouble` is its last failure."""

    name: str
    every: float
    work: Callable[[], Awaitable[None]]
    runs: int = 0
    trouble: str = ""


class Periodic:
    """Runs errands side by side, each never twice at a time. One that fails says so and is done again at its next time.

    Only FsxwarmError is a failure; anything else is a defect, ends all and is raised by `run`.
    """

    def __init__(self) -> None:
        self.errands: dict[str, Errand] = {}
        self._hurry: dict[str, asyncio.Event] = {}

    def add(self, name: str, every: float, work: Callable[[], Awaitable[None]]) -> None:
        """Have `work` done; before `run` only."""
        self.errands[name] = Errand(name, every, work)
        self._hurry[name] = asyncio.Event()

    def hurry(self, name: str) -> None:
        """Have an errand done now instead of at its next time."""
        self._hurry[name].set()

    @property
    def troubles(self) -> list[str]:
        """What went wrong at the last time, errand by errand."""
        return [f"{errand.name}: {errand.trouble}" for errand in self.errands.values() if errand.trouble]

    async def run(self) -> None:
        """Do it all until cancelled."""
        async with asyncio.TaskGroup() as group:
            for errand in self.errands.values():
                group.create_task(self._repeat(errand), name=f"periodic {errand.name}")

    async def _repeat(self, errand: Errand) -> None:
        hurry = self._hurry[errand.name]
        loop = asyncio.get_running_loop()
        while True:
            timer = loop.call_later(errand.every, hurry.set)
            try:
                await hurry.wait()
            finally:
                timer.cancel()
            hurry.clear()
            errand.runs += 1
            try:
                await errand.work()
                errand.trouble = ""
            except FsxwarmError as error:
                errand.trouble = error.message
