"""How a wanted file can settle, and why: a closed set of words, each with what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Outcome(StrEnum):
    """A wanted file settles as exactly one of these."""

    RESIDENT = "resident"
    """It was resident when we first looked."""
    RESTORED = "restored"
    """It became resident while we were at it: asked for by us, or by somebody whose restore we watched."""
    FAILED = "failed"
    BLOCKED = "blocked"
    """It was not asked for, for a reason that asking would not change."""
    VANISHED = "vanished"
    """Deleted or replaced while we were at it; no failure."""
    CANCELLED = "cancelled"

    @property
    def warm(self) -> bool:
        """The file's data is on the OSTs."""
        return self in {Outcome.RESIDENT, Outcome.RESTORED}


class Reason(StrEnum):
    """Why a file is not resident. Bounded: it is a metric's label."""

    LOST = "lost"
    NOT_ARCHIVED = "not_archived"
    DIRTY = "dirty"
    NO_ROOM = "no_room"
    REFUSED = "refused"
    RESTORE_FAILED = "restore_failed"
    STALLED = "stalled"
    WEDGED = "wedged"
    HUNG = "hung"
    UNREADABLE = "unreadable"
    IO_ERROR = "io_error"
    REQUEST_FAILED = "request_failed"
    NAME_TOO_LONG = "name_too_long"
    NOT_REGULAR = "not_regular"
    GONE = "gone"
    INTERRUPTED = "interrupted"
    DEADLINE = "deadline"
    OBJECT_MISSING = "object_missing"
    OBJECT_CHANGED = "object_changed"
    STORAGE_CLASS = "storage_class"
    THAWING = "thawing"
    ACCESS_DENIED = "access_denied"
    BUCKET_MISSING = "bucket_missing"
    DISK_FULL = "disk_full"


class Meaning(NamedTuple):
    """A reason in words for people: what it is and what to do."""

    what: str
    todo: str


MEANINGS: Final[dict[Reason, Meaning]] = {
    Reason.LOST: Meaning(
        "the copy in S3 is gone (flag lost)", "put the object back, then clear the flag: `lfs hsm_clear --lost FILE`"
    ),
    Reason.NOT_ARCHIVED: Meaning(
        "released without a copy in the archive", "nothing to restore from: find another copy of the data"
    ),
    Reason.DIRTY: Meaning("released and dirty at once", "Lustre refuses to restore it: ask the administrator"),
    Reason.NO_ROOM: Meaning(
        "not enough free space on the file system", "release something first, or warm less (--fit warms what fits)"
    ),
    Reason.REFUSED: Meaning(
        "the metadata server refused the request", "ask the administrator whether users may restore (hsm request mask)"
    ),
    Reason.RESTORE_FAILED: Meaning(
        "asked for and not restored: FSx gave up without saying why to clients",
        "check that the object exists, its storage class (not Glacier or Deep Archive) and the bucket's policy; "
        "the file system's CloudWatch log says which",
    ),
    Reason.STALLED: Meaning(
        "its restore runs, but no bytes move", "root can cancel it (`lfs hsm_cancel FILE`); then run again"
    ),
    Reason.WEDGED: Meaning(
        "its request is counted as running but was never started",
        "root can cancel it (`lfs hsm_cancel FILE`); else it times out after an hour; then run again",
    ),
    Reason.HUNG: Meaning(
        "the call that asked for it hangs in the kernel", "look at it later with `fsxwarm status`; then run again"
    ),
    Reason.UNREADABLE: Meaning("its state may not be read", "run as its owner or as root"),
    Reason.IO_ERROR: Meaning(
        "looking at it gave an error", "check the file system's health; the report and `jobs show` name the error"
    ),
    Reason.REQUEST_FAILED: Meaning(
        "the request for it failed", "do what the error asks for, which the report and `jobs show` name; then run again"
    ),
    Reason.NAME_TOO_LONG: Meaning(
        "its path is longer than the 4,095 bytes that a system call takes",
        "give folders above it shorter names, or mount one of them elsewhere (`mount --bind`) and name that",
    ),
    Reason.NOT_REGULAR: Meaning(
        "it is no regular file", "nothing: only regular files are restored; list what a symlink leads to"
    ),
    Reason.GONE: Meaning("it was deleted or replaced meanwhile", "nothing"),
    Reason.INTERRUPTED: Meaning(
        "interrupted before it was resident", "run again: what is resident is skipped, what is in flight is watched"
    ),
    Reason.DEADLINE: Meaning("the deadline passed first", "run again, or give a longer --deadline"),
    Reason.OBJECT_MISSING: Meaning(
        "its object is not in S3", "put the object back (a bucket with versions may still have it), or delete the file"
    ),
    Reason.OBJECT_CHANGED: Meaning(
        "its object in S3 has another size than the file",
        "let FSx import the change (AutoImport CHANGED, or an IMPORT_METADATA task); then run again",
    ),
    Reason.STORAGE_CLASS: Meaning(
        "its object is in a storage class that FSx cannot read (Glacier, Deep Archive, or an archive tier)",
        "thaw it (`fsxwarm preload --thaw`), or change its class; then run again",
    ),
    Reason.THAWING: Meaning("its object is being thawed in S3", "wait until it is thawed, then run again"),
    Reason.ACCESS_DENIED: Meaning(
        "FSx was denied access to its object",
        "check the bucket's policy, the key's (KMS) and the rights of FSx's service-linked role",
    ),
    Reason.BUCKET_MISSING: Meaning(
        "the bucket of its object does not exist", "make the bucket anew, or remove the association"
    ),
    Reason.DISK_FULL: Meaning(
        "there was no room on the OST that it was to be restored to",
        "release something first (`fsxwarm release --until-free 20%`); then run again",
    ),
}
