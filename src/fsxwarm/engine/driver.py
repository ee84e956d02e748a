"""Drives the state machine of `model.warming`: carries out what it wants done, and tells it what came of that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from errno import ETIMEDOUT
from typing import Final

from fsxwarm.engine.looking import Looker
from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.messages import (
    Answered,
    Cancel,
    Cancelled,
    Event,
    Finish,
    LookAt,
    Looked,
    Overdue,
    Say,
    Stale,
    Submit,
    Tick,
)
from fsxwarm.model.warming import Warming
from fsxwarm.ports.hsm import CallHungError, Hsm
from fsxwarm.ports.tree import Tree

_SLICE: Final = 0.005
"""Seconds of events taken in at a stretch: the loop has others to serve."""
_REQUESTS_AT_ONCE: Final = 4


class Driver:
    """Turns instructions into calls, and every outcome of a call into an event.

    `hear` is told of each `Finish` and `Say` as they come; it may raise to end it all. `machine` may be replaced
    before the first event. Whoever drives calls `turn` again and again, and `close` at the end.
    """

    def __init__(self, tree: Tree, hsm: Hsm, machine: Warming, hear: Callable[[Finish | Say], None]) -> None:
        self._hsm = hsm
        self._hear = hear
        self._now = asyncio.get_running_loop().time
        self.machine = machine
        self.looker = Looker(tree, hsm, stat_settles=machine.policy.stat_settles)
        self.requests = 0
        """Requests sent."""
        self.first_asked: float | None = None
        """When the first was, on the loop's clock."""
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._asking = asyncio.Semaphore(_REQUESTS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def post(self, event: Event) -> None:
        """Have an event taken in by the next turn."""
        self._events.put_nowait(event)

    def take_in(self, event: Event) -> None:
        """Let the machine handle an event now, and begin what it wants done."""
        for instruction in self.machine.handle(event, self._now()):
            match instruction:
                case LookAt():
                    self.start(self._look(instruction))
                case Submit():
                    self.start(self._submit(instruction))
                case Cancel():
                    self.start(self._cancel(instruction))
                case Finish() | Say():
                    self._hear(instruction)

    async def turn(self, *, hungry: bool) -> None:
        """Wait for an event or for the time to look again, and take in all that has come.

        With `hungry` it does not wait. Raises what a started piece of work has failed with.
        """
        self.take_in(await self._next(hungry=hungry))
        until = self._now() + _SLICE
        while not self._events.empty():
            self.take_in(self._events.get_nowait())
            if self._now() >= until:
                await asyncio.sleep(0)
                until = self._now() + _SLICE
        if self._failure is not None:
            raise self._failure

    async def _next(self, *, hungry: bool) -> Event:
        if not self._events.empty():
            return self._events.get_nowait()
        if hungry:
            await asyncio.sleep(0)  # files that settle at once must not keep Ctrl-C, progress and report waiting
            return Tick()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self.machine.wake_at(self._now())):
                return await self._events.get()
        return Tick()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run work beside the loop. Not a TaskGroup: its way to stop a group is the cancellation that Ctrl-C is."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self.post(Tick())

    async def close(self) -> None:
        """Cancel all work that was started, and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- carrying out ------------------------------------------------------------------------------------------

    async def _look(self, look: LookAt) -> None:
        started = self._now()
        self.post(Looked(look.how, await self.looker.look(look.how, look.files), started))

    async def _submit(self, submit: Submit) -> None:
        async with self._asking:
            now = self._now()
            if now > submit.fresh_until:
                self.post(Stale(submit.request))
                return
            self.requests += 1
            if self.first_asked is None:
                self.first_asked = now
            try:
                reply = await self._hsm.restore(*_named(submit.files))
            except CallHungError as hung:
                ended = hung.ended
                self.post(Overdue(submit.request))
            else:
                self.post(Answered(submit.request, reply.errno, reply.text))
                return
        if ended is not None:  # outside the semaphore: a call that hangs takes nobody's turn
            late = await ended
            self.post(Answered(submit.request, late.errno, late.text))

    async def _cancel(self, cancel: Cancel) -> None:
        try:
            reply = await self._hsm.cancel(*_named(cancel.files))
            errno = reply.errno
        except CallHungError:
            errno = ETIMEDOUT
        self.post(Cancelled([entry.key for entry in cancel.files], errno))


def _named(files: Sequence[Entry]) -> tuple[list[bytes], list[Key]]:
    """Names, and which files they must still mean."""
    return [entry.path for entry in files], [entry.key for entry in files]
