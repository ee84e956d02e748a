"""One metadata target's window and queues."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from fsxwarm.model.file import AT_FSX, File, Phase
from fsxwarm.model.policy import WindowPolicy
from fsxwarm.model.schedule import Rank, Turns
from fsxwarm.model.scouts import Scouts
from fsxwarm.model.window import Window

_FEW: Final = 10


class Lane:
    """One metadata target's window and queues.

    `unseen` holds files as found, `cold` those known to be released that wait for their turn, `ready` those whose
    action has just been looked at; `looks` are such looks that are out, each with the time from which it is late.
    `counts` has the files in each phase, whether in a queue or not. `stalled` are those of ours that have not moved for
    too long. Since `quiet_since` nothing was asked for, and nothing came.
    """

    def __init__(self, policy: WindowPolicy, ranks: Mapping[int, Rank], now: float) -> None:
        self.window = Window(policy, now)
        self.unseen: Turns[File] = Turns(ranks)
        self.cold: Turns[File] = Turns(ranks)
        self.ready: deque[File] = deque()
        self.looks: deque[tuple[float, list[File]]] = deque()
        self.counts: Counter[Phase] = Counter()
        self.scouts = Scouts()
        self.stalled = 0
        self.quiet_since = now
        self.diagnosing = False
        self.waiting_asked = 0.0
        self.waiting_until = 0.0
        self.limited_by_window = False

    @property
    def waiting(self) -> int:
        """Files whose turn to be looked at, or asked for, has not come."""
        return len(self.unseen) + len(self.cold)

    @property
    def looking_ahead(self) -> int:
        """Files whose flags are being looked at."""
        return self.counts[Phase.QUEUED] - self.waiting

    def forget(self, file: File) -> None:
        """Take a file out of the queues, as one that has settled."""
        self.unseen.discard(file)
        self.cold.discard(file)
        if file.phase is Phase.READY:
            self.ready.remove(file)

    def held_up(self, now: float) -> int:
        """Files that have been in a look before asking for so long that others should not wait for them."""
        while self.looks and self.looks[0][0] < now and not any(map(_is_looked_at, self.looks[0][1])):
            self.looks.popleft()
        return sum(sum(map(_is_looked_at, files)) for late, files in self.looks if late < now)

    @property
    def at_fsx(self) -> int:
        """Files that count against the window."""
        return sum(self.counts[phase] for phase in AT_FSX)

    @property
    def ends(self) -> bool:
        """Nothing waits to be asked for, and few files are in flight: who of them has ended can be known for little."""
        return not (self.waiting or self.ready) and self.at_fsx <= max(_FEW, self.window.moving // _FEW)

    def knows_to_wait(self, file: File, now: float) -> bool:
        """Whether a file asked for earlier was just seen waiting: then this one waits too, without asking.

        The coordinator serves requests in their order (mdt_coordinator.c).
        """
        return now < self.waiting_until and file.asked >= self.waiting_asked


def _is_looked_at(file: File) -> bool:
    return file.phase is Phase.LOOKING and file.looking is not None
