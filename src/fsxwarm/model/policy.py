"""The numbers that warming goes by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SKIPS_DUPLICATES: Final = (2, 16)
"""Servers from this version skip a request for what is in flight already; on older ones it blocks (LU-15132)."""


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """Bounds of a window, in files. `fixed` takes the place of all learning.

    `epoch` is the wall-clock time, in seconds, at which the steady clock stood at 0. Clients of one file system that
    know it drain at the same moments: only then does each see how long files take without the other's queue.
    """

    start: int = 64
    floor: int = 4
    ceiling: int = 5000
    fixed: int | None = None
    epoch: float = 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How warming behaves. Times in seconds.

    `attempts`: requests for one file before it has failed.
    `fresh`: how old the look that showed no action may be when its file is asked for.
    `skip_duplicates`: file systems (st_dev) whose servers skip what is in flight already. There a file's action is not
    looked at before it is asked for the first time; what somebody else has in flight counts as ours: nobody can tell.
    `stat_settles`: on clients from 2.15 a stat is a cheap and certain sign that a restore ended (measured); on older
    ones a stat of a file in flight may block.
    `may_cancel`: we are root, who alone may cancel requests by default; `cures`: cancellations for one file.
    `lookahead`: files held beyond what is in flight, so that a full metadata target does not stop the others.
    `patience`: without progress for so long a running restore is called stalled; `cure_patience`: and cancelled. Where
    restores are quick, a quarter of both is enough.
    `give_up`: without progress for so long it has failed; longer than the coordinator's own timeout of an hour.
    `limbo`: how long a file whose request hangs may go unseen in the coordinator's log before it has failed.
    `convinced`: flags of so many files of like size in a row told nothing new before others are asked for without.
    `together`: so many files at most are looked at in one call before they are asked for: one that hangs holds up all.
    `hopeless`: so many single refusals with good flags, and not one request taken: this user may not restore here.
    """

    window: WindowPolicy = field(default_factory=WindowPolicy)
    attempts: int = 3
    fresh: float = 2.0
    skip_duplicates: frozenset[int] = frozenset()
    stat_settles: bool = True
    may_cancel: bool = False
    cures: int = 2
    lookahead: int = 10_000
    floor: float = 5.0
    cap: float = 600.0
    backoff: float = 2.0
    patience: float = 120.0
    cure_patience: float = 300.0
    give_up: float = 7200.0
    limbo: float = 120.0
    system_stall: float = 60.0
    hopeless: int = 20
    watched: int = 10_000
    convinced: int = 100
    look_batch: int = 500
    together: int = 500
    ask_ahead: int = 200
    request: int = 50
