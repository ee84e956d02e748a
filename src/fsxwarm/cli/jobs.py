"""`fsxwarm jobs`: the daemon's jobs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from fsxwarm.cli.choose import client_of
from fsxwarm.cli.following import follow
from fsxwarm.cli.job_report import check_writable, write_report
from fsxwarm.cli.job_view import (
    exit_of,
    first_failures,
    job_document,
    line,
    show_failures,
    show_job,
    show_jobs,
    show_origin,
)
from fsxwarm.cli.options import Json, ReportOption, whole
from fsxwarm.cli.output import complain, emit_json, safe
from fsxwarm.cli.progress import Mode, choose
from fsxwarm.cli.schema import error_document
from fsxwarm.client import wire
from fsxwarm.client.client import Client
from fsxwarm.errors import Exit, FsxwarmError, Kind

_NAMED: Final = 20
_EACH: Final = 1.0
"""Seconds between two lines about how far a job is."""

jobs = typer.Typer(help="List, show, wait for, cancel and hurry the daemon's jobs.", invoke_without_command=True)

Everything = Annotated[bool, typer.Option("--all", help="Also those that have ended.")]


def _number(job: str) -> str:
    if not (job.isascii() and job.isdigit()):
        raise typer.BadParameter(f"'{safe(job)}' is no job: write a number that `fsxwarm jobs` lists")
    return job


Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number.", callback=_number)]


@jobs.callback()
def _default(context: typer.Context, *, everything: Everything = False, json: Json = False) -> Exit | None:
    """List, show, wait for, cancel and hurry the daemon's jobs."""
    return list_jobs(everything=everything, json=json) if context.invoked_subcommand is None else None


@jobs.command("list")
def list_jobs(
    *,
    everything: Everything = False,
    json: Json = False,
) -> Exit:
    """List your jobs, the newest first; an administrator sees everybody's."""
    with _daemon(json=json) as client:
        found = [job for job in client.jobs() if everything or not job["final"]]
    if json:
        emit_json({"schema": "fsxwarm.jobs/1", "exit": int(Exit.DONE), "jobs": found})
    elif found:
        show_jobs(found)
    else:
        print("no jobs" if everything else "no jobs under way (--all shows those that have ended)")  # noqa: T201 - the answer
    return Exit.DONE


@jobs.command()
def show(job: Job, *, json: Json = False) -> Exit:
    """Show one job, and the first files that did not become resident."""
    with _daemon(json=json) as client:
        found = client.job(job)
        failures = list(islice(client.failures(job), _NAMED))
    if json:
        emit_json({**job_document(found, Exit.DONE), "failures": failures})
    else:
        show_job(found)
        show_origin(found)
        show_failures(failures)
    return Exit.DONE


@jobs.command()
def wait(
    job: Job,
    *,
    ready: Annotated[
        bool, typer.Option("--ready", help="Only until the share that the job asked for is resident.")
    ] = False,
    report: ReportOption = None,
    json: Json = False,
) -> Exit:
    """Wait for a job to end; exits as the command that asked for it would have. Ctrl-C leaves the job alone."""
    with _daemon(json=json) as client:
        wanted = client.job(job)
        if report is not None:
            _check_report(wanted, report, until_ready=ready)
        ended, code = follow(client, wanted, choose(Mode.AUTO, json=json), until_ready=ready)
        failures = [] if json else first_failures(client, ended)
        if report is not None:
            code = write_report(client, ended, code, report, sys.argv[1:])
    if json:
        emit_json(job_document(ended, code))
    else:
        show_job(ended, failures)
    return code


@jobs.command()
def watch() -> Exit:
    """Print what happens to your jobs, line by line, until Ctrl-C."""
    last: dict[str, str] = {}
    due: dict[str, float] = {}
    with _daemon(json=False) as client, _daemon(json=False) as asking:
        for event in client.events():
            number, now = event["job"], time.monotonic()
            if number and event["kind"] == "job_running" and now < due.get(number, 0.0):
                continue
            due[number] = now + _EACH
            news = line(asking.job(number)) if number else event["kind"].replace("_", " ")
            if news != last.get(number):
                print(news, flush=True)  # noqa: T201 - what was asked for
            last[number] = news
    raise FsxwarmError(Kind.NO_DAEMON, "the daemon has stopped, and tells no more")


@jobs.command()
def cancel(job: Job, *, json: Json = False) -> Exit:
    """Let go of a job. What is in flight goes on at FSx; files that other jobs want go on for them."""
    with _daemon(json=json) as client:
        gone = client.cancel(job)
    if json:
        emit_json(job_document(gone, Exit.DONE))
    else:
        if gone["phase"] != "cancelled":
            complain("it had ended before")
        show_job(gone)
    return Exit.DONE if gone["phase"] == "cancelled" else exit_of(gone)


@jobs.command()
def priority(
    job: Job,
    value: Annotated[
        int,
        typer.Argument(metavar="PRIORITY", parser=whole(0, 100), help="From 0 to 100: higher goes first, 50 is usual."),
    ],
    *,
    json: Json = False,
) -> Exit:
    """Change a job's priority. More than 50 is for administrators."""
    with _daemon(json=json) as client:
        changed = client.set_priority(job, value)
    if json:
        emit_json(job_document(changed, Exit.DONE))
    else:
        print(f"job {changed['id']} has priority {changed['priority']}")  # noqa: T201 - the answer
    return Exit.DONE


def _check_report(job: wire.Job, report: Path, *, until_ready: bool) -> None:
    if job["kind"] != "preload":
        raise FsxwarmError(Kind.USAGE, "only a preload has a report", hint="leave --report out")
    if until_ready:
        raise FsxwarmError(Kind.USAGE, "a report is written when the job has ended", hint="leave --ready out")
    check_writable(report)


@contextmanager
def _daemon(*, json: bool) -> Iterator[Client]:
    """The daemon; errors are printed as JSON too where that is wanted."""
    try:
        with client_of(os.environ) as client:
            yield client
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
