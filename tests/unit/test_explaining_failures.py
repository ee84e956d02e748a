"""Why restores failed is found out from the log, while files are warmed and at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from aws.paper_cloud import SYSTEM, PaperCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.explain import Explaining
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.restore_log import LogEvent
from fsxwarm.sim import vloop


@dataclass
class Heard:
    """A listener that remembers what has settled, and when."""

    finishes: list[tuple[float, bytes, Reason | None]] = field(default_factory=list)

    def settled(self, finish: Finish) -> None:
        self.finishes.append((asyncio.get_running_loop().time(), finish.entry.path, finish.reason))

    def said(self, say: Say) -> None: ...

    def trouble(self, trouble: Trouble) -> None: ...

    def ready(self) -> None: ...


@dataclass
class PaperLog:
    """A log on paper: events with their own times, shown to those who ask from `shown` on."""

    logged: list[tuple[float, float, str]] = field(default_factory=list)
    asked: list[tuple[float, float]] = field(default_factory=list)
    fails_until: float = 0.0

    def log(self, at: float, message: str, *, late: float = 0.0) -> None:
        self.logged.append((at, at + late, message))

    async def events(self, group: str, system: str, *, start: float, end: float) -> AsyncIterator[LogEvent]:
        now = asyncio.get_running_loop().time()
        self.asked.append((start, end))
        if now < self.fails_until:
            raise CloudError(Fault.THROTTLED, "logs:FilterLogEvents", "ThrottlingException", "slow down")
        for at, shown, message in self.logged:
            if start <= at < end and shown <= now:
                yield LogEvent(at, message)


def _failed(name: str) -> Finish:
    entry = Entry(f"/fsx/{name}".encode(), 1, 1, 10, 0, 0, 0, 0, 1, 0, 0o644)
    return Finish(entry, Outcome.FAILED, frozenset({1}), Reason.RESTORE_FAILED)


def _denied(name: str) -> str:
    return f"Failed to restore file because access was denied to S3 object p/{name} in S3 bucket data."


def _explaining(log: PaperLog, heard: Heard, group: str = "/aws/fsx/lustre") -> Explaining:
    atlas = Atlas(PaperCloud(system=replace(SYSTEM, log_group=group)), [Mounted(b"/fsx", "10.0.0.5@tcp:/abc")])
    return Explaining(heard, atlas, log, asyncio.get_running_loop().time)


def test_a_reason_is_told_while_files_are_being_warmed() -> None:
    log, heard, lines = PaperLog(), Heard(), list[str]()

    async def warm() -> None:
        explaining = _explaining(log, heard)
        async with explaining.watching(lines.append):
            await asyncio.sleep(5)
            log.log(asyncio.get_running_loop().time(), _denied("a"))
            explaining.settled(_failed("a"))
            await asyncio.sleep(3600)
        assert await explaining.end() == ""

    vloop.run(warm(), start=1000.0)
    assert heard.finishes == [(1020.0, b"/fsx/a", Reason.ACCESS_DENIED)]
    assert len(log.asked) == 1
    assert len(lines) == 1
    assert "1 file failed: FSx was denied access" in lines[0]


def test_many_failures_of_one_kind_take_few_lines_and_all_are_handed_on() -> None:
    log, heard, lines = PaperLog(), Heard(), list[str]()

    async def warm() -> None:
        explaining = _explaining(log, heard)
        async with explaining.watching(lines.append):
            for number in range(2000):
                log.log(asyncio.get_running_loop().time(), _denied(str(number)))
                explaining.settled(_failed(str(number)))
                await asyncio.sleep(1)
        assert await explaining.end() == ""

    vloop.run(warm(), start=1000.0)
    assert sorted(path for _, path, _ in heard.finishes) == sorted(f"/fsx/{number}".encode() for number in range(2000))
    assert {reason for _, _, reason in heard.finishes} == {Reason.ACCESS_DENIED}
    assert len(lines) == 2
    assert all(end - start <= 420 for start, end in log.asked[1:])


def test_events_that_show_up_late_are_found_all_the_same() -> None:
    log, heard = PaperLog(), Heard()

    async def warm() -> None:
        explaining = _explaining(log, heard)
        async with explaining.watching(lambda _: None):
            log.log(asyncio.get_running_loop().time(), _denied("a"), late=200)
            explaining.settled(_failed("a"))
            await asyncio.sleep(1000)
        await explaining.end()

    vloop.run(warm(), start=1000.0)
    assert [reason for _, _, reason in heard.finishes] == [Reason.ACCESS_DENIED]


def test_a_log_out_of_order_is_asked_again() -> None:
    log, heard = PaperLog(fails_until=1500.0), Heard()

    async def warm() -> None:
        explaining = _explaining(log, heard)
        async with explaining.watching(lambda _: None):
            log.log(asyncio.get_running_loop().time(), _denied("a"))
            explaining.settled(_failed("a"))
            await asyncio.sleep(1000)
        assert await explaining.end() == ""

    vloop.run(warm(), start=1000.0)
    assert [reason for _, _, reason in heard.finishes] == [Reason.ACCESS_DENIED]


def test_what_no_log_explains_is_handed_on_at_the_end() -> None:
    log, heard = PaperLog(), Heard()

    async def warm() -> str:
        explaining = _explaining(log, heard)
        explaining.settled(_failed("a"))
        return await explaining.end()

    assert vloop.run(warm(), start=1000.0) == ""
    assert [reason for _, _, reason in heard.finishes] == [Reason.RESTORE_FAILED]


def test_without_a_log_it_is_said_once() -> None:
    log, heard = PaperLog(), Heard()

    async def warm() -> str:
        explaining = _explaining(log, heard, group="")
        async with explaining.watching(lambda _: None):
            explaining.settled(_failed("a"))
            await asyncio.sleep(100)
        return await explaining.end()

    assert "does not log to CloudWatch" in vloop.run(warm(), start=1000.0)
    assert not log.asked
    assert [reason for _, _, reason in heard.finishes] == [Reason.RESTORE_FAILED]
