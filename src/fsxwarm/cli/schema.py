"""The objects that `--json` prints. Names are stable: fields may be added, none is renamed or removed within a version.

Each object has `schema` (name and version) and `exit` (the exit status of the command). Sizes are bytes, times are
seconds since the epoch. A file is an object with `path`, and `path_b64` (base64 of the exact bytes) when its name is
not UTF-8.
"""

from __future__ import annotations

import base64
import errno
import os
from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

from fsxwarm.cli.output import show_path
from fsxwarm.engine import selection
from fsxwarm.engine.looks import Troubles
from fsxwarm.errors import FsxwarmError
from fsxwarm.model import tally as model
from fsxwarm.model.entry import Trouble


class FilePath(TypedDict):
    """A file's name."""

    path: str
    path_b64: NotRequired[str]


class Error(TypedDict):
    """Why a command did not start or gave up."""

    kind: str
    message: str
    hint: str


class ErrorDocument(TypedDict):
    """Instead of the command's own object, when there is nothing to tell but an error: `fsxwarm.error/1`."""

    schema: str
    exit: int
    error: Error


class Tally(TypedDict):
    """Files, and the sum of their sizes."""

    files: int
    bytes: int


class Issue(FilePath):
    """A path at which something failed: `errno` as the system gives it, `text` in words."""

    errno: int
    text: str


class Issues(TypedDict):
    """How many issues there are, and the first of them."""

    count: int
    first: list[Issue]


class Unusable(TypedDict):
    """List entries of no use: how many, and the first of them."""

    count: int
    first: list[FilePath]


class BackendUsed(TypedDict):
    """How Lustre's HSM was spoken to: `native` or `lfs`, and why."""

    name: str
    why: str


class Leftovers(TypedDict):
    """What a selection could not take: list entries that do not exist or are not on Lustre, unreadable paths.

    `backend` is left out when nothing was asked of Lustre.
    """

    missing: Unusable
    outside: Unusable
    troubles: Issues
    backend: NotRequired[BackendUsed]


class Folder(FilePath):
    """One folder of `status --by-folder`."""

    resident: Tally
    released: Tally
    coverage: float


class Flags(TypedDict):
    """`status --flags`: a file may count several times. `unread` counts files whose flags may not be read."""

    dirty: Tally
    never_archived: Tally
    pinned: Tally
    lost: Tally
    restoring: Tally
    unread: Tally


class StatusDocument(Leftovers):
    """`fsxwarm.status/1`. `coverage` is the resident share of the bytes whose state is known, between 0 and 1.

    `unlinked` are paths outside every association; left out where there are none, or it is not known.
    """

    schema: str
    exit: int
    resident: Tally
    released: Tally
    unknown: Tally
    coverage: float
    vanished: int
    skipped: int
    flags: NotRequired[Flags]
    folders: NotRequired[list[Folder]]
    unlinked: NotRequired[list[FilePath]]


class Left(Tally):
    """Files left alone for one reason, and the first of them."""

    first: list[FilePath]


class Room(TypedDict):
    """`release --until-free`: bytes. `gained` is what the releases brought; it may show up in free space late."""

    total: int
    wanted: int
    free_before: int
    free_after: int
    gained: int
    reached: bool


class ReleaseDocument(Leftovers):
    """`fsxwarm.release/1`. With `dry_run`, `released` is what would have been.

    `already` had no space to give back, `recent` were used after --older-than. `left` counts the files left alone by
    reason: dirty, never_archived, pinned, lost, restoring, busy, changed, not_yours, unreadable, hung. `troubles` are
    paths at which a call failed, with its errno: they were left alone as well.
    """

    schema: str
    exit: int
    dry_run: bool
    released: Tally
    already: Tally
    recent: Tally
    left: dict[str, Left]
    vanished: int
    room: NotRequired[Room]


class Cold(Tally):
    """Files that did not become resident for one reason: the first of them, what it means and what to do.

    `errnos` counts those that had an error by its name, as EIO.
    """

    outcome: str
    reason: str | None
    first: list[FilePath]
    errnos: dict[str, int]
    what: str
    todo: str


class Rates(TypedDict):
    """What was restored per second, from the first request to the end."""

    files_per_second: float
    bytes_per_second: float


class Target(TypedDict):
    """The window of one metadata target at the end."""

    dev: int
    mdt: int
    window: int


class Window(TypedDict):
    """How many files could be in flight at the end, in all and by target. `limit`: files/s, bytes/s, unknown."""

    size: int
    limit: str
    targets: list[Target]


class Short(TypedDict):
    """Bytes: free, of these to be used (less the reserve, and what the fullest OST allows), and wanted beyond that."""

    free: int
    available: int
    blocked: int


class CheckedS3(TypedDict):
    """What was found out about the objects behind files: `unchecked` were not looked up, `outside` are linked to none.

    `newer` have an object that was written after the file; `requests` were made to S3; `skipped` is why checking was
    given up, empty if it was not.
    """

    checked: Tally
    unchecked: Tally
    outside: Tally
    newer: Tally
    requests: int
    skipped: str


class ThawDocument(TypedDict):
    """What `preload --thaw` had thawed: `asked` of S3 for so many `days`, `already` being thawed before that.

    `thawed` can be read by now, `waiting` cannot; in an estimate the latter would be thawed.
    """

    tier: str
    days: int
    asked: Tally
    already: Tally
    thawed: Tally
    waiting: Tally


class PreloadDocument(Leftovers):
    """`fsxwarm.preload/1`.

    `outcomes` counts every file that settled: resident (before), restored, failed, blocked, vanished, cancelled; `cold`
    breaks down those that are not resident. `not_reached` were found and not dealt with before the run was stopped;
    `in_flight` go on at FSx. `ready` is there once the share asked for was resident. `look_ups` counts files looked
    at, by way: stat, state, action, released. `unlinked` are paths outside every association, where nothing was to be
    restored either.
    """

    schema: str
    exit: int
    found: Tally
    outcomes: dict[str, Tally]
    cold: list[Cold]
    not_reached: Tally
    in_flight: Tally
    skipped: int
    scan_complete: bool
    ready: NotRequired[bool]
    requests: int
    look_ups: dict[str, int]
    scan_seconds: float
    restore_seconds: float
    rates: Rates
    window: Window
    s3: CheckedS3
    thaw: NotRequired[ThawDocument]
    unlinked: NotRequired[list[FilePath]]
    shard: NotRequired[str]
    short: NotRequired[Short]
    report: NotRequired[FilePath]


class NeedOfRoom(TypedDict):
    """Bytes that a file system would have to take in, and those that it may: free, less the reserve."""

    mount: FilePath
    need: int
    free: int
    available: int
    fits: bool


class EstimateDocument(Leftovers):
    """`fsxwarm.estimate/1`, of `preload --dry-run`. `seconds` is null while no rate is known."""

    schema: str
    exit: int
    shard: NotRequired[str]
    released: Tally
    resident: Tally
    blocked: dict[str, Tally]
    unknown: Tally
    vanished: int
    skipped: int
    room: list[NeedOfRoom]
    s3: CheckedS3
    thaw: NotRequired[ThawDocument]
    seconds: float | None
    rate_from: Literal["given", "earlier runs"] | None


class BackgroundDocument(TypedDict):
    """`fsxwarm.background/1`: `state` is started, ready or ended; the run's own document is the log's last line."""

    schema: str
    exit: int
    state: Literal["started", "ready", "ended"]
    pid: int
    log: FilePath
    pid_file: FilePath


class ProgressEvent(TypedDict):
    """A line of `preload --progress json`. `event` may also be message, with `time` and `text`.

    `stalled` counts the files in flight that do not move now, `retries` all that were made so far.
    """

    event: Literal["progress"]
    time: float
    scanning: bool
    found: Tally
    settled: Tally
    resident: Tally
    restored: Tally
    failed: int
    blocked: int
    files_per_second: float
    bytes_per_second: float
    eta_seconds: float | None
    limit: str
    in_flight: int
    window: int
    watched: int
    retries: int
    stalled: int
    thawing: int


class PinDocument(Leftovers):
    """`fsxwarm.pin/1`, of pin and unpin: `pinned` tells which, `done` counts the files whose flag is as wanted now."""

    schema: str
    exit: int
    pinned: bool
    done: Tally
    failed: Issues
    vanished: int


class Finding(TypedDict):
    """One thing that doctor looked at: `level` is ok, warn or fail; `advice` may be empty."""

    check: str
    level: str
    text: str
    advice: str


class DoctorDocument(TypedDict):
    """`fsxwarm.doctor/1`."""

    schema: str
    exit: int
    findings: list[Finding]


def json_path(path: bytes) -> FilePath:
    """A file's name for programs: `path` as text, and `path_b64` with the exact bytes when they are not UTF-8."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path": show_path(path), "path_b64": base64.b64encode(path).decode("ascii")}


def tally(some: model.Tally) -> Tally:
    """Write a tally."""
    return {"files": some.files, "bytes": some.bytes}


def issue(trouble: Trouble) -> Issue:
    """Write one trouble."""
    return {**json_path(trouble.path), "errno": trouble.errno, "text": trouble.text or os.strerror(trouble.errno)}


def errnos(counted: Mapping[int, int]) -> dict[str, int]:
    """Write errors by their names, with how many files had each."""
    return {errno.errorcode.get(code, str(code)): files for code, files in counted.items()}


def issues(troubles: Troubles) -> Issues:
    """Write what could not be read."""
    return {"count": troubles.count, "first": [issue(trouble) for trouble in troubles.first]}


def unusable(some: selection.Unusable) -> Unusable:
    """Write list entries of no use."""
    return {"count": some.count, "first": [json_path(path) for path in some.first]}


def error_document(error: FsxwarmError) -> ErrorDocument:
    """Write an error as the object that `--json` prints."""
    return {
        "schema": "fsxwarm.error/1",
        "exit": int(error.exit),
        "error": {"kind": error.kind.value, "message": error.message, "hint": error.hint},
    }
