"""The model's objects as the JSON that goes over the socket."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, cast

from fsxwarm import __version__
from fsxwarm.client import naming, wire
from fsxwarm.engine.counting import Counted
from fsxwarm.engine.overview import Overview
from fsxwarm.engine.plan import Health
from fsxwarm.engine.selection import Unusable
from fsxwarm.engine.status import Status
from fsxwarm.model.job import Counters, Failure, JobView
from fsxwarm.model.lease import Lease
from fsxwarm.model.tally import Coverage, Tally

_PUBLIC_EVENTS: Final = frozenset({"system_stalled", "system_moves", "paused"})
"""Events of no job that everybody may hear of, without their data."""


def job(view: JobView) -> wire.Job:
    """A job."""
    it, request = view.job, view.job.request
    return {
        "id": it.id,
        "kind": request.kind.value,
        "phase": it.phase.value,
        "final": it.phase.final,
        "owner": it.owner,
        "paths": [naming.name(path) for path in request.paths],
        "listed": it.listed,
        "digest": it.digest,
        "include": list(request.include),
        "exclude": list(request.exclude),
        "options": cast("wire.Options", asdict(request.options)),
        "priority": request.priority,
        "label": request.label,
        "slurm_job_id": request.slurm_job_id,
        "created": it.created,
        "started": it.started,
        "ended": it.ended,
        "ready": it.ready,
        "exit": None if it.exit is None else int(it.exit),
        "error": it.error,
        "rounds": it.rounds,
        "resumed": it.resumed,
        "next_round": it.next_round,
        "counters": _counters(view.counters),
        "coverage": view.counters.coverage,
        "files_per_second": view.files_per_second,
        "bytes_per_second": view.bytes_per_second,
        "eta": view.eta,
    }


def _counters(some: Counters) -> wire.Counters:
    counts = {
        name: {"files": value.files, "bytes": value.bytes} for name in wire.COUNTS for value in [getattr(some, name)]
    }
    rest = {"unreadable": some.unreadable, "skipped": some.skipped, "scanned": some.scanned}
    return cast("wire.Counters", {**counts, **rest, "reasons": dict(some.reasons)})


def failure(some: Failure) -> wire.Failure:
    """A file that did not become resident."""
    fields = some._asdict()
    return cast("wire.Failure", {**fields, **naming.name(some.path)})


def lease(some: Lease) -> wire.Lease:
    """A lease."""
    return cast("wire.Lease", {**asdict(some), **naming.name(some.path)})


def _tally(some: Tally) -> wire.Count:
    return {"files": some.files, "bytes": some.bytes}


def coverage(path: bytes, found: Status) -> wire.Coverage:
    """What a survey found."""
    return {**naming.name(path), **_found(found)}


def counted(counted: Counted) -> wire.Counted:
    """What was counted."""
    found = counted.status
    more = {"missing": _unusable(counted.missing), "outside": _unusable(counted.outside)}
    answer = cast("wire.Counted", {**_found(found), **more})
    if found.flags is not None:
        names = [one.name for one in fields(found.flags)]
        answer["flags"] = cast("wire.Flagged", {name: _tally(getattr(found.flags, name)) for name in names})
    if found.depth is not None:
        answer["folders"] = [{**naming.name(path), **_share(some)} for path, some in sorted(found.folders.items())]
    return answer


def _share(some: Coverage) -> wire.Share:
    return {"resident": _tally(some.resident), "released": _tally(some.released), "coverage": some.share}


def _unusable(some: Unusable) -> wire.Unusable:
    return {"count": some.count, "first": [naming.name(path) for path in some.first]}


def _found(found: Status) -> wire.Found:
    return {
        **_share(found.all),
        "unknown": _tally(found.unknown),
        "vanished": found.vanished,
        "skipped": found.skipped,
        "troubles": found.troubles.count,
        "first_troubles": [
            {**naming.name(trouble.path), "errno": trouble.errno, "text": trouble.text or os.strerror(trouble.errno)}
            for trouble in found.troubles.first
        ],
    }


def health(some: Health, *, admin: bool) -> wire.Health:
    """How the daemon fares; what may name other people's paths is for administrators."""
    answer: wire.Health = {
        "ok": not some.problems,
        "version": __version__,
        "draining": some.draining,
        "started": some.started,
        "stalled": some.stalled,
        "abandoned": some.abandoned,
        "jobs": dict(some.jobs),
        "lanes": [cast("wire.Lane", asdict(lane)) for lane in some.lanes],
        "totals": dict(some.totals),
        "space": [{**naming.name(mount), "free": free, "total": total} for mount, (free, total) in some.free.items()],
    }
    if admin:
        answer["problems"] = list(some.problems)
        answer["inventory"] = [{**naming.name(path), **_plain(what)} for path, what in some.inventory.items()]
    return answer


def overview(some: Overview, fares: Health, *, admin: bool) -> wire.Overview:
    """The whole at a glance."""
    return {
        "at": some.at,
        "limit": some.limit,
        "health": health(fares, admin=admin),
        "jobs": [job(view) for view in some.jobs],
        "slowest": [
            {
                **naming.name(one.path),
                "size": one.size,
                "jobs": list(one.jobs),
                "phase": one.phase,
                "seconds": one.seconds,
                "moved": one.moved if 0 <= one.moved <= one.size else None,
                "attempts": one.attempts,
            }
            for one in some.slowest
        ],
        "rooms": [
            {**naming.name(one.mount), "free": one.free, "total": one.total, "low": one.low, "high": one.high,
             "dry_run": one.dry_run}
            for one in some.rooms
        ],
        "stocks": [
            {
                **naming.name(one.path),
                "resident": {"files": one.resident_files, "bytes": one.resident_bytes},
                "released": {"files": one.released_files, "bytes": one.released_bytes},
                "at": one.at,
            }
            for one in some.stocks
        ],
        "past": [cast("wire.Sample", one._asdict()) for one in some.past],
    }  # fmt: skip


def event(at: float, kind: str, job: str, data: Mapping[str, object]) -> wire.Event:
    """An event with all of its data."""
    return {"at": at, "kind": kind, "job": job, "data": _plain(data)}


def public_event(at: float, kind: str) -> wire.Event | None:
    """What everybody may hear of an event; None for most."""
    return {"at": at, "kind": kind, "job": "", "data": {}} if kind in _PUBLIC_EVENTS else None


def _plain(data: Mapping[str, object]) -> dict[str, object]:
    plain: dict[str, object] = {}
    for key, value in data.items():
        if isinstance(value, bytes):
            text = value.decode("utf-8", "backslashreplace")
            plain[key] = text
            if text.encode() != value:
                plain[f"{key}_b64"] = base64.b64encode(value).decode("ascii")
        else:
            plain[key] = _value(value)
    return plain


def _value(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {str(key): _value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(inner) for inner in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
