"""What FSx itself finds in S3 when it restores: the objects that moto holds, and the bucket's policy.

The sentences are those of the FSx for Lustre user guide ("Logging with Amazon CloudWatch Logs", restore events).
"""

from __future__ import annotations

import fnmatch
import json
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.exceptions import MissingBucket
from moto.s3.models import s3_backends

from fsxwarm.sim.faults import Fault

ROLE = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/fsx"
"""Whom FSx reads as."""

_ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
_SENTENCES = {
    Fault.ACCESS_DENIED: "access was denied to S3 object {key} in S3 bucket {bucket}.",
    Fault.UNSUPPORTED_CLASS: "S3 object {key} in bucket {bucket} was in an unsupported {storage}.",
    Fault.OBJECT_MISSING: "S3 object with key {key} was not found in S3 bucket {bucket}.",
    Fault.BUCKET_MISSING: "S3 bucket {bucket} does not exist.",
    Fault.DISK_FULL: "there was no available storage space on the file system.",
}


def put(bucket: str, key: str, size: int, storage_class: str) -> None:
    """Put an object there, without a request: a world has hundreds of them."""
    _backend().put_object(bucket, key, b"x" * size, storage=storage_class)


def fault_of(bucket: str, key: str) -> Fault | None:
    """Why FSx cannot read an object; None if it can."""
    try:
        found = _backend().get_bucket(bucket)
    except MissingBucket:
        return Fault.BUCKET_MISSING
    if _denied(found.policy, f"arn:aws:s3:::{bucket}/{key}"):
        return Fault.ACCESS_DENIED
    stored = found.keys.get(key)
    if stored is None:
        return Fault.OBJECT_MISSING
    if stored.storage_class in _ARCHIVED and stored.expiry_date is None:
        return Fault.UNSUPPORTED_CLASS
    return None


def sentence(failure: str, bucket: str, key: str) -> str:
    """What FSx logs of a restore that failed."""
    stored = None if failure == Fault.BUCKET_MISSING else _backend().get_bucket(bucket).keys.get(key)
    storage = "" if stored is None else stored.storage_class
    why = _SENTENCES[Fault(failure)].format(bucket=bucket, key=key, storage=storage)
    return f"Failed to restore file because {why}"


def deny(bucket: str, keys: list[str]) -> str:
    """A policy that keeps FSx, and nobody else, from reading some objects."""
    resources = [f"arn:aws:s3:::{bucket}/{key}" for key in keys]
    statement = {"Effect": "Deny", "Principal": {"AWS": ROLE}, "Action": "s3:GetObject", "Resource": resources}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _denied(policy: bytes | None, resource: str) -> bool:
    statements = json.loads(policy)["Statement"] if policy else []
    return any(
        fnmatch.fnmatchcase(resource, pattern)
        for statement in statements
        if statement["Effect"] == "Deny" and statement["Principal"] == {"AWS": ROLE}
        for pattern in statement["Resource"]
    )


def _backend() -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
