"""How jobs of the daemon look."""

from __future__ import annotations

import pwd
import time
from collections.abc import Sequence
from typing import Any, Final

from fsxwarm.cli.output import console, safe
from fsxwarm.cli.tables import percent, plain_table
from fsxwarm.client import wire
from fsxwarm.errors import Exit
from fsxwarm.model.outcome import MEANINGS, Reason
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_SHOWN: Final = ("resident", "restored", "released", "already", "left", "failed", "blocked", "vanished", "cancelled")
_NAMES: Final = {"already": "released already", "left": "left alone", "resident": "resident already"}


def line(job: wire.Job) -> str:
    """Where a job stands, in one line."""
    counters = job["counters"]
    found, done = counters["found"], sum(counters[name]["files"] for name in _SHOWN)
    parts = [f"job {job['id']} {job['phase']}"]
    if job["phase"] == "running" or found["files"]:
        parts.append(f"{done:,} of {format_count(found['files'], 'file')}, {format_size(found['bytes'])}")
    if not counters["scanned"] and not job["final"]:
        parts.append("still looking")
    if job["bytes_per_second"]:
        parts.append(format_rate(job["bytes_per_second"]))
    if job["eta"] is not None and not job["final"]:
        parts.append(f"{format_duration(job['eta'])} left")
    if failed := counters["failed"]["files"] + counters["blocked"]["files"]:
        parts.append(f"{failed:,} failed or blocked")
    return "; ".join(parts)


def show_jobs(jobs: Sequence[wire.Job]) -> None:
    """Print a table of jobs."""
    table = plain_table("job", ["owner", "kind", "phase", "priority", "files", "settled", "age", "what"])
    now = time.time()
    for job in jobs:
        counters = job["counters"]
        done = sum(counters[name]["files"] for name in _SHOWN)
        found = counters["found"]["files"]
        share = percent(done / found) if found else ""
        age = format_duration(max(0.0, now - job["created"]))
        what = safe(job["label"] or ", ".join(name["path"] for name in job["paths"][:2]) or f"{job['listed']:,} listed")
        who, priority = user(job["owner"]), str(job["priority"])
        table.add_row(job["id"], who, job["kind"], job["phase"], priority, f"{found:,}", share, age, what)
    console().print(table)


def show_job(job: wire.Job) -> None:
    """Print all of a job."""
    out = console()
    out.print(line(job))
    table = plain_table("", ["files", "size"])
    counters = job["counters"]
    for name in _SHOWN:
        count: wire.Count = counters[name]
        if count["files"]:
            table.add_row(_NAMES.get(name, name), f"{count['files']:,}", format_size(count["bytes"]))
    if table.row_count:
        out.print(table)
    for word, files in sorted(counters["reasons"].items()):
        meaning = MEANINGS[Reason(word)] if word in set(Reason) else None
        what = f"{meaning.what}; {meaning.todo}" if meaning else word.replace("_", " ")
        out.print(f"{format_count(files, 'file')}: {what}")
    if counters["unreadable"]:
        out.print(f"{format_count(counters['unreadable'], 'path')} could not be looked at")
    if job["error"]:
        out.print(safe(job["error"]))


def show_failures(failures: Sequence[wire.Failure]) -> None:
    """Name files that did not become resident."""
    out = console()
    for failure in failures:
        detail = f": {safe(failure['detail'])}" if failure["detail"] else ""
        out.print(f"{safe(failure['path'])}: {failure['outcome']}, {failure['reason']}{detail}")


def job_document(job: wire.Job, code: Exit) -> dict[str, Any]:
    """A job as the object that `--json` prints: `fsxwarm.job/1`."""
    return {"schema": "fsxwarm.job/1", "exit": int(code), "job": job}


def exit_of(job: wire.Job) -> Exit:
    """The status that a command for this job ends with."""
    if job["exit"] is not None:
        return Exit(job["exit"])
    return Exit.INTERRUPTED if job["phase"] == "cancelled" else Exit.DONE


def user(uid: int) -> str:
    """A user's name, or number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
