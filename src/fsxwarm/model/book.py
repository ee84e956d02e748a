"""The books of a warming: every file in exactly one place, and what has been decided about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from fsxwarm.model.doubt import Doubt
from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.file import ASKED_OR_NEXT, AT_FSX, File, Phase
from fsxwarm.model.lane import Lane
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import Finish, Instruction, Look, LookAt, Say, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.pace import Pace
from fsxwarm.model.policy import Policy
from fsxwarm.model.rounds import Rounds
from fsxwarm.model.schedule import Rank

_NOT_ASKED_FOR: Final = frozenset({Phase.QUEUED, Phase.LOOKING, Phase.READY, Phase.BACKOFF})


class Book:
    """Files, lanes and counts, kept consistent; `out` collects instructions.

    Per file system (by st_dev): `claimed` are the bytes asked for or about to be, `room` those that free space allows
    (absent: unknown), `full` those without any left, with the bytes that did not fit. `walking` are the jobs whose
    walk goes on, `ranks` tells who asked for them; `stopped` is why nothing more is asked for.
    """

    def __init__(self, policy: Policy, now: float) -> None:
        self.policy = policy
        self.pace = Pace(floor=policy.floor, cap=policy.cap)
        self.rounds = Rounds(policy, self.pace)
        self.doubt = Doubt(policy.convinced)
        self.files: dict[Key, File] = {}
        self.lanes: dict[LaneId, Lane] = {}
        self.out: list[Instruction] = []
        self.walking: set[int] = set()
        self.stopped: Reason | None = None
        self.full: dict[int, float] = {}
        self.ranks: dict[int, Rank] = {}
        self.room: dict[int, int] = {}
        self.claimed: Counter[int] = Counter()
        self.last_completion = now
        self.stalled = False

    def add(self, entry: Entry, job: int, now: float) -> File:
        """Enter a file that is wanted for the first time."""
        file = File(entry, job, self.policy.request)
        lane = self.lanes.get(file.lane)
        if lane is None:
            lane = self.lanes[file.lane] = Lane(self.policy.window, self.ranks, now)
        self.files[file.key] = file
        lane.counts[Phase.QUEUED] += 1
        return file

    def has(self, file: File) -> bool:
        """Whether this very record is in the books: a file that has settled may have been entered anew."""
        return self.files.get(file.key) is file

    def lane(self, file: File) -> Lane:
        """The lane that a file belongs to."""
        return self.lanes[file.lane]

    def count(self, *phases: Phase) -> int:
        """Count the files in these phases over all lanes."""
        return sum(lane.counts[phase] for lane in self.lanes.values() for phase in phases)

    @property
    def in_flight(self) -> int:
        """Files of ours that may be queued or running at FSx."""
        return self.count(*AT_FSX)

    def set_stuck(self, file: File, *, stuck: bool) -> None:
        """Note that a file's restore does not move, or moves again; as long as ours does not, others may go past it."""
        if file.stuck != stuck:
            file.stuck = stuck
            if file.at_fsx:
                self.lane(file).window.stuck += 1 if stuck else -1
        if not stuck and file.stalled:
            file.stalled = False
            self.lane(file).stalled -= file.at_fsx

    def has_stalled(self, file: File) -> None:
        """Note that a file has been stuck for too long."""
        self.set_stuck(file, stuck=True)
        file.stalled = file.strayed = True
        self.lane(file).stalled += file.at_fsx

    def move(self, file: File, phase: Phase) -> None:
        """Put a file into another phase."""
        if phase is not Phase.CURING or file.phase is Phase.WATCHED:
            self.set_stuck(file, stuck=False)
        counts = self.lane(file).counts
        counts[file.phase] -= 1
        counts[phase] += 1
        was, becomes = file.phase in ASKED_OR_NEXT, phase in ASKED_OR_NEXT
        if was != becomes:
            self.claimed[file.entry.dev] += file.entry.size if becomes else -file.entry.size
        file.phase = phase

    def finish(
        self, file: File, outcome: Outcome, reason: Reason | None = None, *, errno: int = 0, detail: str = "",
        took: float | None = None,
    ) -> None:  # fmt: skip
        """Settle a file: it leaves the books."""
        lane = self.lane(file)
        self.set_stuck(file, stuck=False)
        on_its_way = file.on_its_way
        lane.counts[file.phase] -= 1
        if file.phase in ASKED_OR_NEXT:
            self.claimed[file.entry.dev] -= file.entry.size
        del self.files[file.key]
        self.out.append(
            Finish(
                file.entry,
                outcome,
                frozenset(file.wanted_by),
                reason,
                errno,
                file.flags,
                file.attempts,
                took,
                in_flight=on_its_way and not outcome.warm and outcome is not Outcome.VANISHED,
                detail=detail,
            )
        )

    def restored(self, file: File, now: float, *, on_time: bool = True) -> None:
        """Settle a file that was on its way and is resident now, and learn from it.

        Not `on_time`: it was seen only because it was late, so that nothing is known of when it ended. To learn from
        that would make the next deadline later, and so on without end.
        """
        took = now - file.asked
        ours = file.at_fsx
        lane = self.lane(file)
        if file.entry.dev in self.room:
            self.room[file.entry.dev] -= file.entry.size
        self.finish(file, Outcome.RESTORED, took=took)
        self.last_completion = lane.quiet_since = now
        if self.stalled:
            self.stalled = False
            self.out.append(Say(Word.SYSTEM_MOVES))
        self.look_at_once(lane.scouts.ended(file), now)
        if ours and on_time and not file.strayed:
            self.pace.restored(file.entry.size, took)
        if ours:
            size, alike = file.entry.size, not file.strayed
            lane.window.settled(nbytes=size, took=took, in_flight=lane.at_fsx, now=now, alike=alike)

    def look_at_once(self, files: Iterable[File], now: float) -> None:
        """Have files under watch looked at now, instead of when their own time comes."""
        for file in files:
            if file.looking is None:
                self.rounds.schedule(file, now)

    def back_to_queue(self, file: File) -> None:
        """Let a file wait for its turn again, ahead of those that have not had one; settle one that nobody wants."""
        if not file.wanted_by:
            self.finish(file, Outcome.CANCELLED, Reason.INTERRUPTED)
            return
        file.due = None  # a look that was planned for the request that came to nothing
        self.move(file, Phase.QUEUED)
        self.lane(file).cold.put(file, ahead=True)

    def look(self, how: Look, files: list[File]) -> None:
        """Have files looked at, as many at once as may wait for each other."""
        for file in files:
            file.looking = how
        size = self.policy.together
        for start in range(0, len(files), size):
            self.out.append(LookAt(how, tuple(file.entry for file in files[start : start + size])))

    def attempt_failed(self, file: File, now: float) -> None:
        """A request brought nothing, and nothing is queued: wait and try again, or settle the file as failed."""
        self.move(file, Phase.BACKOFF)
        if not file.wanted_by:
            self.finish(file, Outcome.CANCELLED, Reason.INTERRUPTED)
            return
        if file.attempts >= self.policy.attempts:
            self.finish(file, Outcome.FAILED, Reason.RESTORE_FAILED)
            return
        spread = 0.5 + ((file.key.ino * 2654435761 + file.attempts * 40503) % 1024) / 1024
        wait = self.policy.backoff * 2 ** max(0, file.attempts - 1) * spread
        self.rounds.schedule(file, now + wait)
        self.out.append(Say(Word.RETRY, (file.entry,), wait))

    def watch(self, file: File, phase: Phase, now: float) -> None:
        """Watch a file that is queued or running at FSx."""
        if phase is Phase.WATCHED or not file.asked:
            file.asked = now
        file.moved, file.moved_at = -1, now
        file.not_before = now
        self.move(file, phase)
        lane = self.lane(file)
        scout = phase is Phase.WATCHED or lane.scouts.leads(
            file, lane.at_fsx, all_do=lane.window.measures or not (lane.waiting or lane.ready)
        )
        self.rounds.begin(file, now, scout=scout)

    def block_the_rest(self, dev: int, size: float) -> None:
        """A file system has no room for `size` bytes: settle all of its files that were not asked for."""
        if dev not in self.full:
            self.out.append(Say(Word.NO_ROOM))
        self.full[dev] = max(size, self.full.get(dev, 0.0))
        for file in list(self.files.values()):
            if file.entry.dev == dev and file.phase in _NOT_ASKED_FOR:
                self.finish(file, Outcome.BLOCKED, Reason.NO_ROOM)
        self.clear_queues(lane for lane_id, lane in self.lanes.items() if lane_id.dev == dev)

    def clear_queues(self, lanes: Iterable[Lane]) -> None:
        """Forget who waits for a turn; their files have settled."""
        for lane in lanes:
            lane.unseen.clear()
            lane.cold.clear()
            lane.ready.clear()
