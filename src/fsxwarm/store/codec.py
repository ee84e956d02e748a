"""Jobs as text, and lists of files as bytes."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from fsxwarm.errors import Exit
from fsxwarm.model.job import Count, Counters, Identity, Job, JobOptions, JobRequest, Kind, Phase
from fsxwarm.model.order import Order
from fsxwarm.model.s3 import CheckS3


def write_job(job: Job, known: dict[int, str] | None = None) -> str:
    """A job as JSON, without its id and list. Bytes that are no UTF-8 become lone surrogates, as `os.fsdecode` does.

    `known` are counters that have been written, by identity, and learns: many jobs may have the same.
    """
    known = {} if known is None else known
    counters = known.get(id(job.counters))
    if counters is None:
        counters = known[id(job.counters)] = json.dumps(_counters(job.counters), separators=(",", ":"))
    return f'{_without_counters(job)[:-1]},"counters":{counters}}}'


def _without_counters(job: Job) -> str:
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
            "admin": request.admin,
            "created": job.created,
            "phase": job.phase,
            "listed": job.listed,
            "digest": job.digest,
            "started": job.started,
            "ended": job.ended,
            "ready": job.ready,
            "exit": job.exit,
            "error": job.error,
            "walk": job.walk,
            "rounds": job.rounds,
            "resumed": job.resumed,
            "next_round": job.next_round,
        },
        separators=(",", ":"),
    )


def read_job(number: int, text: str) -> Job:
    """What `write_job` wrote in this version: a step of the schema brings what older ones wrote up to date."""
    body: dict[str, Any] = json.loads(text)
    options = dict(body["options"])
    options |= {"order": Order(options["order"]), "check_s3": CheckS3(options["check_s3"])}
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
        body["admin"],
    )
    return Job(
        str(number),
        request,
        body["created"],
        Phase(body["phase"]),
        body["listed"],
        body["digest"],
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


def digest(data: bytes) -> str:
    """What tells written lists apart."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers below 2^64, eight bytes each."""
    return array("Q", numbers).tobytes()


def read_numbers(data: bytes) -> Sequence[int]:
    """What `write_numbers` wrote, sorted, in as little memory."""
    numbers = array("Q", data)
    return array("Q", sorted(numbers))
