"""The report of a job of the daemon, written here, as this user, once the job has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from fsxwarm import __version__
from fsxwarm.cli.output import complain
from fsxwarm.cli.wanted import not_whole
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.engine.report import Report
from fsxwarm.errors import Exit, worst
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason


def check_writable(target: Path) -> None:
    """FsxwarmError USAGE when there cannot be a report at `target`: better known before a job than after it."""

    async def try_it() -> None:
        await (await Report.begin(target, {})).discard()

    asyncio.run(try_it())


def write_report(client: Client, job: wire.Job, code: Exit, target: Path, arguments: Sequence[str]) -> Exit:
    """Write the report of a job, if it has ended; else say how to come by it. Returns the status to exit with.

    `code` is the job's own status, `arguments` are those of the command that writes the report.
    """
    if job["final"]:
        return asyncio.run(_write(client, job, code, target, arguments))
    complain(f"no report yet: `fsxwarm jobs wait {job['id']} --report FILE` writes it when the job has ended")
    return code


def write_empty_report(target: Path, arguments: Sequence[str]) -> Exit:
    """Write the report of a preload that had no files. Returns the status to exit with."""

    async def write() -> Exit:
        now = time.time()
        report = await Report.begin(target, _header(now, arguments))
        await report.end({"exit": int(Exit.DONE), "ended": now, "found": {"files": 0, "bytes": 0}, "outcomes": {}})
        return _told(report, Exit.DONE)

    return asyncio.run(write())


async def _write(client: Client, job: wire.Job, code: Exit, target: Path, arguments: Sequence[str]) -> Exit:
    report = await Report.begin(target, _header(job["created"], arguments), fit=bool(job["options"].get("fit")))
    listed = 0
    try:
        for failure in client.failures(job["id"]):
            path = naming.exact(failure)
            if failure["outcome"] in set(Outcome):
                report.settled(_finish(failure, path))
            else:
                report.trouble(Trouble(path, failure["errno"], failure["detail"]))
            listed += 1
        summary = _summary(job, code, listed)
        await report.end(summary)
    finally:
        await report.discard()
    if report.problem is None and (unlisted := summary["unlisted"]):
        complain(not_whole(target, unlisted))
    return _told(report, code)


def _header(started: float, arguments: Sequence[str]) -> Mapping[str, object]:
    return {"version": __version__, "started": started, "arguments": list(arguments)}


def _summary(job: wire.Job, code: Exit, listed: int) -> dict[str, Any]:
    """What a job has counted; `unlisted` are files that it counted and the daemon has not named."""
    counters = job["counters"]
    outcomes = {outcome: cast("Mapping[str, wire.Count]", counters)[outcome.value] for outcome in Outcome}
    cold = sum(some["files"] for outcome, some in outcomes.items() if not outcome.warm)
    summary = {
        "exit": int(code),
        "ended": time.time() if job["ended"] is None else job["ended"],
        "job": job["id"],
        "found": counters["found"],
        "outcomes": {outcome.value: some for outcome, some in outcomes.items()},
        "in_flight": counters["left_in_flight"],
        "skipped": counters["skipped"],
        "scan_complete": counters["scanned"],
        "unlisted": max(0, cold + counters["unreadable"] - listed),
    }
    return {**summary, "error": job["error"]} if job["error"] else summary


def _told(report: Report, code: Exit) -> Exit:
    if report.problem is None:
        return code
    complain(report.problem)
    return worst(code, Exit.UNFORESEEN)


def _finish(failure: wire.Failure, path: bytes) -> Finish:
    flags = failure["flags"]
    return Finish(
        Entry(path, 0, 0, failure["size"], 0, 0, 0, 0, 1, 0, 0),
        Outcome(failure["outcome"]),
        frozenset(),
        reason=Reason(failure["reason"]) if failure["reason"] in set(Reason) else None,
        errno=failure["errno"],
        flags=None if flags is None else Flags(flags),
        attempts=failure["attempts"],
        in_flight=failure.get("in_flight", False),  # a daemon that was not restarted yet does not tell
        detail=failure["detail"],
    )
