"""A file as the servers know it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.lfs.kernel import Fid

if TYPE_CHECKING:  # a call waits for files, a file knows who waits
    from fsxwarm.sim.calls import Call


class Stage(Enum):
    """How far an action has come."""

    WAITING = "waiting"
    """In the coordinator's queue. All later stages count as running there."""
    SENT = "sent"
    """Sent to the agents, none of which has taken it on yet."""
    MOVING = "moving"
    SETTLING = "settling"
    """All bytes are there, or none will come: what is left is the rest of the latency."""
    FROZEN = "frozen"
    """Its agent is dead: no byte moves any more."""
    WEDGED = "wedged"
    """Counted as running, but never sent to an agent."""


class Node:
    """A regular file: flags, size in bytes, owner and mode, and the action that the coordinator has for it.

    `content` and `archived` number the versions of its data here and in the archive: a released file whose numbers
    differ has lost data. `failure` is why its last restore failed; no client can see it. `number` tells its present
    action from earlier ones. `mark` is the point of the agents' shared transfer at which its data will be complete,
    `begun` where it began (bytes moved, once it is frozen), `due` the end of its latency. `on_osts` is where its data
    lies, or is about to: a place of `Osts` and bytes; None: nowhere.
    """

    __slots__ = (
        "archive_id",
        "archived",
        "archiving",
        "begun",
        "content",
        "doomed",
        "due",
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
        "reported",
        "reported_at",
        "size",
        "stage",
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
        self.content = 1
        self.archived = 1 if flags & (Flags.ARCHIVED | Flags.DIRTY) == Flags.ARCHIVED else 0
        self.archiving = 0
        self.gone = False
        self.unflushed = False
        self.verb = Verb.NONE
        self.stage = Stage.WAITING
        self.number = 0
        self.begun = 0.0
        self.mark = 0.0
        self.due = 0.0
        self.doomed = False
        self.reported = 0
        self.reported_at = 0.0
        self.tries = 0
        self.failure: str | None = None
        self.on_osts: tuple[int, int] | None = None
        self.waiters: list[Call] | None = None

    @property
    def in_flight(self) -> bool:
        """A restore of it is queued or running."""
        return self.verb is Verb.RESTORE

    def __repr__(self) -> str:
        return f"<Node {self.fid} {self.flags!r} {self.verb.value} {self.stage.value}>"
