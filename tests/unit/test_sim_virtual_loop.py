"""The virtual-time event loop: hours pass at once, waiting for nothing is found out."""

import asyncio
import threading
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.sim import vloop


async def stay(loop_seconds: float) -> float:
    await asyncio.sleep(loop_seconds)
    return asyncio.get_running_loop().time()


def test_an_hour_passes_at_once() -> None:
    assert vloop.run(stay(3600.0)) == 3600.0
    assert vloop.run(stay(86400.0 * 30), start=5.0) == pytest.approx(86400.0 * 30 + 5.0)


def test_timers_go_off_in_their_order() -> None:
    async def main() -> list[tuple[float, str]]:
        seen: list[tuple[float, str]] = []

        async def note(after: float, name: str) -> None:
            seen.append((await stay(after), name))

        async with asyncio.TaskGroup() as group:
            for after, name in ((3.0, "c"), (1.0, "a"), (2.0, "b"), (1.0, "a2")):
                group.create_task(note(after, name))
        return seen

    assert vloop.run(main()) == [(1.0, "a"), (1.0, "a2"), (2.0, "b"), (3.0, "c")]


def test_a_timeout_passes_virtually() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(500.0):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert vloop.run(main()) == 500.0


def test_waiting_for_nothing_names_who_waits() -> None:
    async def forgotten() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(forgotten(), name="the forgotten one")

    with pytest.raises(vloop.DeadlockError, match=r"the forgotten one \(Event\.wait"):
        vloop.run(main())


def test_a_timer_at_infinity_is_none() -> None:
    async def main() -> None:
        async with asyncio.timeout_at(inf):
            await asyncio.Event().wait()

    with pytest.raises(vloop.DeadlockError):
        vloop.run(main())


def test_a_timer_at_infinity_may_be_cancelled() -> None:
    async def main() -> int:
        async with asyncio.timeout_at(inf):
            await asyncio.sleep(1.0)
        return 7

    assert vloop.run(main()) == 7


def test_an_executor_is_the_thread_itself() -> None:
    async def main() -> tuple[int, float]:
        thread = await asyncio.to_thread(threading.get_ident)
        return thread, asyncio.get_running_loop().time()

    assert vloop.run(main()) == (threading.get_ident(), 0.0)


def test_an_executor_hands_errors_on() -> None:
    async def main() -> None:
        await asyncio.to_thread(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        vloop.run(main())


def test_tasks_that_keep_each_other_awake_are_found_out() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        busy = True

        def again() -> None:
            if busy:
                loop.call_soon(again)

        again()
        try:
            await asyncio.Event().wait()
        finally:
            busy = False

    with pytest.raises(vloop.LivelockError, match="no time passes"):
        vloop.run(main())


@given(start=st.floats(0.0, 1e7), delays=st.lists(st.floats(0.0, 1e5), min_size=1, max_size=20))
def test_no_timer_goes_off_before_its_time(start: float, delays: list[float]) -> None:
    """Whoever waits until a time and looks at the clock would otherwise wait for a rest that never passes."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        early: list[float] = []
        for delay in delays:
            when = loop.time() + delay
            loop.call_at(when, lambda when=when: early.append(when) if loop.time() < when else None)
            await asyncio.sleep(delay / 3)
        await asyncio.sleep(max(delays))
        assert early == []

    vloop.run(main(), start=start)
