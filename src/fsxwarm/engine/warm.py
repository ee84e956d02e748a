"""Warming: runs the state machine of `model.warming` against the ports until every wanted file has settled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ETIMEDOUT
from typing import Final, Protocol

from fsxwarm.engine.backlog import Backlog
from fsxwarm.engine.looking import Looker
from fsxwarm.engine.looks import GONE
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.space import Measure, measure_mount
from fsxwarm.errors import Exit, FsxwarmError, Kind, worst
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.messages import (
    Answered,
    Cancel,
    Cancelled,
    Event,
    Finish,
    Found,
    Full,
    Instruction,
    LookAt,
    Looked,
    Overdue,
    Room,
    Say,
    Stale,
    Stop,
    Submit,
    Tick,
    WalkEnded,
    Word,
)
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.model.progress import Progress
from fsxwarm.model.units import Amount
from fsxwarm.model.warming import Warming
from fsxwarm.ports.hsm import CallHungError, Hsm
from fsxwarm.ports.tree import Tree

_HEAD_START: Final = 10.0
"""Seconds that the walk gets before anything is asked for, so that most trees are known to fit, or not to."""
_MEASURE_EVERY: Final = 15.0
_REQUESTS_AT_ONCE: Final = 4
_FEED: Final = 2000


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
    """One run of warming over a selection. `progress` may be read at any time; `run` is called once."""

    def __init__(
        self, tree: Tree, hsm: Hsm, selection: Selection, policy: Policy, wish: Wish, listener: Listener
    ) -> None:
        self._hsm = hsm
        self._selection = selection
        self._wish = wish
        self._listener = listener
        self._now = asyncio.get_running_loop().time
        self.looker = Looker(tree, hsm)
        self.machine = Warming(policy, self._now())
        self.progress = Progress(self._now())
        self.requests = 0
        """Requests sent."""
        self.room: dict[int, Measure] = {}
        """The last measure of each file system, by st_dev."""
        self.short_of: Measure | None = None
        """The measure by which the wanted files do not fit."""
        self.stopped: Reason | None = None
        self._unsettled: Counter[int] = Counter()
        self._backlog = Backlog()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._asking = asyncio.Semaphore(_REQUESTS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._walking: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._feeding = False
        self._all_fed = False
        self._said_ready = False
        self._unmeasured: set[int] = set()

    async def run(self) -> Exit:
        """Warm until everything has settled, the deadline has passed, or the task is cancelled.

        A cancellation (Ctrl-C) is taken as the wish to stop: what is in flight goes on at FSx, and the status is
        INTERRUPTED. Raises FsxwarmError where fsxwarm cannot work at all, for instance when `lfs` is missing.
        """
        await self._selection.resolve()
        try:
            self._walking = self._start(self._walk())
            self._start(self._watch_space())
            if self._wish.deadline is not None:
                self._start(self._watch_clock(self._wish.deadline))
            await self._pump()
        finally:
            await self._end_tasks()
            self._backlog.close()
            self.progress.ended = self._now()
        return self._status()

    def stop(self, reason: Reason) -> None:
        """Ask for nothing more and let go of what has not settled."""
        if self.stopped is None:
            self.stopped = reason
            if self._walking is not None:
                self._walking.cancel()
            self._events.put_nowait(Stop(reason))

    # ---- the loop ----------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while not (self._all_fed and self.machine.idle):
            try:
                self._take_in(await self._next_event())
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self.stopped is not None or task is None:
                    raise
                task.uncancel()
                self.stop(Reason.INTERRUPTED)
            while not self._events.empty():
                self._take_in(self._events.get_nowait())
            if self._failure is not None:
                raise self._failure
            self._feed()
            self._tell_when_ready()

    async def _next_event(self) -> Event:
        if not self._events.empty():
            return self._events.get_nowait()
        if self._hungry():
            await asyncio.sleep(0)  # files that settle at once must not keep Ctrl-C, progress and report waiting
            return Tick()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self.machine.wake_at(self._now())):
                return await self._events.get()
        return Tick()

    def _take_in(self, event: Event) -> None:
        now = self._now()
        for instruction in self.machine.handle(event, now):
            self._carry_out(instruction)
        self.progress.sample(now)

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case LookAt():
                self._start(self._look(instruction))
            case Submit():
                self._start(self._submit(instruction))
            case Cancel():
                self._start(self._cancel(instruction))
            case Finish():
                self._unsettled[instruction.entry.dev] -= instruction.entry.size
                self.progress.finished(instruction)
                self._listener.settled(instruction)
            case Say():
                self._heed(instruction)
                self._listener.said(instruction)

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

    async def _walk(self) -> None:
        async for batch in self._selection.batches():
            for item in batch.items:
                self.progress.scanned_item(item)
                if isinstance(item, Entry):
                    self._unsettled[item.dev] += item.size
            self.progress.skipped += batch.skipped
            for trouble in batch.troubles:
                if batch.folder and trouble.errno in GONE:
                    continue  # a folder that vanished during the walk, with files that nobody can want any more
                self.progress.unreadable += 1
                self._listener.trouble(trouble)
            self._backlog.put(batch.items)
            self._events.put_nowait(Tick())
            if self._feeding:
                self._check_fit()
        self.progress.scan_ended = self._now()

    def _hungry(self) -> bool:
        return self._feeding and bool(self._backlog) and self.machine.appetite > 0

    def _feed(self) -> None:
        if not self._feeding:
            return
        if self._backlog and (appetite := self.machine.appetite):
            items = self._backlog.take(min(appetite, _FEED))
            for item in items:
                self.progress.passed(item)
            self._take_in(Found([item for item in items if isinstance(item, Entry)]))
        walked = self._walking is not None and self._walking.done()
        if walked and not self._backlog and not self._all_fed:
            self._all_fed = True
            self._take_in(WalkEnded())

    def _tell_when_ready(self) -> None:
        share = self._wish.ready
        if share is not None and not self._said_ready and self.progress.ready(share):
            self._said_ready = True
            self._listener.ready()

    # ---- space and time ----------------------------------------------------------------------------------------

    async def _watch_space(self) -> None:
        """Give the walk its head start, let the asking begin, and measure free space from time to time."""
        if self._walking is not None:
            await asyncio.wait({self._walking}, timeout=_HEAD_START)
        reserve = self._wish.reserve
        if reserve is not None:
            await self._measure(reserve)
        self._feeding = True
        self._check_fit()
        self._events.put_nowait(Tick())
        while reserve is not None:
            await asyncio.sleep(_MEASURE_EVERY)
            await self._measure(reserve)
            self._check_fit()

    async def _measure(self, reserve: Amount) -> None:
        for dev, mount in self._selection.mounts.items():
            measure = await measure_mount(self._hsm, mount, reserve)
            if isinstance(measure, Measure):
                self.room[dev] = measure
                self._events.put_nowait(Room(dev, measure.available))
            elif dev not in self._unmeasured:
                self._unmeasured.add(dev)
                self._listener.trouble(measure)

    def _check_fit(self) -> None:
        """Stop asking when what was found and not asked for yet is more than what is free."""
        if self._wish.fit or self.short_of is not None:
            return
        for dev, measure in self.room.items():
            if self._unsettled[dev] - self.machine.claimed(dev) > measure.available:
                self.short_of = measure
                self._events.put_nowait(Full(dev))

    async def _watch_clock(self, deadline: float) -> None:
        await asyncio.sleep(deadline)
        self.stop(Reason.DEADLINE)

    # ---- carrying out ------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run work beside the loop. Not a TaskGroup: its way to stop a group is the cancellation that Ctrl-C is."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._events.put_nowait(Tick())

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, look: LookAt) -> None:
        started = self._now()
        self._events.put_nowait(Looked(look.how, await self.looker.look(look.how, look.files), started))

    async def _submit(self, submit: Submit) -> None:
        async with self._asking:
            now = self._now()
            if now > submit.fresh_until:
                self._events.put_nowait(Stale(submit.request))
                return
            self.requests += 1
            if self.progress.first_asked is None:
                self.progress.first_asked = now
            try:
                reply = await self._hsm.restore([entry.path for entry in submit.files])
            except CallHungError as hung:
                ended = hung.ended
                self._events.put_nowait(Overdue(submit.request))
            else:
                self._events.put_nowait(Answered(submit.request, reply.errno, reply.text))
                return
        if ended is not None:  # outside the semaphore: a call that hangs takes nobody's turn
            late = await ended
            self._events.put_nowait(Answered(submit.request, late.errno, late.text))

    async def _cancel(self, cancel: Cancel) -> None:
        try:
            reply = await self._hsm.cancel([entry.path for entry in cancel.files])
            errno = reply.errno
        except CallHungError:
            errno = ETIMEDOUT
        self._events.put_nowait(Cancelled([entry.key for entry in cancel.files], errno))

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
