"""Whose file is next: fair between owners, by priority, in the order in which each job wants its files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from math import exp2
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from fsxwarm.model.entry import Entry, Key

_WORTH_A_FILE: Final = 9_000_000
"""Bytes that take a restore as long as a request does: below that, files per second are the limit (measured rates)."""
_DOUBLES: Final = 10
"""Points of priority that double an owner's share."""


class Rank(NamedTuple):
    """Who asked for a job (uid), and its priority from 0 to 100."""

    owner: int = 0
    priority: int = 50

    @property
    def weight(self) -> float:
        """The owner's share against others whose best job has a priority of 50: 1 at 50, 32 at 100, 1/32 at 0."""
        return exp2((self.priority - 50) / _DOUBLES)


DEFAULT: Final = Rank()


class Wanted(Protocol):
    """What the turns need to know of a file: `wanted_by` are the numbers of the jobs that want it."""

    key: Key
    entry: Entry
    wanted_by: set[int]


W = TypeVar("W", bound=Wanted)


class Turns(Generic[W]):
    """Files that wait for their turn, each once, though several jobs may want it.

    Owners take turns (stride scheduling): each has come so far, and who is furthest behind goes next; a file takes its
    owner forward by what it costs, the less the higher the job's priority. So owners of equal priority get equal
    shares, and a low priority is slow but never starves. An owner's own jobs go strictly by priority, then by
    age (the job's number). `ranks` may change at any time and holds from the next turn on.
    """

    def __init__(self, ranks: Mapping[int, Rank]) -> None:
        self._ranks = ranks
        self._waiting: dict[Key, W] = {}
        self._lines: dict[int, deque[W]] = {}
        self._come: dict[int, float] = {}
        self._now = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[W]:
        return iter(self._waiting.values())

    def put(self, file: W, *, ahead: bool = False) -> None:
        """Let a file wait behind those of each job that wants it, or `ahead` of them."""
        self._waiting[file.key] = file
        for job in file.wanted_by:
            self._enqueue(file, job, ahead=ahead)

    def join(self, file: W, job: int) -> None:
        """One more job wants a file, which may be waiting here."""
        if self._waiting.get(file.key) is file:
            self._enqueue(file, job, ahead=False)

    def peek(self) -> W:
        """The file whose turn is next. IndexError when none waits."""
        return self._lines[self._next()][0]

    def pop(self) -> W:
        """Take the file whose turn it is. IndexError when none waits."""
        job = self._next()
        file = self._lines[job].popleft()
        del self._waiting[file.key]
        rank = self._ranks.get(job, DEFAULT)
        self._now = self._come[rank.owner]
        self._come[rank.owner] += (1 + file.entry.size / _WORTH_A_FILE) / rank.weight
        return file

    def discard(self, file: W) -> None:
        """Let a file wait no longer."""
        if self._waiting.get(file.key) is file:
            del self._waiting[file.key]

    def clear(self) -> None:
        """Let nobody wait any longer."""
        self._waiting.clear()
        self._lines.clear()

    def serves(self, job: int) -> bool:
        """Whether a file of this job waits."""
        return self._tidy(job)

    def leads(self, other: Turns[W]) -> bool:
        """Whether the next file here is of a job that has none waiting in `other`."""
        return bool(self._waiting) and not other.serves(self._next())

    def _enqueue(self, file: W, job: int, *, ahead: bool) -> None:
        line = self._lines.get(job)
        if line is None:
            line = self._lines[job] = deque()
            owner = self._ranks.get(job, DEFAULT).owner
            self._come[owner] = max(self._come.get(owner, 0.0), self._now)
        if len(line) > 2 * len(self._waiting) + 64:  # most have been served on behalf of others
            valid = [other for other in line if self._is_valid(other, job)]
            line.clear()
            line.extend(valid)
        (line.appendleft if ahead else line.append)(file)

    def _next(self) -> int:
        """The job whose turn it is."""
        if not self._waiting:
            raise IndexError("nobody waits")
        if len(self._lines) == 1:
            job = next(iter(self._lines))
            if self._tidy(job):
                self._come.setdefault(self._ranks.get(job, DEFAULT).owner, self._now)
                return job
        return min((job for job in list(self._lines) if self._tidy(job)), key=self._precedence)

    def _precedence(self, job: int) -> tuple[float, int, int]:
        rank = self._ranks.get(job, DEFAULT)
        return self._come.setdefault(rank.owner, self._now), -rank.priority, job

    def _tidy(self, job: int) -> bool:
        """Drop from the head of a job's line whoever no longer waits in it; tell whether anybody is left."""
        line = self._lines.get(job)
        if line is None:
            return False
        while line and not self._is_valid(line[0], job):
            line.popleft()
        if not line:
            del self._lines[job]
        return bool(line)

    def _is_valid(self, file: W, job: int) -> bool:
        return self._waiting.get(file.key) is file and job in file.wanted_by
