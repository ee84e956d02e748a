"""Walks of the daemon: one for all jobs that want the same, and which of them goes next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from fsxwarm.engine.intake import Intake
from fsxwarm.engine.selection import Selection, chunked
from fsxwarm.model.job import Count, Counters, Identity, Job
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.progress import Progress
from fsxwarm.model.schedule import Rank
from fsxwarm.model.tally import Tally
from fsxwarm.ports.tree import Filters, Tree

_FRESH: Final = 60.0
"""Seconds after its begin in which a walk may be joined: what it has seen is still true enough."""


class Wanted(NamedTuple):
    """What a job wants walked, and with whose rights: jobs that are alike in this share a walk."""

    identity: Identity
    paths: tuple[bytes, ...]
    digest: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    order: str
    check_s3: str

    @classmethod
    def of(cls, job: Job) -> Wanted:
        """What this job wants."""
        request = job.request
        options = request.options
        order, check_s3 = options.order.value, options.check_s3.value
        return cls(request.identity, request.paths, job.digest, request.include, request.exclude, order, check_s3)


def select(job: Job, tree: Tree, files: Sequence[bytes], *, whole: bool = False) -> Selection:
    """The files that a job is about; `files` is its list."""
    request = job.request
    return Selection(
        tree,
        request.paths,
        listed=chunked(files) if files else None,
        filters=Filters(request.include, request.exclude),
        whole=whole,
        order=request.options.order,
    )


class Walk:
    """One walk, from its place in the queue until all of its files have settled.

    `number` is what the machine knows it by, `id` what failures are filed under. Times on the loop's clock; `feeds_at`
    is when its files may be asked for though it has not ended.
    """

    def __init__(self, number: int, job: Job, now: float) -> None:
        self.number = number
        self.id = f"{job.id}-{job.resumed}-{job.rounds}"
        self.wanted = Wanted.of(job)
        self.jobs: dict[str, Job] = {}
        self.unready: set[str] = set()
        """Those of them that are to be told when they have become ready."""
        self.rank = Rank(self.wanted.identity.uid, 0)
        """Its owner, and the best priority of its jobs."""
        self._counted = Counters()
        self.failures = 0
        """Failures kept."""
        self.not_before = now
        self.alone = True
        """No other walk has been there since it began: what it has seen is changed by its own restores only."""
        self.begin_anew(now)

    def begin_anew(self, now: float) -> None:
        """Forget what it has seen."""
        self.progress = Progress(now)
        self.intake: Intake | None = None
        self.task: asyncio.Task[None] | None = None
        self.began: float | None = None
        self.feeds_at = float("inf")

    def may_be_joined(self, now: float) -> bool:
        """Whether what it has seen so far is good for a job that comes now."""
        return self.began is None or now - self.began < _FRESH

    def take(self, job: Job) -> bool:
        """Let a job share the walk, or take note of how it has changed; tells whether the rank is another now."""
        self.jobs[job.id] = job
        if job.request.options.ready is not None and not job.ready:
            self.unready.add(job.id)
        return self._rerank()

    def drop(self, job: str) -> bool:
        """Let a job go; tells whether the rank is another now."""
        self.jobs.pop(job, None)
        self.unready.discard(job)
        return self._rerank()

    def _rerank(self) -> bool:
        before = self.rank
        priority = max((job.request.priority for job in self.jobs.values()), default=0)
        self.rank = Rank(before.owner, priority)
        return self.rank != before

    @property
    def walking(self) -> bool:
        """The tree is being walked right now."""
        return self.task is not None and not self.task.done()

    def feeds(self, now: float) -> bool:
        """Whether its files may be asked for."""
        return self.intake is not None and self.intake.hungry and (not self.walking or now >= self.feeds_at)

    @property
    def ended(self) -> bool:
        """All of its files have settled."""
        return self.intake is not None and self.intake.all_fed and not self.progress.open

    def counters(self) -> Counters:
        """How far it has come: the same object as before for as long as nothing changes."""
        progress = self.progress
        settled = {outcome: _count(tally) for outcome, tally in progress.settled.items()}
        counted = Counters(
            found=_count(progress.found),
            resident=settled[Outcome.RESIDENT],
            restored=settled[Outcome.RESTORED],
            failed=settled[Outcome.FAILED],
            blocked=settled[Outcome.BLOCKED],
            vanished=settled[Outcome.VANISHED],
            cancelled=settled[Outcome.CANCELLED],
            left_in_flight=_count(progress.left_in_flight),
            unreadable=progress.unreadable,
            skipped=progress.skipped,
            scanned=progress.scan_ended is not None,
            reasons={reason.value: files for reason, files in progress.reasons.items()},
        )
        if counted != self._counted:
            self._counted = counted
        return self._counted


def _count(tally: Tally) -> Count:
    return Count(tally.files, tally.bytes)


def next_to_walk(walks: Iterable[Walk], most: int, now: float) -> list[Walk]:
    """The walks to begin now, so that `most` are under way: owners with the fewest first, then by priority and age."""
    walks = list(walks)
    under_way = Counter(walk.rank.owner for walk in walks if walk.walking)
    waiting = [walk for walk in walks if walk.task is None and now >= walk.not_before]
    chosen: list[Walk] = []
    while waiting and under_way.total() < most:
        walk = min(waiting, key=lambda walk: (under_way[walk.rank.owner], -walk.rank.priority, walk.number))
        waiting.remove(walk)
        under_way[walk.rank.owner] += 1
        chosen.append(walk)
    return chosen


def next_to_feed(walks: Iterable[Walk], now: float) -> list[tuple[Walk, bool]]:
    """Walks whose files may be asked for, by priority and age; the flag marks the first of each owner."""
    owners: set[int] = set()
    order: list[tuple[Walk, bool]] = []
    ready = [walk for walk in walks if walk.feeds(now)]
    for walk in sorted(ready, key=lambda walk: (-walk.rank.priority, walk.number)):
        owner = walk.rank.owner
        order.append((walk, owner not in owners))
        owners.add(owner)
    return order
