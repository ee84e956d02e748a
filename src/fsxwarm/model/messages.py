"""What the warming machine is told (events) and what it wants done (instructions)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from fsxwarm.model.entry import Entry, Key, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.schedule import Rank


class Look(Enum):
    """Ways of looking at a file, from cheap to dear."""

    STAT = "stat"
    """One stat: more than one block proves data on the OSTs. Costs the server nothing while a lock is held."""
    STATE = "state"
    """The flags: an open, an ioctl and a close."""
    ACTION = "action"
    """What the coordinator does with it: the server scans its log."""
    BOTH = "both"
    """Action first, state second: only in this order does "no action and still released" mean "not in flight"."""
    RELEASED = "released"
    """The layout, through `lfs find`: all that may be seen of a file without read permission."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look saw of one file. What was not looked at is None; `resident` None means "not proved"."""

    flags: Flags | None = None
    action: Action | None = None
    resident: bool | None = None
    trouble: Trouble | None = None


# ---- events ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """Files that a job wants, in the order in which it wants them.

    Those that are `barred` are blocked for that reason if they turn out to be released: S3 cannot give them. `aged`:
    others may have had them restored since they were walked, so that their flags must be read.
    """

    entries: Sequence[Entry]
    job: int = 0
    barred: Mapping[Key, Reason] = field(default_factory=dict)
    aged: bool = False


@dataclass(frozen=True, slots=True)
class WalkEnded:
    """Nothing more will be found for a job."""

    job: int = 0


@dataclass(frozen=True, slots=True)
class Looked:
    """A look came back. `started` is when it was begun: nothing seen is older than that."""

    how: Look
    sights: Mapping[Key, Sight]
    started: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A request came back: `errno` 0 when it was taken."""

    request: int
    errno: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A request has not come back within its deadline; it may still do so."""

    request: int


@dataclass(frozen=True, slots=True)
class Stale:
    """A request was not sent, because the look before it had become too old while it waited for its turn."""

    request: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Cancelling was answered; `errno` 0 when the server took it."""

    keys: Sequence[Key]
    errno: int


@dataclass(frozen=True, slots=True)
class Room:
    """What was measured to be free on a file system, less the reserve, in bytes.

    A file system that had no room for a file is open again once there is; never after `Full`.
    """

    dev: int
    available: int


@dataclass(frozen=True, slots=True)
class Full:
    """All that is wanted of a file system cannot fit: ask for nothing more there."""

    dev: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask for nothing more, and let go of what is unsettled.

    With a `job`, of what this job alone wants: what others want goes on for them, and what is at FSx already goes on
    against the window with nobody waiting for it (its `Finish` names no job). The job's rank is forgotten.
    """

    reason: Reason
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """Who asked for a job, and its priority, from now on. None: all of its files have settled, and it is forgotten."""

    job: int
    rank: Rank | None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Found | WalkEnded | Looked | Answered | Overdue | Stale | Cancelled | Room | Full | Stop | Ranked | Tick


# ---- instructions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookAt:
    """Look at these files in this way and answer with `Looked`."""

    how: Look
    files: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Submit:
    """Ask for these files (≤ 50, one file system) in one request, unless it is later than `fresh_until` by then.

    Answer with `Answered`, `Overdue` (and `Answered` if it ever comes back) or `Stale`.
    """

    request: int
    files: Sequence[Entry]
    fresh_until: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the requests for these files, whoever made them, as root; answer with `Cancelled`."""

    files: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Finish:
    """A file has settled. Said once a file, for all `jobs` that want it.

    `in_flight` tells that its restore goes on at FSx although we let go of it; `took` are seconds from asking to
    seeing it resident; `errno` is 0 where none is known.
    """

    entry: Entry
    outcome: Outcome
    jobs: frozenset[int]
    reason: Reason | None = None
    errno: int = 0
    flags: Flags | None = None
    attempts: int = 0
    took: float | None = None
    in_flight: bool = False
    detail: str = ""


class Word(Enum):
    """What an operator should know of the whole, not of one file."""

    SYSTEM_STALLED = "system_stalled"
    """Files are in flight and none has become resident for a while."""
    SYSTEM_MOVES = "system_moves"
    """The stall is over."""
    PAUSED = "paused"
    """The coordinator takes no requests (EAGAIN): asking pauses."""
    FILE_STALLED = "file_stalled"
    FILE_WEDGED = "file_wedged"
    CURED = "cured"
    """A stuck request was cancelled and is asked for again."""
    CALL_HUNG = "call_hung"
    """A request hangs in the kernel; its files are watched."""
    RETRY = "retry"
    NO_ROOM = "no_room"
    ROOM_UNKNOWN = "room_unknown"
    """Free space could not be measured: nothing keeps more from being asked for than there is room for."""
    NOT_ALLOWED = "not_allowed"
    """Every single file is refused although its flags are fine: this user may not restore here."""


@dataclass(frozen=True, slots=True)
class Say:
    """Tell the operator; `files` are those concerned, `seconds` how long it has lasted or will."""

    word: Word
    files: Sequence[Entry] = field(default=())
    seconds: float = 0.0


Instruction = LookAt | Submit | Cancel | Finish | Say
