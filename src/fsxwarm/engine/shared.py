"""One warming for all jobs: one window per metadata target, each file asked for once, whoever wants it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final, Protocol

from fsxwarm.engine.driver import Driver
from fsxwarm.engine.explainer import Explainer
from fsxwarm.engine.intake import Intake
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import ServicePlan
from fsxwarm.engine.space import Measure, measure_mount
from fsxwarm.engine.walks import Walk, Wanted, next_to_feed, next_to_walk, select
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.job import Count, Job
from fsxwarm.model.messages import Finish, Ranked, Room, Say, Stop, Tick, Word
from fsxwarm.model.meter import Meter
from fsxwarm.model.outcome import Reason
from fsxwarm.model.units import Amount
from fsxwarm.model.warming import Warming
from fsxwarm.ports.tree import Place

_HEAD_START: Final = 10.0
"""Seconds that a walk gets before its files are asked for, so that most trees are known to fit, or not to."""
_MEASURED_FOR: Final = 5.0
"""Seconds for which free space is taken to be what it was."""
_SLICE: Final = 0.005
"""Seconds of handing on at a stretch."""
_PAUSE: Final = 30.0
"""Seconds after a failure of everything, or of a walk that may be tried again, until it is."""


class Hears(Protocol):
    """Hears what becomes of walks and files. Must not block."""

    def walk_began(self, walk: Walk, places: Sequence[Place]) -> None:
        """A walk has found the places that its paths mean, and begins."""
        ...

    def walk_begins_anew(self, walk: Walk) -> None:
        """What a walk has counted so far is about to be forgotten."""
        ...

    def walk_ended(self, walk: Walk) -> None:
        """All files of a walk have settled."""
        ...

    def walk_failed(self, walk: Walk, error: FsxwarmError) -> bool:
        """A walk cannot be done; returns whether it is worth another try."""
        ...

    def no_room(self, walk: Walk) -> None:
        """What a walk has found will not fit."""
        ...

    def settled(self, finish: Finish, walks: Sequence[Walk]) -> None:
        """A file has settled for these walks."""
        ...

    def let_go(self, walk: Walk, finishes: Iterable[Finish]) -> None:
        """The last job that wanted a walk has gone, and these files have not become resident for it."""
        ...

    def unreadable(self, walk: Walk, trouble: Trouble) -> None:
        """A folder or list entry could not be looked at."""
        ...

    def said(self, say: Say) -> None:
        """Something of the whole is worth telling."""
        ...

    def turned(self) -> None:
        """Counters may have changed."""
        ...


class SharedWarming:
    """Runs the walks of all jobs against one machine."""

    def __init__(
        self,
        means: Means,
        plan: ServicePlan,
        hears: Hears,
        meter: Meter,
    ) -> None:
        self._means = means
        self._explainer = Explainer(means.archive, self._explained, means.wall)
        self.plan = plan
        self._hears = hears
        self._meter = meter
        self._now = asyncio.get_running_loop().time
        self._driver = self._new_driver()
        self._numbers = 0
        self._renew = False
        self.walks: dict[int, Walk] = {}
        self.room: dict[int, Measure] = {}
        self.mounts: dict[int, bytes] = {}
        self._measuring: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._measured: dict[int, float] = {}
        self.problem = ""
        """Why nothing goes on right now; empty when all is well."""
        self.requests = 0
        """Requests sent by machines of the past."""

    # ---- jobs --------------------------------------------------------------------------------------------------

    def join(self, job: Job) -> Walk:
        """Let a job's files be walked and warmed, together with those of a job that wants the same."""
        wanted, now = Wanted.of(job), self._now()
        walk = next((w for w in self.walks.values() if w.wanted == wanted and w.may_be_joined(now)), None)
        if walk is None:
            self._numbers += 1
            walk = self.walks[self._numbers] = Walk(self._numbers, job, now)
            if len(self.walks) > 1:
                for each in self.walks.values():
                    each.alone = False
        if walk.take(job) or len(walk.jobs) == 1:
            self._driver.post(Ranked(walk.number, walk.rank))
        return walk

    def rank(self, walk: Walk, job: Job) -> None:
        """A job's priority has changed."""
        if walk.take(job):
            self._driver.post(Ranked(walk.number, walk.rank))

    def leave(self, walk: Walk, job: str, reason: Reason) -> Count:
        """Let a job go; returns what stays in flight for it. The walk of the last to go ends."""
        in_flight = Count(*self.machine.at_fsx_for(walk.number))
        changed = walk.drop(job)
        if walk.jobs:
            if changed:
                self._driver.post(Ranked(walk.number, walk.rank))
        elif self.walks.pop(walk.number, None) is not None:
            self._hears.let_go(walk, self.machine.let_go_of(walk.number, reason))
            self._dismiss(walk, reason)
        return in_flight

    def _dismiss(self, walk: Walk, reason: Reason) -> None:
        self._driver.post(Stop(reason, walk.number))
        self._explainer.let_go(walk)
        if walk.task is not None:
            walk.task.cancel()
        if walk.intake is not None:
            walk.intake.close()

    @property
    def machine(self) -> Warming:
        """The state machine, to look at."""
        return self._driver.machine

    def wanted_by(self, key: Key) -> list[str]:
        """The jobs that want a file that has not settled."""
        walks = [self.walks.get(number) for number in self.machine.wanted_by(key)]
        return [job for walk in walks if walk is not None for job in walk.jobs]

    @property
    def requests_sent(self) -> int:
        """Requests sent since the start."""
        return self.requests + self._driver.requests

    @property
    def busy(self) -> bool:
        """Whether any job waits for files."""
        return bool(self.walks)

    # ---- the loop ----------------------------------------------------------------------------------------------

    def _new_driver(self) -> Driver:
        return Driver(self._means.tree, self._means.hsm, Warming(self.plan.policy, self._now()), self._heard)

    async def run(self) -> None:
        """Warm until cancelled.

        When everything fails at once (no lfs, nothing answers), or another policy is to hold, it begins anew after a
        pause, as after a crash: every walk again, every action looked at before it is asked for.
        """
        try:
            while True:
                try:
                    await self._drive()
                except FsxwarmError as error:
                    self.problem = error.message
                await self._begin_anew()
                await asyncio.sleep(_PAUSE)
        finally:
            await self._end_tasks()
            await self._driver.close()

    def go_by(self, plan: ServicePlan) -> None:
        """Go by another plan from now on; by another policy after the pause in which calls under way come to an end."""
        self._renew = self._renew or plan.policy != self.plan.policy
        self.plan = plan
        self._wake()

    async def _begin_anew(self) -> None:
        self._renew = False
        await self._end_tasks()
        await self._driver.close()
        self.requests += self._driver.requests
        self._driver = self._new_driver()
        for walk in self.walks.values():
            self._forget(walk)
            self._driver.post(Ranked(walk.number, walk.rank))

    def _forget(self, walk: Walk) -> None:
        self._hears.walk_begins_anew(walk)
        self._explainer.let_go(walk)
        if walk.intake is not None:
            walk.intake.close()
        walk.begin_anew(self._now())

    async def _end_tasks(self) -> None:
        tasks = [walk.task for walk in self.walks.values() if walk.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drive(self) -> None:
        while not self._renew:
            now = self._now()
            for walk in next_to_walk(self.walks.values(), self.plan.walks, now):
                self._begin(walk)
            await self._driver.turn(hungry=any(self._meals()))
            until = self._now() + _SLICE
            for walk, appetite in self._meals():
                if walk.intake is not None:
                    for event in walk.intake.take(appetite, aged=not walk.alone):
                        self._driver.take_in(event)
                if self._now() >= until:
                    break  # the next turn goes on: the loop has others to serve
            self._look_after_walks()
            self._hears.turned()

    def _meals(self) -> list[tuple[Walk, int]]:
        """Walks that have something to hand on, and how much of it the machine can do with."""
        machine = self.machine
        meals: list[tuple[Walk, int]] = []
        for walk, first in next_to_feed(self.walks.values(), self._now()):
            appetite = machine.appetite_of(walk.number) if first else machine.appetite
            if appetite or (walk.intake is not None and walk.intake.ends):
                meals.append((walk, appetite))
        return meals

    def _look_after_walks(self) -> None:
        now = self._now()
        for walk in list(self.walks.values()):
            walk.progress.sample(now)
            task = walk.task
            if task is not None and task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self._failed(walk, error)
            elif walk.ended and not self._explainer.holds(walk):
                del self.walks[walk.number]
                self._driver.post(Ranked(walk.number, None))
                if walk.intake is not None:
                    walk.intake.close()
                self._hears.walk_ended(walk)

    def _failed(self, walk: Walk, error: BaseException) -> None:
        if not isinstance(error, FsxwarmError):
            raise error
        self._driver.post(Stop(Reason.INTERRUPTED, walk.number))
        again = self._hears.walk_failed(walk, error)
        if not again:
            self.walks.pop(walk.number, None)
            return
        self._forget(walk)
        walk.not_before = self._now() + _PAUSE
        self._driver.post(Ranked(walk.number, walk.rank))

    # ---- walking -----------------------------------------------------------------------------------------------

    def _begin(self, walk: Walk) -> None:
        walk.task = asyncio.create_task(self._walk(walk), name=f"walk {walk.id}")
        walk.task.add_done_callback(lambda _: self._wake())

    def _wake(self) -> None:
        self._driver.post(Tick())

    async def _walk(self, walk: Walk) -> None:
        lead = next(iter(walk.jobs.values()))
        files = await self._means.store.files(lead.id) if lead.listed else ()
        selection = select(lead, self._means.access.tree(walk.wanted.identity), files)
        walk.began = self._now()
        places = await selection.resolve()
        self._hears.walk_began(walk, places)
        await self._measure(selection.mounts)
        walk.feeds_at = self._now() + (_HEAD_START if self.plan.reserve is not None else 0.0)
        walk.intake = Intake(
            selection,
            walk.progress,
            lambda trouble: self._hears.unreadable(walk, trouble),
            walk.number,
            self._means.archive.sieve(lead.request.options.check_s3),
        )
        await walk.intake.walk(self._now, self._wake)
        await self._measure(selection.mounts)

    # ---- space -------------------------------------------------------------------------------------------------

    async def measure(self) -> None:
        """Measure the file systems that are being warmed, and let go of what cannot fit."""
        used = {dev for walk in self.walks.values() if walk.intake for dev in walk.intake.selection.mounts}
        await self._measure({dev: mount for dev, mount in self.mounts.items() if dev in used})

    async def _measure(self, mounts: Mapping[int, bytes]) -> None:
        self.mounts.update(mounts)
        reserve = self.plan.reserve
        if reserve is None:
            return
        for dev, mount in mounts.items():
            async with self._measuring[dev]:  # many walks begin and end at once: one look is good for all of them
                if self._now() >= self._measured.get(dev, -inf) + _MEASURED_FOR:
                    await self._measure_one(dev, mount, reserve)
        for walk in list(self.walks.values()):
            if walk.intake is not None and self._is_too_much(walk.intake):
                self._hears.no_room(walk)

    async def _measure_one(self, dev: int, mount: bytes, reserve: Amount) -> None:
        measure = await measure_mount(self._means.hsm, mount, reserve)
        self._measured[dev] = self._now()
        if isinstance(measure, Measure):
            self.room[dev] = measure
            self._driver.post(Room(dev, measure.available))

    def _is_too_much(self, intake: Intake) -> bool:
        """Whether what a walk has found cannot fit, even if all that is on its way were its own."""
        return any(
            intake.unsettled[dev] - self.machine.claimed(dev) > measure.available for dev, measure in self.room.items()
        )

    # ---- hearing -----------------------------------------------------------------------------------------------

    def _heard(self, news: Finish | Say) -> None:
        if isinstance(news, Say):
            self._meter.said(news)
            self._hears.said(news)
            if news.word is Word.NOT_ALLOWED:
                raise FsxwarmError(Kind.NO_PERMISSION, "the metadata server refuses every restore", hint="run as root")
            return
        self._meter.settled(news)
        self.problem = ""
        walks = [walk for number in news.jobs if (walk := self.walks.get(number)) is not None]
        for walk in walks:
            walk.progress.finished(news)
            if walk.intake is not None:
                walk.intake.settled(news)
        if not self._explainer.takes(news, walks):
            self._hears.settled(news, walks)

    async def explain(self) -> None:
        """Look for why restores have failed lately. To be called every few seconds."""
        await self._explainer.look()

    def _explained(self, finish: Finish, walks: Sequence[Walk]) -> None:
        if finish.reason is not None and finish.reason is not Reason.RESTORE_FAILED:
            for walk in walks:
                walk.progress.explained(finish.reason)
        self._hears.settled(finish, walks)
        self._wake()
