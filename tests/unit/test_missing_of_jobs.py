"""What is told of files that are not resident: the news, not what has been looked at again since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fsxwarm.client import wire
from fsxwarm.client.missing import misses, shortfall
from fsxwarm.daemon import views
from fsxwarm.model.job import Count, Counters, Identity, Job, JobOptions, JobRequest, JobView, Kind, Phase
from fsxwarm.model.outcome import MEANINGS, Reason

ALICE, BOB, ROOT = Identity(1000, (1000,)), Identity(1001, (1001,)), Identity(0, (0,))
FAILED = Counters(Count(10, 10), failed=Count(3, 3), reasons={"lost": 3})
FINE = Counters(Count(10, 10), resident=Count(10, 10))


def job(number: int, path: bytes = b"/fsx/a", counters: Counters = FAILED, **more: Any) -> wire.Job:
    """The newer, the higher its number."""
    fields = {"phase": Phase.DONE, "counters": counters}
    fields |= {name: more.pop(name) for name in ("phase", "listed", "digest") if name in more}
    request = JobRequest(more.pop("kind", Kind.PRELOAD), more.pop("identity", ALICE), (path,), **more)
    return views.job(JobView(Job(str(number), request, float(number), **fields)))


def told(*jobs: wire.Job) -> dict[str, int]:
    return {miss.reason: miss.files for miss in misses(jobs)}


def test_failures_of_jobs_that_have_nothing_in_common_add_up() -> None:
    assert told(job(1), job(2, b"/fsx/b")) == {"lost": 6}
    assert [(miss.what, miss.todo) for miss in misses([job(1)])] == [tuple(MEANINGS[Reason.LOST])]


def test_a_later_job_for_the_same_tells_how_it_is_now() -> None:
    assert told(job(2, counters=FINE), job(1)) == {}
    assert told(job(1), job(2)) == {"lost": 3}
    assert told(job(1), job(2, phase=Phase.RUNNING, counters=Counters())) == {}
    assert told(job(2), job(1, counters=FINE)) == {"lost": 3}


def test_a_later_job_for_a_folder_above_tells_how_it_is_now() -> None:
    assert told(job(1, b"/fsx/a/b"), job(2, b"/fsx/a/", FINE)) == {}
    assert told(job(1, b"/fsx/ab"), job(2, b"/fsx/a", FINE)) == {"lost": 3}
    assert told(job(1, b"/fsx/a"), job(2, b"/fsx/a/b", FINE)) == {"lost": 3}
    assert told(job(1, b"/fsx/a"), job(2, b"/fsx/a", FINE, include=("*.tar",))) == {"lost": 3}
    assert told(job(1, b"/fsx/a", include=("*.tar",)), job(2, b"/fsx/a", FINE)) == {}


def test_a_job_that_came_to_nothing_or_saw_less_tells_nothing_of_earlier_ones() -> None:
    assert told(job(1), job(2, phase=Phase.CANCELLED, counters=FINE)) == {"lost": 3}
    assert told(job(1), job(2, phase=Phase.FAILED, counters=FINE)) == {"lost": 3}
    assert told(job(1), job(2, counters=FINE, identity=BOB)) == {"lost": 3}
    assert told(job(1), job(2, counters=FINE, identity=ROOT)) == {}


def test_equal_lists_are_the_same_and_others_are_not() -> None:
    first = job(1, listed=5, digest="a")
    assert told(first, job(2, counters=FINE, listed=5, digest="a")) == {}
    assert told(first, job(2, counters=FINE, listed=5, digest="b")) == {"lost": 3}
    assert told(first, job(2, counters=FINE)) == {"lost": 3}


def test_what_a_release_left_alone_and_what_vanished_is_no_matter() -> None:
    left = Counters(Count(10, 10), left=Count(5, 5), reasons={"wanted": 5})
    assert told(job(1, kind=Kind.RELEASE, counters=left)) == {}
    assert told(job(1), job(2, kind=Kind.RELEASE, counters=left)) == {"lost": 3}
    assert told(job(1, counters=replace(FINE, vanished=Count(2, 2), reasons={"gone": 2}))) == {}


def test_who_gave_fit_is_not_advised_to() -> None:
    full = replace(FAILED, reasons={"no_room": 3})
    fitted = job(1, counters=full, options=JobOptions(fit=True))
    assert ["--fit" in miss.todo for miss in misses([fitted])] == [False]
    assert ["--fit" in miss.todo for miss in misses([fitted, job(2, b"/fsx/b", full)])] == [True]


def test_folders_that_could_not_be_looked_at_are_no_files_that_failed() -> None:
    closed = job(7, counters=replace(FINE, unreadable=1))
    assert shortfall(closed) == "1 path unreadable"
    (miss,) = misses([closed])
    assert miss.title == "1 folder or list entry that could not be looked at"
    assert miss.todo == "`fsxwarm jobs show 7` names them"
    assert shortfall(job(1, counters=replace(FAILED, blocked=Count(2, 2), unreadable=2))) == (
        "3 failed, 2 blocked, 2 paths unreadable"
    )
    assert shortfall(job(1, counters=FINE)) == ""
