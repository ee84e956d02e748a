"""One job in the daemon's hands."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fsxwarm.engine.releasing import Releasing
from fsxwarm.engine.walks import Walk
from fsxwarm.model.job import Counters, Job, JobView, Phase


class Round(NamedTuple):
    """A keep-warm job's round that could be walked to its end, `ended` in seconds since the epoch."""

    coverage: float
    ended: float


class Tracked:
    """A job, and the walk or release that it has come to count by.

    `base` is how far it had come when its present walk began: a walk that begins anew takes nothing back. `last_round`
    is None as long as no round of a keep-warm job has ended well.
    """

    __slots__ = ("_noted", "base", "job", "last_round", "releasing", "walk")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.base = job.counters
        self.walk: Walk | None = None
        self.releasing: Releasing | None = None
        self.last_round: Round | None = None
        self._noted: Counters | None = None
        self.note_round()

    def note_round(self) -> None:
        """Remember how the round went that a resting keep-warm job rests from."""
        job = self.job
        if job.phase is Phase.RESTING and job.next_round is not None and not job.error:
            self.last_round = Round(job.counters.coverage, job.next_round - job.request.options.every)

    def counters(self) -> Counters:
        """How far it has come by now."""
        if self.walk is not None:
            return self.walk.counters().after(self.base)
        if self.releasing is not None:
            return self.releasing.counters.after(self.base)
        return self.job.counters

    def note(self, known: dict[Walk, Counters]) -> bool:
        """Bring the job's own counters up to date; tells whether they have changed.

        `known` are the counters of walks at this moment, and learns: many jobs may share one.
        """
        counters = self.job.counters
        if self.walk is not None:
            counted = known.get(self.walk)
            if counted is None:
                counted = known[self.walk] = self.walk.counters()
            if counted is self._noted:
                return False
            self._noted = counted
            counters = counted.after(self.base)
        elif self.releasing is not None:
            counters = self.counters()
        if counters == self.job.counters:
            return False
        self.job = replace(self.job, counters=counters)
        return True

    def view(self) -> JobView:
        """How it stands."""
        if self.walk is None and self.releasing is None:
            return JobView(self.job)
        job = replace(self.job, counters=self.counters())
        if self.walk is None:
            return JobView(job)
        files, size = self.walk.progress.rate()
        return JobView(job, files, size, self.walk.progress.eta() if job.counters.scanned else None)
