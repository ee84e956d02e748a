"""A file as the servers know it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.lfs.kernel import Fid

if TYPE_CHECKING:  # a call waits for files, a file knows who waits
    from fsxwarm.sim.calls import Call


class Stage(Enum):
    """How far an action has come at the coordinator."""

    WAITING = "waiting"
    STARTED = "started"
    """An agent asks the archive for it."""
    MOVING = "moving"
    FROZEN = "frozen"
    """Its agent is dead or stopped: counted as running, no byte moves."""
    WEDGED = "wedged"


class Node:
    """A regular file: flags, size in bytes, owner and mode, and the action that the coordinator has for it.

    `mark` is the point of the shared transfer at which its data will be complete, `begun` where it began. `failure`
    is why the last restore failed; no client can see it.
    """

    __slots__ = (
        "archive_id",
        "asked",
        "begun",
        "cancelled",
        "extra_time",
        "failure",
        "fid",
        "flags",
        "gid",
        "gone",
        "mark",
        "mdt",
        "mode",
        "number",
        "on_osts",
        "size",
        "stage",
        "started",
        "tries",
        "uid",
        "unflushed",
        "verb",
        "waiters",
    )

    def __init__(
        self, fid: Fid, size: int, flags: Flags, *, mdt: int = 0, uid: int = 0, gid: int = 0, mode: int = 0o644
    ) -> None:
        self.fid = fid
        self.size = size
        self.flags = flags
        self.mdt = mdt
        self.uid = uid
        self.gid = gid
        self.mode = mode
        self.archive_id = 1 if flags & Flags.EXISTS else 0
        self.gone = False
        self.unflushed = False
        self.verb = Verb.NONE
        self.stage = Stage.WAITING
        self.asked = 0.0
        self.started = 0.0
        self.begun = 0.0
        self.mark = 0.0
        self.extra_time = 0.0
        self.cancelled = False
        self.tries = 0
        self.failure: str | None = None
        self.number = 0
        self.on_osts = 0
        self.waiters: list[Call] = []

    @property
    def in_flight(self) -> bool:
        """A restore of it is queued or running."""
        return self.verb is Verb.RESTORE

    def __repr__(self) -> str:
        return f"<Node {self.fid} {self.flags!r} {self.verb.value} {self.stage.value}>"
