"""When to look at which file again, and how: the rounds that watch what is in flight.

A stat is free while the client holds the file's lock, so with it all files are watched several times a second. A look
at the flags costs the server an open: it comes when three files in four are expected to be done, then at growing
distances. Only a file that is late is asked what its restore is doing, the oldest first, few at a time.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from fsxwarm.model.entry import Key
from fsxwarm.model.file import File, Phase
from fsxwarm.model.lane import Lane
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import Instruction, Look, LookAt
from fsxwarm.model.pace import Pace
from fsxwarm.model.policy import Policy

_STATS_PER_SECOND: Final = 12_500
_STAT_EVERY: Final = (0.1, 0.5)
_STAT_AGE: Final = 0.01
"""A file is stat'ed again after such a share of the time that it has been on its way: that little later is soon."""
_STUCK_EVERY: Final = 1.5
_STATE_GRID: Final = 0.5
_PROVABLE: Final = 512
"""A resident file of up to so many bytes has one block, as a released one may have: a stat proves nothing."""
_DIAGNOSES: Final = 50


class Rounds:
    """Keeps the times at which files are due, and turns those that are into looks."""

    def __init__(self, policy: Policy, pace: Pace) -> None:
        self._policy = policy
        self._pace = pace
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0
        self._stat_every = _STAT_EVERY[0]

    @property
    def next_due(self) -> float | None:
        """When the next file is due; None when none is."""
        return self._heap[0][0] if self._heap else None

    def schedule(self, file: File, when: float) -> None:
        """Make a file due at `when`, instead of whenever it was due."""
        file.due = when
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, file.key))

    def begin(self, file: File, now: float, *, scout: bool) -> None:
        """A file has come under watch: set its own deadline and its first look."""
        size = file.entry.size
        file.polls = 0
        file.late = now + self._pace.deadline(size)
        if self.by_stat(file):
            wait = 0.0 if scout else self._pace.without_news(size)
            file.waits = wait > self._stat_every
            self.schedule(file, now + max(self._stat_every, wait))
        else:
            self.schedule(file, min(self._on_grid(now + self._pace.first_look(size)), file.late))

    def again(self, file: File, now: float, *, diagnosed: bool = False) -> None:
        """A look found the file still on its way: set the next, and after a diagnosis a new deadline."""
        if diagnosed:
            file.late = now + self.grace(file, now)
        if self.by_stat(file):
            seldom = min(_STAT_AGE * (now - file.asked), _STAT_EVERY[1])
            when = now + max(self._stat_every, seldom)
            self.schedule(file, self._on_grid(now + _STUCK_EVERY) if file.stuck else when)
        else:
            age = now - file.asked
            self.schedule(file, self._on_grid(now + max(_STATE_GRID, 0.25 * age)))

    def grace(self, file: File, now: float) -> float:
        """Seconds until a file that is late, but all right, is asked after again."""
        return min(max(0.5 * (now - file.asked), self._policy.floor), self._policy.cap / 5)

    def polled(self, file: File, how: Look, *, resident: bool, by_stat: bool | None = None) -> None:
        """Learn from a look at a file under watch; `by_stat`: what a stat made after its flags proved, if one was."""
        if how is Look.STAT:
            if file.polls == 1 and not file.waits:
                self._pace.first_stat_was(file.entry.size, hit=resident)
            if resident:
                self._pace.proved_by_stat(file.entry.size)
            return
        if not resident:
            return  # it may have failed: that says nothing of how long restores take
        if by_stat is False and self.by_stat(file):
            self._pace.missed_by_stat(file.entry.size)
        self._pace.first_look_was(file.entry.size, hit=file.polls == 1)

    def make(
        self,
        files: Mapping[Key, File],
        lanes: Mapping[LaneId, Lane],
        now: float,
        out: list[Instruction],
        woken: Callable[[File], None],
    ) -> None:
        """Turn all that is due by `now` into looks, appended to `out`; call `woken` for files whose backoff is over."""
        looks: defaultdict[Look, list[File]] = defaultdict(list)
        diagnoses: defaultdict[LaneId, list[File]] = defaultdict(list)
        for file in self._due(files, now):
            if file.phase is Phase.BACKOFF:
                woken(file)
                continue
            how = self._how(file, lanes[file.lane], now)
            if how is Look.BOTH and file.phase in {Phase.IN_FLIGHT, Phase.WATCHED}:
                diagnoses[file.lane].append(file)
            else:
                looks[how].append(file)
        for lane_id, late in diagnoses.items():
            late.sort(key=lambda file: file.asked)
            looks[Look.BOTH] += late[:_DIAGNOSES]
            lanes[lane_id].diagnosing = True
            for file in late[_DIAGNOSES:]:  # their turn comes later: meanwhile they are watched as ever
                looks[self._watching(file)].append(file)
        watched = sum(lane.counts[Phase.IN_FLIGHT] + lane.counts[Phase.WATCHED] for lane in lanes.values())
        self._stat_every = min(max(watched / _STATS_PER_SECOND, _STAT_EVERY[0]), _STAT_EVERY[1])
        for how, group in looks.items():
            size = self._policy.look_batch
            for start in range(0, len(group), size):
                part = group[start : start + size]
                for file in part:
                    file.looking = how
                    file.polls += 1
                out.append(LookAt(how, tuple(file.entry for file in part)))

    def _due(self, files: Mapping[Key, File], now: float) -> list[File]:
        due: list[File] = []
        while self._heap and self._heap[0][0] <= now:
            when, _, key = heapq.heappop(self._heap)
            file = files.get(key)
            if file is not None and file.due == when:
                file.due = None
                if file.looking is None:  # else the look that is out decides what comes next
                    due.append(file)
        return due

    def _how(self, file: File, lane: Lane, now: float) -> Look:
        if file.unreadable:
            return Look.RELEASED
        if file.phase not in {Phase.IN_FLIGHT, Phase.WATCHED}:
            return Look.BOTH
        if now >= file.late and file.polls and not lane.diagnosing and not lane.knows_to_wait(file, now):
            return Look.BOTH
        return self._watching(file)

    def _watching(self, file: File) -> Look:
        return Look.STAT if self.by_stat(file) else Look.STATE

    def by_stat(self, file: File) -> bool:
        """Whether a stat is the way to watch this file."""
        size = file.entry.size
        return self._policy.stat_settles and size > _PROVABLE and not self._pace.stat_blind(size)

    @staticmethod
    def _on_grid(when: float) -> float:
        return math.ceil(when / _STATE_GRID) * _STATE_GRID
