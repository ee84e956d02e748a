"""Jobs as text, and lists of files as bytes."""

from __future__ import annotations

import json
import os
import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from fsxwarm.errors import Exit
from fsxwarm.model.job import Count, Counters, Identity, Job, JobOptions, JobRequest, Kind, Phase
from fsxwarm.model.order import Order


def write_job(job: Job) -> str:
    """A job as JSON, without its id and list. Bytes that are no UTF-8 become lone surrogates, as `os.fsdecode` does."""
    request, options = job.request, job.request.options
    return json.dumps(
        {
            "kind": request.kind,
            "uid": request.identity.uid,
            "gids": request.identity.gids,
            "paths": [os.fsdecode(path) for path in request.paths],
            "include": request.include,
            "exclude": request.exclude,
            "options": {field.name: getattr(options, field.name) for field in fields(options)},
            "priority": request.priority,
            "label": request.label,
            "slurm_job_id": request.slurm_job_id,
            "created": job.created,
            "phase": job.phase,
            "listed": job.listed,
            "started": job.started,
            "ended": job.ended,
            "ready": job.ready,
            "exit": job.exit,
            "error": job.error,
            "counters": _counters(job.counters),
            "walk": job.walk,
            "rounds": job.rounds,
            "resumed": job.resumed,
            "next_round": job.next_round,
        },
        separators=(",", ":"),
    )


def read_job(number: int, text: str) -> Job:
    """What `write_job` wrote. Fields that a later version has added keep their defaults."""
    body: dict[str, Any] = json.loads(text)
    options = {**body["options"], "order": Order(body["options"]["order"])}
    request = JobRequest(
        Kind(body["kind"]),
        Identity(body["uid"], tuple(body["gids"])),
        tuple(os.fsencode(path) for path in body["paths"]),
        (),
        tuple(body["include"]),
        tuple(body["exclude"]),
        JobOptions(**options),
        body["priority"],
        body["label"],
        body["slurm_job_id"],
    )
    return Job(
        str(number),
        request,
        body["created"],
        Phase(body["phase"]),
        body["listed"],
        body["started"],
        body["ended"],
        body["ready"],
        None if body["exit"] is None else Exit(body["exit"]),
        body["error"],
        _read_counters(body["counters"]),
        body["walk"],
        body["rounds"],
        body["resumed"],
        body["next_round"],
    )


def _counters(counters: Counters) -> dict[str, Any]:
    return {field.name: getattr(counters, field.name) for field in fields(counters)}


def _read_counters(body: dict[str, Any]) -> Counters:
    values: dict[str, Any] = {name: Count(*v) if isinstance(v, list) else v for name, v in body.items()}
    return Counters(**values)


def write_list(files: Iterable[bytes]) -> bytes:
    """Paths, which hold no NUL, in little space."""
    return zlib.compress(b"\0".join(files), level=1)


def read_list(data: bytes) -> tuple[bytes, ...]:
    """What `write_list` wrote."""
    joined = zlib.decompress(data)
    return tuple(joined.split(b"\0")) if joined else ()


def write_keys(keys: Sequence[tuple[int, int]]) -> bytes:
    """Identities of files (st_dev, st_ino), eight bytes each number."""
    return array("Q", [number for key in keys for number in key]).tobytes()


def read_keys(data: bytes) -> list[tuple[int, int]]:
    """What `write_keys` wrote."""
    return list(struct.iter_unpack("=QQ", data))
