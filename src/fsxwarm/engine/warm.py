"""Warming: runs the state machine of `model.warming` against the ports until every wanted file has settled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

from fsxwarm.engine.driver import Driver
from fsxwarm.engine.intake import Intake, Sieve
from fsxwarm.engine.looking import Looker
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.space import Measure, measure_mount
from fsxwarm.errors import Exit, FsxwarmError, Kind, worst
from fsxwarm.model.entry import Trouble
from fsxwarm.model.messages import Finish, Full, Room, Say, Stop, Tick, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.model.progress import Progress
from fsxwarm.model.units import Amount
from fsxwarm.model.warming import Warming
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree

_HEAD_START: Final = 10.0
"""Seconds that the walk gets before anything is asked for, so that most trees are known to fit, or not to."""
_MEASURE_EVERY: Final = 15.0


class Listener(Protocol):
    """Hears what happens while it happens. Must not block."""

    def settled(self, finish: Finish) -> None:
        """A file has settled."""
        ...

    def said(self, say: Say) -> None:
        """Something of the whole is worth telling."""
        ...

    def trouble(self, trouble: Trouble) -> None:
        """A folder or list entry could not be looked at."""
        ...

    def ready(self) -> None:
        """The share of the bytes that was asked for is resident. Said once."""
        ...


class Relay:
    """A listener that hands on to another what it hears."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def settled(self, finish: Finish) -> None:
        """See `Listener`."""
        self._listener.settled(finish)

    def said(self, say: Say) -> None:
        """See `Listener`."""
        self._listener.said(say)

    def trouble(self, trouble: Trouble) -> None:
        """See `Listener`."""
        self._listener.trouble(trouble)

    def ready(self) -> None:
        """See `Listener`."""
        self._listener.ready()


@dataclass(frozen=True, slots=True)
class Wish:
    """What a preload wants beyond its files. Times in seconds; `ready` a share from 0 to 1 of the bytes, in order.

    `reserve` is the space to leave free; None: free space is not looked at. With `fit` what does not fit is blocked
    while the rest goes on; without it nothing more is asked for once it is clear that not all will fit.
    """

    ready: float | None = None
    deadline: float | None = None
    reserve: Amount | None = field(default_factory=lambda: Amount(percent=5.0))
    fit: bool = False


class Warmer:
    """One run of warming over a selection. `progress` may be read at any time; `run` is called once.

    `sieve` finds out, before anything is asked for, what S3 cannot give.
    """

    def __init__(
        self,
        tree: Tree,
        hsm: Hsm,
        selection: Selection,
        policy: Policy,
        wish: Wish,
        listener: Listener,
        sieve: Sieve | None = None,
    ) -> None:
        self._hsm = hsm
        self._selection = selection
        self._wish = wish
        self._listener = listener
        self._now = asyncio.get_running_loop().time
        self._driver = Driver(tree, hsm, Warming(policy, self._now()), self._heard)
        self.progress = Progress(self._now())
        self._intake = Intake(selection, self.progress, listener.trouble, sieve=sieve)
        self.room: dict[int, Measure] = {}
        """The last measure of each file system, by st_dev."""
        self.short_of: Measure | None = None
        """The measure by which the wanted files do not fit."""
        self.stopped: Reason | None = None
        self._walking: asyncio.Task[None] | None = None
        self._scanned = asyncio.Event()
        self._feeding = False
        self._said_ready = False
        self._unmeasured: set[int] = set()

    @property
    def machine(self) -> Warming:
        """The state machine."""
        return self._driver.machine

    @machine.setter
    def machine(self, machine: Warming) -> None:
        self._driver.machine = machine

    @property
    def looker(self) -> Looker:
        """What looks at files."""
        return self._driver.looker

    @property
    def requests(self) -> int:
        """Requests sent."""
        return self._driver.requests

    async def run(self) -> Exit:
        """Warm until everything has settled, the deadline has passed, or the task is cancelled.

        A cancellation (Ctrl-C) is taken as the wish to stop: what is in flight goes on at FSx, and the status is
        INTERRUPTED. Raises FsxwarmError where fsxwarm cannot work at all, for instance when `lfs` is missing.
        """
        await self._selection.resolve()
        try:
            self._walking = self._driver.start(self._intake.walk(self._now, self._found))
            self._driver.start(self._watch_space())
            if self._wish.deadline is not None:
                self._driver.start(self._watch_clock(self._wish.deadline))
            await self._pump()
        finally:
            await self._driver.close()
            self._intake.close()
            self.progress.ended = self._now()
        return self._status()

    def stop(self, reason: Reason) -> None:
        """Ask for nothing more and let go of what has not settled."""
        if self.stopped is None:
            self.stopped = reason
            if self._walking is not None:
                self._walking.cancel()
            self._driver.post(Stop(reason))

    async def spare(self) -> dict[int, int]:
        """Bytes that each file system (st_dev) has for more than was found so far; empty if space is not looked at."""
        if self._wish.reserve is not None:
            await self._measure(self._wish.reserve)
        return {dev: measure.available - self._unclaimed(dev) for dev, measure in self.room.items()}

    def settle(self, finish: Finish) -> None:
        """Take note of a file that was found and never came to its turn."""
        self.progress.held.add(-finish.entry.size, -1)
        self.progress.finished(finish)
        self._listener.settled(finish)

    # ---- the loop ----------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while not (self._intake.all_fed and self.machine.idle):
            try:
                await self._driver.turn(hungry=self._hungry())
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self.stopped is not None or task is None:
                    raise
                task.uncancel()
                self.stop(Reason.INTERRUPTED)
            self._feed()
            self.progress.first_asked = self._driver.first_asked
            self.progress.sample(self._now())
            self._tell_when_ready()

    def _heard(self, news: Finish | Say) -> None:
        match news:
            case Finish():
                self._intake.settled(news)
                self.progress.finished(news)
                self._listener.settled(news)
            case Say():
                self._heed(news)
                self._listener.said(news)

    def _heed(self, say: Say) -> None:
        if say.word is Word.NOT_ALLOWED:
            raise FsxwarmError(
                Kind.NO_PERMISSION,
                "the metadata server refuses every restore that this user asks for",
                hint="run as root, or ask the administrator for the right to restore (hsm.other_request_mask)",
            )
        if say.word is Word.NO_ROOM and self.short_of is None:
            self.short_of = next(iter(self.room.values()), None)

    # ---- feeding the machine -----------------------------------------------------------------------------------

    def _found(self) -> None:
        self._driver.post(Tick())
        if self.progress.scan_ended is not None:
            self._scanned.set()
        if self._feeding:
            self._check_fit()

    def _hungry(self) -> bool:
        return self._feeding and self._intake.hungry and self.machine.appetite > 0

    def _feed(self) -> None:
        if self._feeding:
            for event in self._intake.take(self.machine.appetite):
                self._driver.take_in(event)

    def _tell_when_ready(self) -> None:
        share = self._wish.ready
        if share is not None and not self._said_ready and self.progress.ready(share):
            self._said_ready = True
            self._listener.ready()

    # ---- space and time ----------------------------------------------------------------------------------------

    async def _watch_space(self) -> None:
        """Give the walk its head start, let the asking begin, and measure free space from time to time."""
        if self._walking is not None:
            scanned = asyncio.create_task(self._scanned.wait())  # thaws that are waited for behind it do not count
            await asyncio.wait({self._walking, scanned}, timeout=_HEAD_START, return_when=asyncio.FIRST_COMPLETED)
            scanned.cancel()
        reserve = self._wish.reserve
        if reserve is not None:
            await self._measure(reserve)
        self._feeding = True
        self._check_fit()
        self._driver.post(Tick())
        while reserve is not None:
            await asyncio.sleep(_MEASURE_EVERY)
            await self._measure(reserve)
            self._check_fit()

    async def _measure(self, reserve: Amount) -> None:
        for dev, mount in self._selection.mounts.items():
            measure = await measure_mount(self._hsm, mount, reserve)
            if isinstance(measure, Measure):
                self.room[dev] = measure
                self._driver.post(Room(dev, measure.available))
            elif dev not in self._unmeasured:
                self._unmeasured.add(dev)
                self._listener.said(Say(Word.ROOM_UNKNOWN))

    def _check_fit(self) -> None:
        """Stop asking when what was found and not asked for yet is more than what is free."""
        if self._wish.fit or self.short_of is not None:
            return
        for dev, measure in self.room.items():
            if self._unclaimed(dev) > measure.available:
                self.short_of = measure
                self._driver.post(Full(dev))

    def _unclaimed(self, dev: int) -> int:
        """Bytes that were found and not asked for yet."""
        return self._intake.unsettled[dev] - self.machine.claimed(dev)

    async def _watch_clock(self, deadline: float) -> None:
        await asyncio.sleep(deadline)
        self.stop(Reason.DEADLINE)

    # ---- the end -----------------------------------------------------------------------------------------------

    def _status(self) -> Exit:
        settled = self.progress.settled
        statuses = [Exit.DONE]
        if self.stopped is Reason.INTERRUPTED:
            statuses.append(Exit.INTERRUPTED)
        if self.stopped is Reason.DEADLINE:
            statuses.append(Exit.DEADLINE)
        if self.progress.reasons[Reason.NO_ROOM] and not self._wish.fit:
            statuses.append(Exit.NO_ROOM)
        incomplete = settled[Outcome.FAILED].files + settled[Outcome.BLOCKED].files + self.progress.unreadable
        if incomplete:
            statuses.append(Exit.INCOMPLETE)
        return worst(*statuses)
