"""What became of files, noted for the store and told to who watches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol

from fsxwarm.engine.journal import Journal
from fsxwarm.engine.looks import DENIED, GONE
from fsxwarm.engine.walks import Walk
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import Failure
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.ports.tree import NOT_REGULAR

_REASONS: Final = {
    **dict.fromkeys(DENIED, Reason.UNREADABLE),
    **dict.fromkeys(GONE, Reason.GONE),
    NOT_REGULAR: Reason.NOT_REGULAR,
}
_KINDS: Final = {outcome: f"file_{outcome.value}" for outcome in Outcome}


class Tell(Protocol):
    """Tells those who watch."""

    def __call__(
        self, kind: str, job: str = "", data: dict[str, object] | None = None, *, quietly: bool = False
    ) -> None:
        """Something has happened. `quietly`: it is for the record, and no news."""
        ...


class Records:
    """Keeps `most_failures` of each walk, and tells of files where `wants` says that anybody hears of such an event."""

    def __init__(
        self,
        journal: Journal,
        tell: Tell,
        wall: Callable[[], float],
        most_failures: int,
        wants: Callable[[str], bool],
    ) -> None:
        self._journal = journal
        self._tell = tell
        self._wall = wall
        self._most_failures = most_failures
        self._wants = wants

    def settled(self, finish: Finish, walks: Sequence[Walk]) -> None:
        """A file has settled for these walks."""
        self._journal.count(f"{finish.outcome.value}_files")
        self._tell_of(finish, walks)
        if finish.outcome is Outcome.RESTORED:
            self._journal.count("restored_bytes", finish.entry.size)
            self._journal.restored(finish.entry.ino)
        elif not finish.outcome.warm:
            failure = self._failure(finish)
            for walk in walks:
                self._keep(walk, failure)

    def let_go(self, walk: Walk, finishes: Iterable[Finish]) -> None:
        """Nobody waits for these files of a walk any more."""
        for finish in finishes:
            self._keep(walk, self._failure(finish))

    def unreadable(self, walk: Walk, trouble: Trouble) -> None:
        """A folder or list entry could not be looked at."""
        failure = unreadable(trouble, self._wall())
        self._keep(walk, failure)
        data: dict[str, object] = {
            "path": failure.path, "reason": failure.reason, "errno": failure.errno, "detail": failure.detail
        }  # fmt: skip
        for job_id in _first(walk):
            self._tell("file_unreadable", job_id, data, quietly=True)

    def _tell_of(self, finish: Finish, walks: Sequence[Walk]) -> None:
        kind = _KINDS[finish.outcome]
        if not self._wants(kind):
            return
        data: dict[str, object] = {"path": finish.entry.path, "size": finish.entry.size}
        if finish.reason is not None:
            data["reason"] = finish.reason.value
        if finish.attempts:
            data["attempts"] = finish.attempts
        if finish.took is not None:
            data["seconds"] = round(finish.took, 1)
        if finish.errno:
            data["errno"] = finish.errno
        if finish.detail:
            data["detail"] = finish.detail
        for walk in walks:
            for job_id in _first(walk):
                self._tell(kind, job_id, data, quietly=True)

    def _failure(self, finish: Finish) -> Failure:
        reason = "" if finish.reason is None else finish.reason.value
        flags = None if finish.flags is None else int(finish.flags)
        return Failure(0, self._wall(), finish.entry.path, finish.outcome.value, reason, finish.errno, flags,
                       finish.attempts, finish.detail, finish.entry.size, finish.in_flight)  # fmt: skip

    def _keep(self, walk: Walk, failure: Failure) -> None:
        walk.failures += 1
        if walk.failures <= self._most_failures:
            self._journal.failure(walk.id, failure)


def unreadable(trouble: Trouble, at: float) -> Failure:
    """A folder or list entry that could not be looked at, as a job's record has it."""
    reason = _REASONS.get(trouble.errno, Reason.IO_ERROR)
    detail = trouble.text or os.strerror(trouble.errno)
    return Failure(0, at, trouble.path, "unreadable", reason.value, trouble.errno, detail=detail)


def _first(walk: Walk) -> list[str]:
    """In whose name a walk's files are told of, once: its first job, if there is one. A thousand jobs may share it."""
    return list(islice(walk.jobs, 1))
