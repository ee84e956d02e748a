"""Having the daemon do what a command was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from fsxwarm import __version__
from fsxwarm.cli.following import follow
from fsxwarm.cli.job_view import job_document, show_job
from fsxwarm.cli.options import absolute, named
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.preload_run import Command
from fsxwarm.cli.progress import Mode
from fsxwarm.cli.schema import error_document
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.engine.report import Report, files_to_retry
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason


def files_wished(
    paths: Sequence[str],
    *,
    braces: bool = False,
    files_from: str | None = None,
    nul: bool = False,
    retry_failed: Path | None = None,
) -> wire.JobWish:
    """The files that a command line names, as a wish without a kind yet: lists are read here, as this user."""
    failed = None if retry_failed is None else files_to_retry(retry_failed)
    names, listed = named(paths, files_from=files_from, nul=nul, listed=failed, braces=braces)
    return {
        "kind": "preload",
        "paths": [naming.wish(absolute(name)) for name in names],
        "files": [] if listed is None else [naming.wish(path) for path in asyncio.run(_all(listed))],
    }


def preload_by_daemon(client: Client, command: Command, *, wait: bool) -> Exit:
    """Have the daemon do what a `fsxwarm preload` asks for."""
    wish = files_wished(
        command.paths,
        braces=command.braces,
        files_from=command.files_from,
        nul=command.nul,
        retry_failed=command.retry_failed,
    )
    wish["include"], wish["exclude"] = list(command.include), list(command.exclude)
    wish["options"] = {
        "ready": command.ready,
        "deadline": command.deadline,
        "fit": command.fit,
        "order": command.order.value,
        "check_s3": command.check_s3.value,
    }
    return have_done(
        client,
        wish,
        mode=command.progress,
        json=command.json,
        wait=wait,
        until_ready=command.ready is not None,
        report=command.report,
        arguments=command.arguments,
    )


async def _all(chunks: AsyncIterator[Sequence[bytes]]) -> list[bytes]:
    return list(chain.from_iterable([chunk async for chunk in chunks]))


def have_done(
    client: Client,
    wish: wire.JobWish,
    *,
    mode: Mode,
    json: bool,
    wait: bool = True,
    until_ready: bool = False,
    report: Path | None = None,
    arguments: Sequence[str] = (),
) -> Exit:
    """Have the daemon take a job on, follow it, and show how it ended."""
    try:
        with client:
            job = client.submit(wish)
            told = "" if json else f"the daemon has it as job {job['id']}"
            if wait or until_ready:
                job, code = follow(client, job, mode, until_ready=until_ready, told=told)
            else:
                code = Exit.DONE
                complain(told or f"job {job['id']}")
            if report is not None and job["final"]:
                asyncio.run(_report(client, job, code, report, arguments))
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    if json:
        emit_json(job_document(job, code))
    elif job["final"] or until_ready:
        show_job(job)
    return code


async def _report(client: Client, job: wire.Job, code: Exit, target: Path, arguments: Sequence[str]) -> None:
    """Write the report of a job that has ended, as this user."""
    header: Mapping[str, object] = {"version": __version__, "started": job["created"], "arguments": list(arguments)}
    report = await Report.begin(target, header)
    for failure in client.failures(job["id"]):
        path = naming.exact(failure)
        if failure["outcome"] in set(Outcome):
            report.settled(_finish(failure, path))
        else:
            report.trouble(Trouble(path, failure["errno"], failure["detail"]))
    await report.end({"exit": int(code), "ended": time.time(), "job": job["id"]})
    if report.problem is not None:
        complain(report.problem)


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
