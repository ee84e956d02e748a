"""Lustre's own words for a file's state (lustre/include/uapi/linux/lustre/lustre_user.h, `enum hsm_states`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import KEEP, Enum, IntFlag
from typing import Final

MAX_REQUEST: Final = 50
"""Files that we put into one request. The server takes 52 (measured on 2.15.8); two are left as a margin."""

WEDGED_MOVED: Final = 2**64 - 1
"""Bytes moved that mark a request which the coordinator counts as running but never sent to an agent."""


class Flags(IntFlag, boundary=KEEP):
    """HSM flags of a file. Bits that newer clients add are kept and mean nothing here."""

    EXISTS = 0x01
    DIRTY = 0x02
    RELEASED = 0x04
    ARCHIVED = 0x08
    NORELEASE = 0x10
    NOARCHIVE = 0x20
    LOST = 0x40

    @property
    def released(self) -> bool:
        """No data on the OSTs: reading blocks until the file is restored."""
        return bool(self & Flags.RELEASED)

    @property
    def restorable(self) -> bool:
        """The server will take a restore request for it (else EPERM for a released file)."""
        return self & _RESTORE_MASK == _RESTORABLE

    @property
    def releasable(self) -> bool:
        """Resident, and its only data is not the copy on the OSTs."""
        return self & _RELEASE_MASK == _RELEASABLE


_RESTORE_MASK = Flags.RELEASED | Flags.ARCHIVED | Flags.DIRTY | Flags.LOST
_RESTORABLE = Flags.RELEASED | Flags.ARCHIVED
_RELEASE_MASK = Flags.ARCHIVED | Flags.DIRTY | Flags.NORELEASE | Flags.LOST | Flags.RELEASED
_RELEASABLE = Flags.ARCHIVED


class Verb(Enum):
    """What the coordinator is doing with a file (`hsm_user_action`)."""

    NONE = "NOOP"
    ARCHIVE = "ARCHIVE"
    RESTORE = "RESTORE"
    RELEASE = "RELEASE"
    REMOVE = "REMOVE"
    CANCEL = "CANCEL"


@dataclass(frozen=True, slots=True)
class Action:
    """A file's current HSM action.

    `running` is False for a waiting request; `moved` counts bytes and is 0 while waiting.
    NOOP is no proof of success: it is the answer before a request, after success, failure and cancellation.
    """

    verb: Verb = Verb.NONE
    running: bool = False
    moved: int = 0

    @property
    def idle(self) -> bool:
        """Nothing is queued or running for the file."""
        return self.verb is Verb.NONE

    @property
    def restoring(self) -> bool:
        """A restore is queued or running, whoever asked for it."""
        return self.verb is Verb.RESTORE

    @property
    def waits(self) -> bool:
        """A restore is queued, and not running yet."""
        return self.restoring and not self.running

    @property
    def wedged(self) -> bool:
        """Counted as running, but never sent to a copy agent; nothing will happen until it is cancelled."""
        return self.running and self.moved == WEDGED_MOVED


IDLE: Final = Action()
