"""What happens to jobs and files, as lines of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fsxwarm.daemon.repeats import Repeats
from fsxwarm.daemon.vocabulary import LINES, Line
from fsxwarm.model.job import Event, JobView

_NAMED: Final = 5
"""Paths of a job that its first line names."""
_COUNTED: Final = ("resident", "restored", "released", "failed", "blocked", "vanished", "cancelled")

Log = Callable[..., None]
"""Writes a line: the `Line`, and its fields."""


class _Kind(NamedTuple):
    line: Line
    job: str
    reason: str


class Chronicle:
    """Hears of every event and writes it down with `log`, if it `writes` such lines; `now` is a steady clock.

    `view` looks up jobs; until it is set, there are none.
    """

    def __init__(self, log: Log, now: Callable[[], float], writes: Callable[[Line], bool] = lambda _line: True) -> None:
        self._log = log
        self._writes = writes
        self._repeats = Repeats[_Kind](now)
        self._problems: frozenset[str] = frozenset()
        self.view: Callable[[str], JobView | None] = _none

    def wants(self, kind: str) -> bool:
        """Whether anything comes of an event of this kind."""
        return kind in _LAST or self._writes(_KNOWN.get(kind, Line.NOTICE))

    def hear(self, event: Event) -> None:
        """Write an event down, unless it is one of too many."""
        line = _KNOWN.get(event.kind, Line.NOTICE)
        if not self.wants(event.kind):
            return
        fields: dict[str, object] = {"job": event.job} if event.job else {}
        if line is Line.NOTICE:
            fields["message"] = event.kind
        fields |= self._of_job(line, event) if event.kind.startswith("job_") else event.data
        if not LINES[line].limited:
            self._log(line, **fields)
        else:
            left_out = self._repeats.admit(_Kind(line, event.job, str(event.data.get("reason", ""))))
            if left_out is not None:
                self._log(line, **fields, **({"left_out": left_out} if left_out else {}))
        if event.kind in _LAST:
            self._close(event.job)

    def _close(self, job: str) -> None:
        for of, left_out in self._repeats.forget(lambda one: one.job == job):
            self._log(Line.REPEATED, of=of.line.value, job=of.job, reason=of.reason, times=left_out)

    def problems(self, now: Sequence[str]) -> None:
        """Write down what has gone wrong, or right again, since the last time."""
        there = frozenset(now)
        for message in sorted(there - self._problems):
            self._log(Line.PROBLEM, message=message)
        for message in sorted(self._problems - there):
            self._log(Line.PROBLEM_OVER, message=message)
        self._problems = there

    def _of_job(self, line: Line, event: Event) -> dict[str, object]:
        view = self.view(event.job)
        if view is None:
            return dict(event.data)
        job, request, counters = view.job, view.job.request, view.counters
        match line:
            case Line.JOB_QUEUED:
                paths = [path.decode("utf-8", "backslashreplace") for path in request.paths[:_NAMED]]
                more = len(request.paths) - _NAMED
                return {
                    "owner": job.owner, "kind": request.kind.value, "priority": request.priority,
                    "paths": ", ".join(paths) + (f" and {more} more" if more > 0 else ""), "listed": job.listed,
                    "label": request.label, "slurm_job_id": request.slurm_job_id,
                }  # fmt: skip
            case Line.JOB_RUNNING:
                return {"walk": job.walk, "resumed": job.resumed}
            case Line.JOB_READY:
                return {"coverage": round(counters.coverage, 4), "seconds": round(event.at - job.created, 1)}
        ended: dict[str, object] = {
            "exit": None if job.exit is None else int(job.exit),
            "seconds": round(event.at - (job.started or job.created), 1),
            "found": counters.found.files,
            "bytes": counters.restored.bytes + counters.released.bytes,
        }
        ended |= {name: count for name in _COUNTED if (count := getattr(counters, name).files)}
        if counters.unreadable:
            ended["unreadable"] = counters.unreadable
        if counters.reasons:
            ended["reasons"] = ", ".join(f"{reason} {files}" for reason, files in sorted(counters.reasons.items()))
        if job.error:
            ended["error"] = job.error
        if line is Line.JOB_RESTING:
            ended["next_round"] = job.next_round
        return ended


_KNOWN: Final = {line.value: line for line in Line}
_LAST: Final = frozenset({Line.JOB_RESTING, Line.JOB_DONE, Line.JOB_FAILED, Line.JOB_CANCELLED})
"""Events after which nothing more happens to a job, or not for a while."""


def _none(_job: str) -> JobView | None:
    return None
