"""Which file systems have servers that skip duplicates: looked at again and again, for servers change under way.

To ask older ones without a look can block their threads (see `fsxwarm.model.policy.Policy.skip_duplicates`). So what
is not certain any more counts as not true, at once: a target that is not connected may come back on an older server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

PROBATION: Final = 600.0
"""Seconds for which it must have been certain before it is believed: each change lets all walks begin anew."""


class Servers:
    """Judges what `skipping` finds: the file systems (st_dev) whose servers, all of them, skip duplicates right now."""

    def __init__(self, skipping: Callable[[], Awaitable[frozenset[int]]], now: Callable[[], float]) -> None:
        self._skipping = skipping
        self._now = now
        self._certain: dict[int, float] = {}

    async def look(self, believed: frozenset[int]) -> frozenset[int]:
        """What to believe from now on instead of what was `believed`."""
        found, now = await self._skipping(), self._now()
        self._certain = {dev: self._certain.get(dev, now) for dev in found}
        return frozenset(dev for dev, since in self._certain.items() if dev in believed or now - since >= PROBATION)
