"""What a user asked the daemon for, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from fsxwarm.errors import Exit, worst
from fsxwarm.model.order import Order
from fsxwarm.model.outcome import Reason
from fsxwarm.model.release import ALARMING
from fsxwarm.model.s3 import CheckS3

DEFAULT_PRIORITY: Final = 50
LOW_PRIORITY: Final = 0
"""What keep-warm jobs of the configuration run at."""
TOP_PRIORITY: Final = 100


class Kind(StrEnum):
    """What a job does with its files."""

    PRELOAD = "preload"
    RELEASE = "release"
    KEEP_WARM = "keep_warm"

    @property
    def warms(self) -> bool:
        """Whether the job wants its files resident."""
        return self is not Kind.RELEASE


class Phase(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    """Taken on and stored; its walk has not begun."""
    RUNNING = "running"
    RESTING = "resting"
    """A keep-warm job between two rounds."""
    DONE = "done"
    """All of its files have settled; `exit` tells how."""
    FAILED = "failed"
    """It could not be carried out; `error` tells why."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Nothing will change any more."""
        return self in {Phase.DONE, Phase.FAILED, Phase.CANCELLED}


class Identity(NamedTuple):
    """Whose rights apply: a user and the groups that the kernel named. Root's are nobody's limit."""

    uid: int
    gids: tuple[int, ...] = ()


ROOT: Final = Identity(0, (0,))


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a job wants beyond its files; fields that do not belong to its kind keep their defaults.

    `ready`: a share (0 to 1) of the bytes, in order, after which a preload counts as ready. `deadline`: seconds from
    the submission. `fit`: warm what fits instead of stopping when not all will. `used_before`: release only files last
    used before (seconds since the epoch). `dry_run`: release nothing, count what would be. `every`: seconds between
    two rounds of a keep-warm job. `check_s3`: how closely S3 is looked at before FSx is asked, or a file released.
    """

    ready: float | None = None
    deadline: float | None = None
    fit: bool = False
    order: Order = Order.LISTED
    used_before: int | None = None
    dry_run: bool = False
    every: float = 3600.0
    check_s3: CheckS3 = CheckS3.AUTO


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What somebody asks for. The faces have checked who asks; the engine applies `identity`'s rights to each file.

    `paths` are folders and files, `files` a list that keeps its order (both absolute); `include` and `exclude` are
    globs as in `fsxwarm.model.patterns`. `priority` is from 0 to 100, higher first. `label` is free text.
    """

    kind: Kind
    identity: Identity
    paths: tuple[bytes, ...] = ()
    files: tuple[bytes, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    options: JobOptions = field(default_factory=JobOptions)
    priority: int = DEFAULT_PRIORITY
    label: str = ""
    slurm_job_id: str = ""
    admin: bool = False
    """The faces vouch for an administrator: files of others may be released."""


class Count(NamedTuple):
    """Some files and their bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, other: Count) -> Count:
        """Both together."""
        return Count(self.files + other.files, self.bytes + other.bytes)

    def less(self, other: Count) -> Count:
        """What is left without the others, never less than nothing."""
        return Count(max(0, self.files - other.files), max(0, self.bytes - other.bytes))


NOTHING: Final = Count()


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a job has come: the files found, and how those that have settled did.

    A release job has no `restored`, but `released`, `already` (released before) and `left` (left
    alone). `left_in_flight` are those cancelled whose restore goes on at FSx; `unreadable` folders and list entries
    that could not be looked at; `skipped` what is no regular file; `scanned` means that the walk has ended.
    """

    found: Count = NOTHING
    resident: Count = NOTHING
    restored: Count = NOTHING
    failed: Count = NOTHING
    blocked: Count = NOTHING
    vanished: Count = NOTHING
    cancelled: Count = NOTHING
    released: Count = NOTHING
    already: Count = NOTHING
    left: Count = NOTHING
    left_in_flight: Count = NOTHING
    unreadable: int = 0
    skipped: int = 0
    scanned: bool = False
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why files did not become resident (`outcome.Reason`) or were left alone, with how many."""

    @property
    def settled(self) -> Count:
        """Files that will not change any more."""
        total = NOTHING
        for name in _SETTLED:
            total = total.plus(getattr(self, name))
        return total

    @property
    def remaining(self) -> Count:
        """Files that were found and have not settled."""
        return self.found.less(self.settled)

    @property
    def coverage(self) -> float:
        """Resident bytes of all bytes found, from 0 to 1; of nothing, all is resident."""
        warm = self.resident.plus(self.restored)
        if self.found.bytes:
            return min(1.0, warm.bytes / self.found.bytes)
        return 1.0 if warm.files >= self.found.files else 0.0

    def after(self, before: Counters) -> Counters:
        """These counters of a walk that was begun anew, as the same job's that had come to `before`.

        What it had restored is found resident by the new walk, or not yet found again; either way it stays restored.
        The same goes for what it had released.
        """
        if before == _NONE:
            return self
        now = replace(
            self,
            restored=before.restored.plus(self.restored),
            resident=self.resident.less(before.restored),
            released=before.released.plus(self.released),
            already=self.already.less(before.released),
        )
        found = self.found if self.scanned else _most(self.found, before.found)
        return replace(now, found=_most(found, now.settled))

    def exit(self, *, fit: bool) -> Exit:
        """The exit status of a job that has ended so; with `fit`, what did not fit is no failure of its own kind."""
        statuses = [Exit.DONE]
        if self.reasons.get(Reason.NO_ROOM, 0) and not fit:
            statuses.append(Exit.NO_ROOM)
        alarming = sum(self.reasons.get(reason, 0) for reason in ALARMING)
        if self.failed.files + self.blocked.files + self.unreadable + alarming:
            statuses.append(Exit.INCOMPLETE)
        return worst(*statuses)

    def gave_up(self, reason: Reason, in_flight: Count) -> Counters:
        """What becomes of them when a job lets go of all that has not settled."""
        rest = self.remaining
        if not rest.files:
            return self
        reasons = {**self.reasons, reason.value: self.reasons.get(reason.value, 0) + rest.files}
        if reason is Reason.NO_ROOM:
            return replace(self, blocked=self.blocked.plus(rest), reasons=reasons)
        return replace(self, cancelled=self.cancelled.plus(rest), left_in_flight=in_flight, reasons=reasons)


_NONE: Final = Counters()
_SETTLED: Final = ("resident", "restored", "failed", "blocked", "vanished", "cancelled", "released", "already", "left")


def _most(one: Count, other: Count) -> Count:
    return Count(max(one.files, other.files), max(one.bytes, other.bytes))


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store keeps it. Times in seconds since the epoch.

    `request.files` is empty once the job is stored (`listed` counts them, `digest` tells equal lists); the store hands
    the list out when the job runs. `rounds` counts the walks that a keep-warm job has ended; `resumed` how often it had
    to begin anew. `walk` names the walk that its failures are filed under: jobs that want the same share one.
    """

    id: str
    request: JobRequest
    created: float
    phase: Phase = Phase.QUEUED
    listed: int = 0
    digest: str = ""
    started: float | None = None
    ended: float | None = None
    ready: bool = False
    exit: Exit | None = None
    error: str = ""
    counters: Counters = field(default_factory=Counters)
    walk: str = ""
    rounds: int = 0
    resumed: int = 0
    next_round: float | None = None

    @property
    def owner(self) -> int:
        """The uid of whoever asked for it."""
        return self.request.identity.uid


@dataclass(frozen=True, slots=True)
class JobView:
    """A job at one moment, for those who watch. Rates per second over the last half minute, `eta` in seconds."""

    job: Job
    files_per_second: float = 0.0
    bytes_per_second: float = 0.0
    eta: float | None = None

    @property
    def counters(self) -> Counters:
        """How far it has come."""
        return self.job.counters


class Failure(NamedTuple):
    """A file that did not become resident, or was left alone. `number` grows; ask for more `after` it.

    `flags` are the HSM flags last seen (None: never seen), `errno` 0 where none is known; `size` in bytes. `in_flight`
    tells that its restore goes on at FSx.
    """

    number: int
    at: float
    path: bytes
    outcome: str
    reason: str
    errno: int = 0
    flags: int | None = None
    attempts: int = 0
    detail: str = ""
    size: int = 0
    in_flight: bool = False


class Event(NamedTuple):
    """Something that watchers of the daemon hear of. `kind` is one of a closed set, see the fields' use.

    `job_queued`, `job_running`, `job_ready`, `job_resting`, `job_done`, `job_failed`, `job_cancelled` carry `job`, and
    so do those of its files, for the record only: `file_unreadable`, and `file_` with an `Outcome`;
    `system_stalled`, `system_moves`, `paused`, `no_room`, `call_hung`, `file_stalled`, `file_wedged`, `cured`, `retry`,
    `not_allowed` are `fsxwarm.model.messages.Word`s; `servers_changed`, `made_room`, `room_short`, `trouble`; `missed`
    tells a slow watcher how many it did not get.
    """

    at: float
    kind: str
    job: str = ""
    data: Mapping[str, object] = MappingProxyType({})
