"""What jobs and overviews say to people, in commands and on the page: rates, shares, what they are about."""

from __future__ import annotations

import itertools
import pwd
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from fsxwarm.client import wire
from fsxwarm.model.units import format_count

_OVER: Final = 30.0
"""Seconds that the present rate looks back."""
SETTLED: Final = ("resident", "restored", "released", "already", "left", "failed", "blocked", "vanished", "cancelled")
"""The counters of files that will not change any more."""
_PATHS: Final = 2
"""Paths of a job that are named where there are only a few words for it."""


class Point(NamedTuple):
    """A stretch of the last hour, by its end: files and bytes restored a second, files in flight, and the window."""

    at: float
    files: float
    bytes: float
    in_flight: int
    window: int


def settled(job: wire.Job) -> wire.Count:
    """Files and bytes of a job that will not change any more, without those that it let go of before they were done."""
    counts: list[wire.Count] = [job["counters"][name] for name in SETTLED if name != "cancelled"]
    return {"files": sum(one["files"] for one in counts), "bytes": sum(one["bytes"] for one in counts)}


def share(job: wire.Job) -> float | None:
    """How much of a job has settled, by bytes, between 0 and 1; None where nothing is known yet."""
    found, done = job["counters"]["found"], settled(job)
    if found["bytes"]:
        return min(1.0, done["bytes"] / found["bytes"])
    if found["files"]:
        return min(1.0, done["files"] / found["files"])
    return 1.0 if job["final"] or job["counters"]["scanned"] else None


def coverage(stock: wire.Stock) -> float:
    """Resident bytes of all bytes, between 0 and 1; of nothing, all is resident."""
    whole = stock["resident"]["bytes"] + stock["released"]["bytes"]
    return stock["resident"]["bytes"] / whole if whole else float(not stock["released"]["files"])


def rate(overview: wire.Overview) -> tuple[float, float]:
    """Files and bytes that became resident a second, over the last half minute."""
    now, totals = overview["at"], overview["health"]["totals"]
    before = next((one for one in reversed(overview["past"]) if now - one["at"] >= _OVER), None)
    before = before or next(iter(overview["past"]), None)
    if before is None or now - before["at"] < 1.0:
        return 0.0, 0.0
    span = now - before["at"]
    files = totals.get("restored_files", 0) - before["restored_files"]
    size = totals.get("restored_bytes", 0) - before["restored_bytes"]
    return max(0.0, files / span), max(0.0, size / span)


class Flight(NamedTuple):
    """Files of all jobs: how many may be in flight, are, and do not move; and how many others have in flight."""

    window: int
    in_flight: int
    stalled: int
    watched: int


def flight(health: wire.Health) -> Flight:
    """What is on its way, over all metadata targets."""
    lanes = health["lanes"]
    return Flight(
        sum(lane["window"] for lane in lanes),
        sum(lane["in_flight"] for lane in lanes),
        sum(lane.get("stalled", 0) for lane in lanes),  # a daemon that was not restarted yet does not tell
        sum(lane["watched"] for lane in lanes),
    )


def hindrance(in_flight: int, stalled: int) -> str:
    """What is the matter where nothing moves, in place of a rate of 0 and what binds; "" while something may."""
    return "nothing moves: all that is in flight has stalled" if in_flight and stalled >= in_flight else ""


def points(past: Sequence[wire.Sample]) -> list[Point]:
    """The last hour, stretch by stretch."""
    found = []
    for before, after in itertools.pairwise(past):
        span = after["at"] - before["at"]
        if span > 0:
            files = max(0, after["restored_files"] - before["restored_files"]) / span
            size = max(0, after["restored_bytes"] - before["restored_bytes"]) / span
            found.append(Point(after["at"], files, size, after["in_flight"], after["window"]))
    return found


def what(job: wire.Job) -> str:
    """What a job is about, in a few words: its label, or the first of its paths."""
    if job["label"]:
        return job["label"]
    named = [name["path"] for name in job["paths"][:_PATHS]]
    if len(job["paths"]) > _PATHS:
        named.append(f"and {len(job['paths']) - _PATHS:,} more")
    if job["listed"]:
        named.append(f"a list of {format_count(job['listed'], 'file')}")
    return ", ".join(named)


@lru_cache(1024)  # it may ask a server far away
def user(uid: int) -> str:
    """A user's name, or number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
