"""Lets a world's time pass with an event loop's clock, virtual or real."""

from __future__ import annotations

import asyncio

from fsxwarm.sim.world import World


class Clockwork:
    """Advances `world` on the running loop whenever something of it is due: calls that hang are freed in time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        world.on_change = self._arm
        self._arm()

    def now(self) -> float:
        """The time for the world's methods, in seconds."""
        return self._loop.time()

    def stop(self) -> None:
        """Let time stand still."""
        self.world.on_change = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        """Set the timer to the next event. One that goes off too early does no harm, and is cheaper than a new one."""
        when = self.world.next_event()
        if when is None or (self._timer is not None and self._timer.when() <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._due, when)

    def _due(self, when: float) -> None:
        self._timer = None
        self.world.advance(max(self.now(), when))  # a loop's timers may go off a little early
        self._arm()
