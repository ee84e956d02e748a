"""`fsxwarm wait`: until files are resident that somebody else restores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Final, TypedDict

import typer

from fsxwarm.app import App
from fsxwarm.cli.choose import ByDaemon, Local, daemon_or_not
from fsxwarm.cli.following import follow
from fsxwarm.cli.job_view import line
from fsxwarm.cli.latest import Latest, Marker, with_latest
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import (
    BackendOption,
    Braces,
    Exclude,
    FilesFrom,
    Include,
    Json,
    Nul,
    Paths,
    absolute,
    expanded,
    read,
    some_time,
)
from fsxwarm.cli.output import complain, console, emit_json
from fsxwarm.cli.preload import OrderOption
from fsxwarm.cli.progress import Mode, choose
from fsxwarm.cli.run import run
from fsxwarm.cli.schema import Leftovers, Tally, error_document, issues, tally, unusable
from fsxwarm.cli.tables import percent, show_leftovers
from fsxwarm.cli.wanted import Wanted
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.engine.order import Order
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.waiting import Waiting
from fsxwarm.errors import Exit, FsxwarmError, Kind, worst
from fsxwarm.model.s3 import is_uri
from fsxwarm.model.units import format_count, format_duration, format_size, parse_share

_BETWEEN: Final = 60.0
"""Seconds between two lines in a log."""


class WaitDocument(Leftovers):
    """`fsxwarm.wait/1`. `share` of the bytes was waited for; `left` are files of it that are not resident yet."""

    schema: str
    exit: int
    ready: bool
    share: float
    seconds: float
    found: Tally
    left: Tally
    vanished: int


class JobWaitDocument(TypedDict):
    """`fsxwarm.wait/1`, where a job of the daemon was waited for."""

    schema: str
    exit: int
    ready: bool
    share: float
    seconds: float
    job: wire.Job


def wait(  # noqa: PLR0913 - a command's arguments are its options
    paths: Paths = None,
    *,
    files_from: FilesFrom = None,
    nul: Nul = False,
    include: Include = None,
    exclude: Exclude = None,
    braces: Braces = False,
    latest: Latest = None,
    marker: Marker = None,
    order: OrderOption = Order.LISTED,
    ready: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Only until the first SHARE of the bytes is resident, in order: 0.2 or 20%.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Give up after so long: 90s, 15m, 2h. Exits with 4 then.", show_default=False
        ),
    ] = None,
    backend: BackendOption = None,
    local: Local = False,
    by_daemon: ByDaemon = False,
    json: Json = False,
) -> Exit:  # fmt: skip
    """Wait until files are resident that something else restores: a job of the daemon, a preload, other nodes.

    Asks FSx for nothing. If the daemon has a job of yours for the same PATHs, that job is waited for; else the files
    are looked at, cheaply, from here. Exits with 4 when the time is up first.
    """
    share = 1.0 if ready is None else read(parse_share, ready, "--ready")
    patience = some_time(timeout, "--timeout")
    began = time.monotonic()
    names = expanded(with_latest(paths, latest, marker, json=json), braces=braces)
    wanted = Wanted(names, files_from, nul, include, exclude)
    wanted.must_name_something()
    client = daemon_or_not(
        local=local,
        by_daemon=by_daemon,
        own={"--backend": backend is not None},
        here={
            "a list": files_from is not None or nul,
            "s3:// addresses": any(map(is_uri, names)),
            "--order": order is not Order.LISTED,
        },
    )
    if client is not None:
        with client:
            job = _job_for(client, names, include or (), exclude or (), share)
            if job is not None:
                until = None if patience is None else began + patience
                return _by_job(client, job, share, until, began, json=json)
        if by_daemon:
            raise FsxwarmError(
                Kind.NO_SUCH_JOB,
                "no job of yours that is under way is about these files",
                hint="ask for one with `fsxwarm preload`, or leave --daemon out to look at the files",
            )

    async def work(app: App) -> Exit:
        selection = wanted.select(app, order=order)
        policy = await app.policy()
        waiting = Waiting(app.hsm, selection, share, stat_settles=policy.stat_settles, say=complain)
        left = None if patience is None else began + patience - time.monotonic()
        in_time = await _in_time(waiting, left)
        code = _exit(waiting, selection, in_time=in_time)
        seconds = time.monotonic() - began
        if json:
            emit_json(_document(waiting, selection, share, code, seconds), app.hsm.choice)
        else:
            _show(waiting, selection, share, seconds, in_time=in_time)
        return code

    return run(work, json=json, backend=backend)


# ---- by looking ----------------------------------------------------------------------------------------------------


async def _in_time(waiting: Waiting, seconds: float | None) -> bool:
    try:
        async with ticking(lambda: _progress(waiting), in_log=_BETWEEN), asyncio.timeout(seconds):
            await waiting.run()
    except TimeoutError:
        return False
    return True


def _progress(waiting: Waiting) -> str:
    if not waiting.walked:
        return f"scanned {format_count(waiting.found.files, 'file')}, {format_size(waiting.found.bytes)}"
    left = waiting.left
    return f"waiting for {format_count(left.files, 'file')}, {format_size(left.bytes)}"


def _exit(waiting: Waiting, selection: Selection, *, in_time: bool) -> Exit:
    unsure = waiting.troubles.count or selection.missing.count or selection.outside.count
    return worst(Exit.DONE if in_time else Exit.DEADLINE, Exit.INCOMPLETE if unsure else Exit.DONE)


def _show(waiting: Waiting, selection: Selection, share: float, seconds: float, *, in_time: bool) -> None:
    out = console()
    took = format_duration(seconds)
    whole = f"{format_count(waiting.found.files, 'file')}, {format_size(waiting.found.bytes)}"
    part = f"the first {percent(share)} of {whole}," if share < 1 else whole
    if in_time:
        out.print(f"resident: {part} after {took}")
    else:
        left = waiting.left
        missing = f"{format_count(left.files, 'file')}, {format_size(left.bytes)}" if waiting.walked else "the walk"
        out.print(f"not resident after {took}: {missing} to go of {part.rstrip(',')}", style="yellow")
    if waiting.vanished:
        out.print(f"{format_count(waiting.vanished, 'path')} vanished meanwhile")
    show_leftovers(out, selection, waiting.troubles)


def _document(waiting: Waiting, selection: Selection, share: float, code: Exit, seconds: float) -> WaitDocument:
    return {
        "schema": "fsxwarm.wait/1",
        "exit": int(code),
        "ready": code is not Exit.DEADLINE,
        "share": share,
        "seconds": seconds,
        "found": tally(waiting.found),
        "left": tally(waiting.left),
        "vanished": waiting.vanished,
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(waiting.troubles),
    }


# ---- by a job of the daemon ----------------------------------------------------------------------------------------


def _job_for(
    client: Client, names: Sequence[str], include: Sequence[str], exclude: Sequence[str], share: float
) -> wire.Job | None:
    """The newest job under way for the same files that can tell when the share is resident.

    A job knows the share that it was asked for with `--ready`, and when all is done; it tells of no other share.
    """
    wanted = {absolute(name).rstrip(b"/") for name in names}
    for job in client.jobs():
        if job["kind"] != "preload" or job["final"] or job["listed"]:
            continue
        if (set(job["include"]), set(job["exclude"])) != (set(include), set(exclude)):
            continue
        if {naming.exact(path).rstrip(b"/") for path in job["paths"]} != wanted:
            continue
        if share == 1 or (job["options"].get("ready") or 0.0) >= share:
            return job
    return None


def _by_job(client: Client, job: wire.Job, share: float, until: float | None, began: float, *, json: bool) -> Exit:
    try:
        told = "" if json else f"waiting for job {job['id']} of the daemon"
        mode = choose(Mode.AUTO, json=json)
        job, code = follow(client, job, mode, until_ready=share < 1, told=told, until=until)
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    seconds = time.monotonic() - began
    if json:
        document: JobWaitDocument = {
            "schema": "fsxwarm.wait/1",
            "exit": int(code),
            "ready": code is Exit.DONE,
            "share": share,
            "seconds": seconds,
            "job": job,
        }
        emit_json(document)
    elif code is Exit.DEADLINE and not job["final"]:
        console().print(f"not ready after {format_duration(seconds)}: {line(job)}", style="yellow")
    else:
        console().print(line(job))
    return code
