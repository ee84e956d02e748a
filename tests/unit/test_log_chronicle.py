"""The story of a job and of its files in the log: complete, in the vocabulary, and short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.daemon.chronicle import Chronicle
from fsxwarm.daemon.repeats import FULL, Repeats
from fsxwarm.daemon.vocabulary import LINES, Level, Line
from fsxwarm.engine.service import Service, ServicePlan
from fsxwarm.model.job import Event
from fsxwarm.sim.faults import Fault, Faults
from fsxwarm.store.sqlite import SqliteStore
from service_stage import Stage, ended, play, request

_ALWAYS = {"left_out"}  # on any line whose repeats are limited


class Written:
    """Lines as they were written."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.unknown: set[tuple[str, str]] = set()

    def __call__(self, line: Line, **fields: object) -> None:
        known = {*LINES[line].fields, *(_ALWAYS if LINES[line].limited else ())}
        self.unknown |= {(line, field) for field in fields if field not in known}
        self.lines.append({"event": line, **fields})

    def at(self, *levels: Level) -> list[dict[str, Any]]:
        return [line for line in self.lines if LINES[line["event"]].level in levels]

    @property
    def shown(self) -> list[dict[str, Any]]:
        return self.at("info", "warning", "error")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def warmed(stage: Stage, written: Written, *jobs: Any) -> None:
    store = await SqliteStore.open(stage.path)
    chronicle = Chronicle(written, stage.wall)
    service = Service(stage.means(store), ServicePlan(), hears=chronicle.hear)
    chronicle.view = service.job
    try:
        async with service:
            taken = [await service.submit(job) for job in jobs]
            for job in taken:
                await ended(service, job.id)
    finally:
        await store.close()
    assert written.unknown == set()


def test_a_jobs_story_can_be_followed_by_its_number(tmp_path: Path) -> None:
    written = Written()

    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(30)
        await warmed(stage, written, request())

    play(act)
    story = [line["event"] for line in written.shown if line.get("job") == "1"]
    assert story == ["job_queued", "job_running", "job_done"]
    done = written.shown[-1]
    assert (done["found"], done["restored"], done["exit"]) == (30, 30, 0)


def test_a_files_story_can_be_followed_by_its_path(tmp_path: Path) -> None:
    written = Written()
    path = b""

    async def act() -> None:
        nonlocal path
        stage = Stage(
            tmp_path, Faults(restore=[lambda node, _tries: Fault.OBJECT_MISSING if node.fid.oid % 2 else None])
        )
        stage.fill(3)
        path = next(p for p in stage.paths if stage.names.file(p).node.fid.oid % 2)
        await warmed(stage, written, request())

    play(act)
    story = [line["event"] for line in written.lines if line.get("path") == path]
    assert story[-1] == "file_failed"
    assert set(story[:-1]) == {"retry"}
    assert [line["job"] for line in written.lines if line.get("path") == path] == ["1"] * len(story)


def test_at_debug_each_file_has_its_line(tmp_path: Path) -> None:
    written = Written()
    paths: list[bytes] = []

    async def act() -> None:
        stage = Stage(tmp_path)
        stage.fill(40)
        paths.extend(stage.paths)
        await warmed(stage, written, request())

    play(act)
    assert sorted(line["path"] for line in written.at("debug")) == sorted(paths)


def test_a_job_of_which_one_in_ten_files_fails_logs_few_lines(tmp_path: Path) -> None:
    written = Written()

    async def act() -> None:
        one_in_ten = Faults(restore=[lambda node, _tries: Fault.OBJECT_MISSING if node.fid.oid % 10 == 0 else None])
        stage = Stage(tmp_path, one_in_ten)
        stage.fill(5_000, 1000)
        await warmed(stage, written, request())

    play(act)
    done = next(line for line in written.lines if line["event"] is Line.JOB_DONE)
    assert (done["found"], done["failed"]) == (5_000, 500)
    assert len(written.shown) < 60
    assert sum(line["event"] is Line.REPEATED for line in written.shown) > 0


def failures(chronicle: Chronicle, count: int, reason: str = "restore_failed", job: str = "7") -> None:
    for number in range(count):
        chronicle.hear(Event(0.0, "file_failed", job, {"path": b"/fsx/%d" % number, "reason": reason}))


def test_what_is_left_out_is_counted_to_the_last_line() -> None:
    written, clock = Written(), Clock()
    chronicle = Chronicle(written, clock)
    for _ in range(100):
        failures(chronicle, 100)
        clock.seconds += 10.0
    chronicle.hear(Event(0.0, "job_done", "7"))
    shown = [line for line in written.lines if line["event"] is Line.FILE_FAILED]
    left_out = sum(line.get("left_out", 0) for line in shown)
    rest = [line["times"] for line in written.lines if line["event"] is Line.REPEATED]
    assert len(shown) < 20
    assert len(shown) + left_out + sum(rest) == 10_000


def test_ten_thousand_failures_and_their_retries_take_less_than_200_lines() -> None:
    """Of a job of 100,000 files, one in ten of which fails for one of seven reasons, over three hours."""
    written, clock = Written(), Clock()
    chronicle = Chronicle(written, clock)
    reasons = ("restore_failed", "lost", "storage_class", "access_denied", "stalled", "object_missing", "refused")
    chronicle.hear(Event(0.0, "job_queued", "7"))
    for number in range(10_000):
        clock.seconds += 3 * 3600 / 10_000
        for _ in range(2):
            chronicle.hear(Event(0.0, "retry", "7", {"path": b"/fsx/%d" % number, "seconds": 5.0}))
        failures(chronicle, 1, reasons[number % len(reasons)])
    chronicle.hear(Event(0.0, "job_done", "7"))
    assert len(written.shown) < 200
    assert {line.get("reason") for line in written.shown} >= set(reasons)


def test_each_reason_and_each_job_is_shown() -> None:
    written = Written()
    chronicle = Chronicle(written, Clock())
    failures(chronicle, 1000, "restore_failed", "1")
    failures(chronicle, 1000, "lost", "1")
    failures(chronicle, 1000, "lost", "2")
    assert len(written.lines) == 3 * FULL


def test_what_stays_silent_long_enough_is_told_in_full_again() -> None:
    written, clock = Written(), Clock()
    chronicle = Chronicle(written, clock)
    failures(chronicle, 50)
    clock.seconds += 3600
    failures(chronicle, 3)
    assert len(written.lines) == FULL + 3
    assert written.lines[FULL]["left_out"] == 50 - FULL


@given(st.lists(st.floats(0, 100_000), max_size=200))
def test_no_line_is_lost_uncounted(waits: list[float]) -> None:
    clock = Clock()
    repeats = Repeats(clock)
    shown = left_out = 0
    for wait in waits:
        clock.seconds += wait
        before = repeats.admit("x")
        if before is not None:
            shown += 1
            left_out += before
    left_out += sum(count for _, count in repeats.forget(lambda _: True))
    assert shown + left_out == len(waits)


def test_problems_are_told_as_they_come_and_go() -> None:
    written = Written()
    chronicle = Chronicle(written, Clock())
    for now in ((), ("no lfs",), ("no lfs",), ("no lfs", "full"), ("full",), ()):
        chronicle.problems(now)
    assert [(line["event"], line["message"]) for line in written.lines] == [
        ("problem", "no lfs"),
        ("problem", "full"),
        ("problem_over", "no lfs"),
        ("problem_over", "full"),
    ]


@pytest.mark.parametrize("kind", ["file_unheard_of", "x"])
def test_an_event_without_a_name_of_its_own_stops_nothing(kind: str) -> None:
    written = Written()
    Chronicle(written, Clock()).hear(Event(0.0, kind))
    assert written.lines == [{"event": Line.NOTICE, "message": kind}]
