"""An asyncio event loop on virtual time: when nothing is ready, its clock jumps to the next timer.

Coroutines run on it unchanged, an hour of theirs in as long as their own work takes. There is no other source of
events: no sockets, no children, no signals; what is handed to an executor runs at once in the calling thread, so that
the order of all that happens depends on nothing but the program.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from math import inf, ulp
from types import CodeType, FrameType
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MOST_SPINS: Final = 500_000
_NAMED: Final = 10


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set, while tasks still wait: they would wait for ever."""


class LivelockError(RuntimeError):
    """Tasks keep each other awake while no time passes."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. `start` is what its clock shows first, in seconds.

    So many `spins` of the loop without any time passing are a livelock.
    """

    def __init__(self, start: float = 0.0, spins: int = _MOST_SPINS) -> None:
        self._now = start
        self._most_spins = spins
        self._spins = 0
        super().__init__(_Selector(self._wait))
        self._clock_resolution = ulp(start)

    def time(self) -> float:
        """The virtual clock, in seconds."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer; one at infinity counts as none, so that waiting for nothing but that is found out."""
        if when == inf:
            return asyncio.TimerHandle(when, callback, args, self, context)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(self, executor: object, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Run `func` here and now."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - handed on to whoever awaits it, as an executor does
            future.set_exception(error)
        return future

    def _wait(self, timeout: float | None) -> None:
        """Stand in for the wait for I/O: `timeout` None says that there is no timer at all."""
        if timeout is None:
            raise DeadlockError(f"nothing will ever happen again; waiting: {_pending(self)}")
        if timeout > 0:
            self._now += timeout
            # No timer may fire before its time, however little: whoever then waits for the rest would spin for ever.
            self._clock_resolution = ulp(self._now)
            self._spins = 0
            return
        self._spins += 1
        if self._spins > self._most_spins:
            self._spins = 0
            raise LivelockError(f"no time passes at {self._now:g} s; busy: {_pending(self)}")


def run(main: Coroutine[Any, Any, T], *, start: float = 0.0, spins: int = _MOST_SPINS) -> T:
    """Run a coroutine on a virtual loop to its end. Raises `DeadlockError` and `LivelockError`, naming the tasks."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start, spins)) as runner:
        return runner.run(main)


class _Selector(selectors.BaseSelector):
    """Never sees an event: time is all that passes in `select`."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        self._wait = wait
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._wait(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _pending(loop: asyncio.AbstractEventLoop) -> str:
    tasks = sorted((task for task in asyncio.all_tasks(loop) if not task.done()), key=lambda task: task.get_name())
    named = [f"{task.get_name()} ({_place(task)})" for task in tasks[:_NAMED]]
    more = len(tasks) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "") or "no task"


def _place(task: asyncio.Task[Any]) -> str:
    """Name the innermost coroutine that a task waits in, with its line."""
    inner: Any = task.get_coro()
    place = "?"
    while inner is not None:
        code: CodeType | None = getattr(inner, "cr_code", None) or getattr(inner, "ag_code", None)
        frame: FrameType | None = getattr(inner, "cr_frame", None) or getattr(inner, "ag_frame", None)
        if code is not None and frame is not None:
            place = f"{code.co_qualname}, line {frame.f_lineno}"
        inner = getattr(inner, "cr_await", None) or getattr(inner, "ag_await", None)
    return place
