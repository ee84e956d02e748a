"""Every way in which fsxwarm can refuse or give up, with its exit status, its HTTP status and its hint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final


class Exit(IntEnum):
    """Exit statuses of every command (README, "Exit status")."""

    DONE = 0
    UNFORESEEN = 1
    USAGE = 2
    INCOMPLETE = 3
    DEADLINE = 4
    CANNOT = 5
    NO_ROOM = 6
    INTERRUPTED = 130


PRECEDENCE: Final = (
    Exit.INTERRUPTED,
    Exit.USAGE,
    Exit.CANNOT,
    Exit.UNFORESEEN,
    Exit.NO_ROOM,
    Exit.DEADLINE,
    Exit.INCOMPLETE,
    Exit.DONE,
)


def worst(*statuses: Exit) -> Exit:
    """Return the one status to exit with when several apply; `Exit.DONE` for none."""
    return min(statuses, key=PRECEDENCE.index, default=Exit.DONE)


class Kind(StrEnum):
    """What went wrong, as a stable word for scripts, logs and the API."""

    USAGE = "usage"
    NO_SUCH_PATH = "no_such_path"
    NOT_LUSTRE = "not_lustre"
    NO_LFS = "no_lfs"
    NO_PERMISSION = "no_permission"
    UNREADABLE = "unreadable"
    HUNG = "hung"
    NO_ROOM = "no_room"
    DEADLINE = "deadline"
    NO_SUCH_JOB = "no_such_job"
    NO_SUCH_LEASE = "no_such_lease"
    CONFLICT = "conflict"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    RESTARTING = "restarting"
    NO_DAEMON = "no_daemon"
    INTERRUPTED = "interrupted"
    STORE = "store"
    CLOUD = "cloud"
    UNFORESEEN = "unforeseen"


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a kind of error means to the outside: a command's exit status, the daemon's HTTP status."""

    exit: Exit
    http: int
    permanent: bool
    hint: str


CONSEQUENCES: Final[dict[Kind, Consequence]] = {
    Kind.USAGE: Consequence(Exit.USAGE, 400, True, "see --help"),
    Kind.NO_SUCH_PATH: Consequence(Exit.USAGE, 404, True, "check the spelling and that the file system is mounted"),
    Kind.NOT_LUSTRE: Consequence(Exit.CANNOT, 422, True, "only files on FSx for Lustre can be released and warmed"),
    Kind.NO_LFS: Consequence(
        Exit.CANNOT, 503, True, "install the Lustre client (package lustre-client) on this machine"
    ),
    Kind.NO_PERMISSION: Consequence(
        Exit.CANNOT, 403, True, "run as the files' owner or as root, or ask the administrator"
    ),
    Kind.UNREADABLE: Consequence(Exit.CANNOT, 403, True, "check the file's permissions"),
    Kind.HUNG: Consequence(
        Exit.CANNOT, 503, False, "the file system does not answer: see `dmesg` and `lfs check servers`, then run again"
    ),
    Kind.NO_ROOM: Consequence(
        Exit.NO_ROOM, 507, False, "release something (`fsxwarm release`), warm less, or use --fit to warm what fits"
    ),
    Kind.DEADLINE: Consequence(Exit.DEADLINE, 504, False, "run again: what is resident stays resident"),
    Kind.NO_SUCH_JOB: Consequence(Exit.USAGE, 404, True, "`fsxwarm jobs` lists yours"),
    Kind.NO_SUCH_LEASE: Consequence(Exit.USAGE, 404, True, "it has run out, or never was: take a new one"),
    Kind.CONFLICT: Consequence(Exit.CANNOT, 409, True, "look at it with `fsxwarm jobs show`"),
    Kind.TOO_MANY: Consequence(Exit.CANNOT, 429, False, "wait until some of your jobs have ended, or cancel some"),
    Kind.TOO_LARGE: Consequence(Exit.CANNOT, 413, True, "split the list, or name the folder instead of its files"),
    Kind.RESTARTING: Consequence(Exit.CANNOT, 503, False, "the job goes on by itself: ask again in a moment"),
    Kind.NO_DAEMON: Consequence(
        Exit.CANNOT, 503, False, "see `systemctl status fsxwarm`, or work without it (--local)"
    ),
    Kind.INTERRUPTED: Consequence(Exit.INTERRUPTED, 503, False, "run again to resume"),
    Kind.STORE: Consequence(Exit.CANNOT, 500, True, "see the daemon's log and its state directory"),
    Kind.CLOUD: Consequence(Exit.CANNOT, 502, False, "`fsxwarm doctor` tells what it may ask AWS"),
    Kind.UNFORESEEN: Consequence(Exit.UNFORESEEN, 500, False, "please report this"),
}


OTHER_LFS: Final = (
    "let PATH (or FSXWARM_LFS) lead to the Lustre client's own lfs, whose `lfs --version` prints a line like lfs 2.15.8"
)
"""The hint where there is a program of that name, but it is not the Lustre client's or may not be run."""


def reason(error: Exception) -> str:
    """What an error says: of a system's error the words without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class FsxwarmError(Exception):
    """An error made for people: what happened, with the exit status and hint of its kind.

    Parameters: `kind` chooses exit status, permanence and hint; `message` says what and why in one line;
    `hint` replaces the kind's own where more is known; `data` carries fields for `--json`.
    """

    def __init__(self, kind: Kind, message: str, *, hint: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = CONSEQUENCES[kind].hint if hint is None else hint
        self.data = data

    @property
    def exit(self) -> Exit:
        """The exit status that a command ends with."""
        return CONSEQUENCES[self.kind].exit

    @property
    def http(self) -> int:
        """The status of the daemon's answer."""
        return CONSEQUENCES[self.kind].http

    @property
    def permanent(self) -> bool:
        """Whether trying again without changing anything is pointless."""
        return CONSEQUENCES[self.kind].permanent

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message
