"""AWS as fsxwarm needs it: file systems and their associations, objects in S3, release tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from fsxwarm.model.association import Association, FileSystem
from fsxwarm.model.s3 import Stored, ThawTier


class Fault(StrEnum):
    """Why a call to AWS failed, as far as it matters what to do about it."""

    NO_CREDENTIALS = "no_credentials"
    NO_REGION = "no_region"
    EXPIRED = "expired"
    DENIED = "denied"
    NOT_FOUND = "not_found"
    THROTTLED = "throttled"
    BUSY = "busy"
    """A task is executing already; one at a time may."""
    UNREACHABLE = "unreachable"
    INVALID = "invalid"
    """The service finds fault with what was asked."""
    OTHER = "other"


ADVICE: Mapping[Fault, str] = {
    Fault.NO_CREDENTIALS: "attach an instance profile, or set AWS_PROFILE (try `aws sts get-caller-identity`)",
    Fault.NO_REGION: "set AWS_REGION",
    Fault.EXPIRED: "renew the credentials (`aws sso login`)",
    Fault.DENIED: "allow the action: the policies in deploy/iam name what each feature needs",
    Fault.NOT_FOUND: "check the name and the region",
    Fault.THROTTLED: "AWS asks for fewer calls: run again later",
    Fault.BUSY: "wait until the running task has ended",
    Fault.UNREACHABLE: "check the network: a private subnet needs VPC endpoints for FSx, S3 and CloudWatch Logs",
    Fault.INVALID: "see what the service says",
    Fault.OTHER: "see what the service says",
}


class CloudError(Exception):
    """A call to AWS that failed for good: `action` is its IAM action (`s3:ListBucket`), `code` the service's word."""

    def __init__(self, fault: Fault, action: str, code: str, message: str) -> None:
        super().__init__(f"{action}: {message or code}")
        self.fault = fault
        self.action = action
        self.code = code
        self.message = message

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.fault is Fault.DENIED:
            return f"allow {self.action}: the policies in deploy/iam name what each feature needs"
        return ADVICE[self.fault]


class Listed(NamedTuple):
    """A page of a listing, in the order of the keys' UTF-8 bytes; `more` tells that there are keys behind it."""

    objects: Mapping[str, Stored]
    last: str
    more: bool


class Content(NamedTuple):
    """What an object holds: its first 16 MiB at most; `whole` tells whether that is all of it."""

    body: bytes
    whole: bool


class TaskState(StrEnum):
    """Where a data repository task stands."""

    PENDING = "PENDING"
    EXECUTING = "EXECUTING"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    CANCELED = "CANCELED"
    CANCELING = "CANCELING"

    @property
    def ended(self) -> bool:
        """Nothing more will happen."""
        return self in {TaskState.FAILED, TaskState.SUCCEEDED, TaskState.CANCELED}


@dataclass(frozen=True, slots=True)
class Task:
    """A data repository task: files in all, released and failed so far; `failure` is why it failed."""

    id: str
    state: TaskState
    total: int = 0
    released: int = 0
    failed: int = 0
    failure: str = ""


class Cloud(Protocol):
    """The calls fsxwarm makes to AWS. Each may raise `CloudError`; throttling has been waited for by then."""

    async def file_systems(self, ids: Sequence[str] = ()) -> list[FileSystem]:
        """The Lustre file systems of this account and region, or those named (fsx:DescribeFileSystems)."""
        ...

    async def associations(self, system: str) -> list[Association]:
        """A file system's associations, without its legacy link (fsx:DescribeDataRepositoryAssociations)."""
        ...

    async def list_objects(self, bucket: str, prefix: str, after: str) -> Listed:
        """One page of at most 1,000 keys behind `after` (s3:ListBucket), with who is thawed."""
        ...

    async def head(self, bucket: str, key: str) -> Stored | None:
        """Look at one object (s3:GetObject); None if there is none."""
        ...

    async def thaw(self, bucket: str, key: str, tier: ThawTier, days: int) -> None:
        """Ask for a readable copy of an archived object for some days (s3:RestoreObject). Again is no error."""
        ...

    async def read_object(self, bucket: str, key: str) -> Content:
        """The bytes of an object, its first 16 MiB at most (s3:GetObject)."""
        ...

    async def release_task(self, system: str, paths: Sequence[str], days: int, token: str, report: str) -> Task:
        """Begin a task that releases what was not used for whole `days` (fsx:CreateDataRepositoryTask).

        At most 32 paths within the file system; `report` is an S3 address for its list of failures, empty for none.
        The same `token` twice begins one task. Raises BUSY while another task runs.
        """
        ...

    async def task(self, id: str) -> Task:  # noqa: A002 - the service's word
        """Look at a task (fsx:DescribeDataRepositoryTasks)."""
        ...

    async def who(self) -> str:
        """The ARN of the caller (sts:GetCallerIdentity, which needs no permission)."""
        ...

    async def denied(self, arn: str, action: str, resources: Sequence[str]) -> bool | None:
        """Whether a principal's policies deny an action on some resources, all of them ARNs
        (iam:SimulatePrincipalPolicy); None if that may not be asked.
        """
        ...
