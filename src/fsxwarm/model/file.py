"""A wanted file on its way to being settled."""

from __future__ import annotations

from enum import Enum

from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.hsm import Flags
from fsxwarm.model.mdt import LaneId, lane_of
from fsxwarm.model.messages import Look
from fsxwarm.model.outcome import Reason


class Phase(Enum):
    """Where a file stands. Exactly one at a time; `in_flight` phases count against the window."""

    QUEUED = "queued"
    """Waits to be looked at, or for its turn after the first look."""
    LOOKING = "looking"
    """Its action is being looked at; it is asked for next if nobody has it in flight."""
    READY = "ready"
    """Its action was looked at and none was seen: may be asked for while that look is fresh."""
    SUBMITTED = "submitted"
    """In a request that has not been answered yet."""
    IN_FLIGHT = "in_flight"
    """Asked for by us and taken."""
    WATCHED = "watched"
    """Asked for by somebody else: watched, never asked for again."""
    LIMBO = "limbo"
    """In a request that hangs: it may be queued or not, now or later."""
    REFUSED = "refused"
    """In a request that was refused: it may be queued or not; to be looked at before anything else."""
    CURING = "curing"
    """Its stuck request is being cancelled."""
    BACKOFF = "backoff"
    """Waits before the next attempt."""


AT_FSX = frozenset({Phase.SUBMITTED, Phase.IN_FLIGHT, Phase.LIMBO, Phase.REFUSED, Phase.CURING})
"""Phases in which our request for the file may be queued or running: they count against the window."""


ASKED_OR_NEXT = AT_FSX | {Phase.LOOKING, Phase.READY, Phase.WATCHED}
"""Phases whose bytes are on their way, or are about to be: they count against free space."""


_MOST_NAMES = 4
"""Names of a file that are kept beside the one that it goes by."""


class File:
    """The record of one wanted file. Times in seconds on the engine's clock.

    `crowd` is how many files its next request may hold at most; `looking` is the look that is out for it;
    `due` is when to look again (`polls` counts the looks); `late` is when to ask what its restore is doing;
    `asked` is when we asked, or first saw that somebody had; `moved`/`moved_at` are the last progress seen;
    `looks_failed` counts failures in a row. A look begun earlier than `not_before` says nothing: since then the file
    has been asked for, or refused. `released`: its flags or its action have shown it to be. `barred` is why S3 cannot
    give it. `aged`: what the walk saw of it may be true no more. `names` are others that it was found under, the
    newest last. `order` counts up as files are asked for. `stuck`: its restore does not move, or its request hangs;
    `stalled`: it has not moved for too long; `strayed`: it has stalled since it was asked for, so that its time tells
    nothing. `waits`: for news of others, before its first stat.
    """

    __slots__ = (
        "aged",
        "asked",
        "attempts",
        "barred",
        "crowd",
        "cures",
        "due",
        "entry",
        "flags",
        "fresh_until",
        "key",
        "lane",
        "late",
        "looking",
        "looks_failed",
        "moved",
        "moved_at",
        "names",
        "not_before",
        "order",
        "phase",
        "polls",
        "released",
        "request",
        "stalled",
        "strayed",
        "stuck",
        "unreadable",
        "waits",
        "wanted_by",
    )

    def __init__(self, entry: Entry, job: int, crowd: int) -> None:
        self.entry = entry
        self.key: Key = entry.key
        self.lane: LaneId = lane_of(entry.key)
        self.wanted_by: set[int] = {job}
        self.phase = Phase.QUEUED
        self.flags: Flags | None = None
        self.looking: Look | None = None
        self.attempts = 0
        self.barred: Reason | None = None
        self.aged = False
        self.names: list[bytes] = []
        self.cures = 0
        self.looks_failed = 0
        self.crowd = crowd
        self.request = 0
        self.order = 0
        self.fresh_until = 0.0
        self.asked = 0.0
        self.due: float | None = None
        self.not_before = 0.0
        self.polls = 0
        self.released = False
        self.late = 0.0
        self.moved = -1
        self.moved_at = 0.0
        self.stuck = False
        self.stalled = False
        self.strayed = False
        self.unreadable = False
        self.waits = False

    def also_named(self, name: bytes) -> None:
        """It was found under this name, too."""
        if name != self.entry.path and name not in self.names:
            self.names = [*self.names[1 - _MOST_NAMES :], name]

    def renamed(self) -> bool:
        """Go by another name from now on: the old one means it no more. False when there is none."""
        if not self.names:
            return False
        self.entry = self.entry._replace(path=self.names.pop())
        return True

    @property
    def at_fsx(self) -> bool:
        """Our request for it may be queued or running."""
        return self.phase in AT_FSX

    @property
    def on_its_way(self) -> bool:
        """A request for it, ours or somebody else's, may be queued or running."""
        return self.at_fsx or self.phase is Phase.WATCHED

    def __repr__(self) -> str:
        return f"<File {self.entry.path!r} {self.phase.value} attempts={self.attempts} looking={self.looking}>"
