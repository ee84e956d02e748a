"""Why restores fail, in FSx's own words: the sentences of its CloudWatch log.

The sentences are those of the FSx for Lustre user guide ("Logging with Amazon CloudWatch Logs", restore events).
Whether a real event holds the bare sentence or JSON around it is not documented, so it is looked for anywhere.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from fsxwarm.model.outcome import Reason

FILTER: Final = '"Failed to restore file"'
"""A CloudWatch filter pattern that lets all these sentences through, and little else."""


class Failure(NamedTuple):
    """What one event says: `key` is empty where it speaks of all, not of one object; `bucket` where it names none."""

    reason: Reason
    bucket: str
    key: str


_BUCKET: Final = r"(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])"
_SENTENCES: Final = (
    (
        re.compile(rf"access was denied to S3 object (?P<key>.+) in (?:S3 )?bucket {_BUCKET}", re.DOTALL),
        Reason.ACCESS_DENIED,
    ),
    (
        re.compile(rf"because S3 object (?P<key>.+) in (?:S3 )?bucket {_BUCKET} was in an unsupported", re.DOTALL),
        Reason.STORAGE_CLASS,
    ),
    (
        re.compile(rf"because S3 object with key (?P<key>.+) was not found in (?:S3 )?bucket {_BUCKET}", re.DOTALL),
        Reason.OBJECT_MISSING,
    ),
    (re.compile(rf"because S3 bucket {_BUCKET} does not exist"), Reason.BUCKET_MISSING),
    (re.compile(r"because there was no available storage space"), Reason.DISK_FULL),
)
_START: Final = "Failed to restore file"


def read_event(message: str) -> Failure | None:
    """Find out what an event says; None for one that is about something else."""
    for text in _texts(message):
        start = text.find(_START)
        if start < 0:
            continue
        for sentence, reason in _SENTENCES:
            found = sentence.search(text, start)
            if found is not None:
                groups = found.groupdict()
                return Failure(reason, groups.get("bucket", ""), groups.get("key", ""))
    return None


def _texts(message: str) -> list[str]:
    """The strings of an event: those inside JSON, where escapes are undone, or the event itself."""
    try:
        document = json.loads(message)
    except ValueError:
        return [message]
    return _strings(document)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _strings(inner)]
    return []
