"""How jobs of the daemon look."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from fsxwarm.cli.output import complain, console, name_errors, name_some, safe, shortened
from fsxwarm.cli.tables import percent, plain_table
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.client.glance import SETTLED, settled, user, what
from fsxwarm.client.missing import left_alone, meaning, shortfall
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_NAMED: Final = 10
"""Paths of a job that is shown by itself."""
_LOOKED_THROUGH: Final = 1000
"""Failures among which some are looked for to be named: one answer of the daemon."""
_UNREAD: Final = 5
"""Paths that could not be looked at and are named."""
_UNREADABLE: Final = "unreadable"
_NAMES: Final = {"already": "released already", "left": "left alone", "resident": "resident already"}


def line(job: wire.Job) -> str:
    """Where a job stands, in one line."""
    counters = job["counters"]
    found, done = counters["found"], settled(job)["files"]
    parts = [f"job {job['id']} {job['phase']}"]
    if job["phase"] == "running" or found["files"]:
        parts.append(f"{done:,} of {format_count(found['files'], 'file')}, {format_size(found['bytes'])}")
    if not counters["scanned"] and not job["final"]:
        parts.append("still looking")
    if job["bytes_per_second"]:
        parts.append(format_rate(job["bytes_per_second"]))
    if job["eta"] is not None and not job["final"]:
        parts.append(f"{format_duration(job['eta'])} left")
    if bad := shortfall(job):
        parts.append(bad)
    if job["final"] and job["exit"]:
        parts.append(f"exit {job['exit']}")
    return "; ".join(parts)


def show_jobs(jobs: Sequence[wire.Job]) -> None:
    """Print a table of jobs."""
    table = plain_table("job", ["owner", "kind", "phase", "priority", "files", "settled", "age"])
    table.columns[0].no_wrap = True
    table.columns[0].min_width = max((len(job["id"]) for job in jobs), default=0)
    table.add_column("what", overflow="fold")  # the one that gives way where the terminal is narrow
    now = time.time()
    for job in jobs:
        found, done = job["counters"]["found"]["files"], settled(job)["files"]
        share = percent(done / found) if found else ""
        age = format_duration(max(0.0, now - job["created"]))
        who, priority, kind = user(job["owner"]), str(job["priority"]), job["kind"].replace("_", " ")
        phase = f"exit {job['exit']}" if job["phase"] == "done" and job["exit"] else job["phase"]
        table.add_row(job["id"], who, kind, phase, priority, f"{found:,}", share, age, safe(what(job)))
    console().print(table)


def show_origin(job: wire.Job) -> None:
    """Print who asked for a job, what for, and when."""
    out = console()
    now = time.time()
    kind = job["kind"].replace("_", " ")
    for name in job["paths"][:_NAMED]:
        out.print(f"{kind} {safe(name['path'])}")
    if (more := len(job["paths"]) - _NAMED) > 0:
        out.print(f"and {format_count(more, 'more path')}")
    if job["listed"]:
        out.print(f"{kind} a list of {format_count(job['listed'], 'file')}")
    parts = [f"asked for by {user(job['owner'])} {_ago(now, job['created'])}", f"priority {job['priority']}"]
    if job["label"]:
        parts.append(f"label {safe(job['label'])}")
    if job["slurm_job_id"]:
        parts.append(f"Slurm job {safe(job['slurm_job_id'])}")
    if job["started"] is not None and job["ended"] is not None:
        parts.append(f"took {format_duration(max(0.0, job['ended'] - job['started']))}")
    if job["next_round"] is not None and not job["final"]:
        parts.append(f"next round in {format_duration(max(0.0, job['next_round'] - now))}")
    out.print("; ".join(parts))


def _ago(now: float, then: float) -> str:
    return f"{format_duration(max(0.0, now - then))} ago"


def first_failures(client: Client, job: wire.Job) -> list[wire.Failure]:
    """The first files of a job that has ended to be named beside its counts, if there are any."""
    counters = job["counters"]
    if not (job["final"] and (counters["reasons"] or counters["unreadable"])):
        return []
    try:
        return list(islice(client.failures(job["id"]), _LOOKED_THROUGH))
    except FsxwarmError as error:
        complain(f"which files cannot be told: {error.message}")
        return []


def show_job(job: wire.Job, failures: Sequence[wire.Failure] = ()) -> None:
    """Print all of a job, with the names of some files that did not become resident, or were left alone."""
    out = console()
    out.print(line(job))
    table = plain_table("", ["files", "size"])
    counters = job["counters"]
    for name in SETTLED:
        count: wire.Count = counters[name]
        if count["files"]:
            table.add_row(_NAMES.get(name, name), f"{count['files']:,}", format_size(count["bytes"]))
    if table.row_count:
        out.print(table)
    unreadable = [one for one in failures if one["outcome"] == _UNREADABLE]
    for word, files in sorted(counters["reasons"].items()):
        out.print(f"{format_count(files, 'file')}: {_why(job, word)}")
        if some := [one for one in failures if one["reason"] == word and one["outcome"] != _UNREADABLE]:
            out.print(f"  {name_some(list(map(naming.exact, some)), files)}")
            if errnos := Counter(one["errno"] for one in some if one["errno"]):
                out.print(f"  {name_errors(errnos, next((one['detail'] for one in some if one['errno']), ''))}")
    if blind := counters["unreadable"]:
        out.print(f"{format_count(blind, 'path')} could not be looked at{':' if unreadable else ''}")
        for one in unreadable[:_UNREAD]:
            out.print(f"  {shortened(safe(one['path']))}: {shortened(safe(one['detail']))}")
        if unreadable and blind > _UNREAD:
            out.print(f"  and {blind - _UNREAD:,} more")
    if job["error"]:
        out.print(safe(job["error"]))


def _why(job: wire.Job, reason: str) -> str:
    """Why files are not resident and what to do, or why a release left them alone."""
    if job["kind"] == "release":
        return left_alone(reason)
    why, todo = meaning(reason, fit=bool(job["options"].get("fit")))
    return f"{why}; {todo}" if todo not in {"", "nothing"} else why


def show_failures(failures: Sequence[wire.Failure]) -> None:
    """Name files that did not become resident, or were left alone, a line each."""
    out = console()
    for failure in failures:
        outcome, detail = failure["outcome"], safe(failure["detail"])
        if outcome == _UNREADABLE:
            said = f"could not be looked at: {detail}"
        elif outcome == "left":
            said = f"left alone, {left_alone(failure['reason'])}"
        else:
            said = f"{outcome}, {failure['reason'].replace('_', ' ')}"
            if failure["errno"]:
                said += f", {name_errors({failure['errno']: 1}, failure['detail'])}"
            elif detail:
                said += f": {detail}"
        out.print(f"{safe(failure['path'])}: {said}")


def job_document(job: wire.Job, code: Exit) -> dict[str, Any]:
    """A job as the object that `--json` prints: `fsxwarm.job/1`."""
    return {"schema": "fsxwarm.job/1", "exit": int(code), "job": job}


def exit_of(job: wire.Job) -> Exit:
    """The status that a command for this job ends with."""
    if job["exit"] is not None:
        return Exit(job["exit"])
    return Exit.INTERRUPTED if job["phase"] == "cancelled" else Exit.DONE
