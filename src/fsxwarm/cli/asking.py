"""Having the daemon do what a command was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from fsxwarm.cli.following import follow
from fsxwarm.cli.job_report import check_writable, write_empty_report, write_report
from fsxwarm.cli.job_view import first_failures, job_document, show_job
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.preload_command import Command
from fsxwarm.cli.progress import Mode
from fsxwarm.cli.schema import error_document
from fsxwarm.cli.wanted import to_retry
from fsxwarm.client import wire
from fsxwarm.client.client import Client
from fsxwarm.errors import Exit, FsxwarmError, Kind


def preload_by_daemon(client: Client, command: Command, *, wait: bool) -> Exit:
    """Have the daemon do what a `fsxwarm preload` asks for."""
    if command.report is not None:
        if not wait or command.ready is not None:
            raise FsxwarmError(
                Kind.USAGE,
                "a report is written when the job has ended, and this command returns before",
                hint="leave --report out; then `fsxwarm jobs wait JOB --report FILE`",
            )
        check_writable(command.report)
    failed = None if command.retry_failed is None else asyncio.run(to_retry(command.retry_failed))
    wish = command.wanted.wish(failed)
    if failed is not None and not wish["files"] and not wish["paths"]:
        return _nothing(command)
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


def _nothing(command: Command) -> Exit:
    """End as a job without files would: a report named nothing to try again."""
    code = Exit.DONE
    if command.report is not None:
        code = write_empty_report(command.report, command.arguments)
    if command.json:
        emit_json({"schema": "fsxwarm.job/1", "exit": int(code), "job": None})
    return code


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
            failures = [] if json else first_failures(client, job)
            if report is not None:
                code = write_report(client, job, code, report, arguments)
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    if json:
        emit_json(job_document(job, code))
    elif job["final"] or until_ready:
        show_job(job, failures)
    return code
