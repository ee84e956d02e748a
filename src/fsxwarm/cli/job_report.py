"""The report of a job of the daemon, written here, as this user, once the job has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fsxwarm import __version__
from fsxwarm.cli.output import complain
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


async def _write(client: Client, job: wire.Job, code: Exit, target: Path, arguments: Sequence[str]) -> Exit:
    header: Mapping[str, object] = {"version": __version__, "started": job["created"], "arguments": list(arguments)}
    report = await Report.begin(target, header)
    try:
        for failure in client.failures(job["id"]):
            path = naming.exact(failure)
            if failure["outcome"] in set(Outcome):
                report.settled(_finish(failure, path))
            else:
                report.trouble(Trouble(path, failure["errno"], failure["detail"]))
        await report.end({"exit": int(code), "ended": time.time(), "job": job["id"]})
    finally:
        await report.discard()
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
        detail=failure["detail"],
    )
