"""The daemon's core: keeps jobs going until they are done, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from fsxwarm.engine.counting import Counted, CountRequest, count
from fsxwarm.engine.gauges import Gauges
from fsxwarm.engine.inventory import Inventory
from fsxwarm.engine.jobs import Jobs
from fsxwarm.engine.journal import Journal
from fsxwarm.engine.keeper import Keeper
from fsxwarm.engine.leases import Leases
from fsxwarm.engine.make_room import Room
from fsxwarm.engine.means import Means
from fsxwarm.engine.overview import EVERY, Overview, Past, limit_of, newest, rooms, slowest, stocks
from fsxwarm.engine.periodic import Periodic
from fsxwarm.engine.plan import Health, KeepWarm, LaneHealth, Marks, ServicePlan
from fsxwarm.engine.protection import Protection, Restored
from fsxwarm.engine.records import Records
from fsxwarm.engine.release import Released
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.servers import Servers
from fsxwarm.engine.shared import SharedWarming
from fsxwarm.engine.status import Status, Survey
from fsxwarm.engine.surroundings import Surroundings
from fsxwarm.engine.watchers import News, Waiters, restarting
from fsxwarm.errors import FsxwarmError
from fsxwarm.model.file import Phase as FilePhase
from fsxwarm.model.job import Event, Failure, Identity, Job, JobRequest, JobView
from fsxwarm.model.lease import Lease, LeaseRequest
from fsxwarm.model.measures import Measures
from fsxwarm.model.meter import Meter

__all__ = ["Health", "KeepWarm", "LaneHealth", "Marks", "Service", "ServicePlan"]

_FLUSH_EVERY: Final = 0.5
_MEASURE_EVERY: Final = 15.0
_EXPLAIN_EVERY: Final = 5.0
_LOOK_EVERY: Final = 10.0
_EXPIRE_EVERY: Final = 3600.0
_MANY: Final = 1000
"""Jobs that may end beyond those that are kept before the rest is forgotten out of turn."""
_WATCH_EVERY: Final = 30.0
_ASK_AWS_EVERY: Final = 900.0


def _nobody(_event: Event) -> None:
    """Whom nothing is told."""


class Service:
    """Jobs, leases and all that runs by itself; an async context manager: entering it takes up unfinished jobs.

    `hears` is told of all that happens, file by file where it `wants` that kind of event; `around` looks at what
    metrics tell beside what is done. Everything runs on one event loop; no method blocks it. Errors are FsxwarmError:
    NO_SUCH_JOB for an unknown id, RESTARTING from `drain` on, USAGE for a bad wish. Who may call what is the caller's
    business.
    """

    def __init__(
        self,
        means: Means,
        plan: ServicePlan,
        *,
        hears: Callable[[Event], None] = _nobody,
        wants: Callable[[str], bool] = bool,
        around: Surroundings | None = None,
    ) -> None:
        self.meter = Meter()
        self._means = means = means.metered(self.meter)
        self._tree = means.tree
        self._hsm = means.hsm
        self._access = means.access
        self._store = means.store
        self._wall = wall = means.wall
        self._around = around or Surroundings()
        self.plan = plan
        self._hears = hears
        self._wants = wants
        self._started = wall()
        self._draining = False
        self._background: list[asyncio.Task[None]] = []
        self._news = News()
        self._waiters = Waiters()
        self._past = Past()

    async def __aenter__(self) -> Self:
        """Load the store and go on with every unfinished job."""
        saved = await self._store.load()
        self._journal = Journal(self._store, saved.totals, self._wall)
        self._protection = Protection(saved.wanted)
        self._leases = Leases(self._store, self._tree, self._protection, saved.leases, self._wall)
        self._jobs = Jobs(
            self._means,
            self._journal,
            self._protection,
            self._tell,
            self._waiters.wake,
            Records(self._journal, self._tell, self._wall, self.plan.limits.failures_each, self._wants),
        )
        self._warming = SharedWarming(self._means, self.plan, self._jobs, self.meter)
        self._jobs.warming = self._warming
        self._keeper = Keeper(self._means, self._protection, self._restored_lately, self._made_room)
        self._inventory = Inventory(
            self._tree, self._hsm, calm=self._jobs.calm, save=self._journal.scan, wall=self._wall
        )
        for path, text in saved.scans.items():
            self._inventory.load(path, text)
        self._gauges = Gauges(self.meter, self._warming, self._inventory, self._around)
        await self._jobs.resume(saved.jobs)
        await self._jobs.keep_warm(self.plan.keep_warm)
        self.periodic = self._errands()
        for work in (self._warming.run(), self.periodic.run(), self._jobs.run_releases(), self._scan()):
            self._background.append(asyncio.create_task(work))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """`drain`, if that has not happened yet, and end all tasks."""
        await self.drain()

    async def run(self) -> None:
        """Wait until the service has drained. Raises what broke, if anything did: then it must be started anew."""
        await asyncio.wait(self._background, return_when=asyncio.FIRST_EXCEPTION)
        for task in self._background:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    # ---- jobs --------------------------------------------------------------------------------------------------

    async def submit(self, request: JobRequest) -> Job:
        """Take a job on. It is durable when this returns."""
        self._must_not_drain()
        return await self._jobs.submit(request)

    def jobs(self, *, owner: int | None = None) -> list[JobView]:
        """All jobs known, or those of one owner (uid), the newest first."""
        return self._jobs.views(owner)

    def job(self, job_id: str) -> JobView | None:
        """One job; None when there is none of this id."""
        return self._jobs.view(job_id)

    async def wait(self, job_id: str, timeout: float) -> JobView:  # noqa: ASYNC109 - an elapsed time is an answer here
        """Wait until a job becomes ready or ends, or `timeout` seconds have passed; returns how it stands then.

        Returns at once when it has ended already. A job that is ready already is waited for to its end.
        Raises RESTARTING when the service drains meanwhile.
        """
        if not self._jobs.must_view(job_id).job.phase.final:
            await self._waiters.wait(job_id, timeout)
        return self._jobs.must_view(job_id)

    async def cancel(self, job_id: str) -> JobView:
        """Let go of a job; one that has ended stays as it is. Files that other jobs want go on for them."""
        self._must_not_drain()
        self._jobs.cancel(job_id)
        await self._journal.flush()
        return self._jobs.must_view(job_id)

    async def set_priority(self, job_id: str, priority: int) -> JobView:
        """Change a job's priority (0 to 100); holds for its files that have not been asked for.

        Raises CONFLICT when it has ended.
        """
        self._must_not_drain()
        self._jobs.set_priority(job_id, priority)
        await self._journal.flush()
        return self._jobs.must_view(job_id)

    async def failures(self, job_id: str, after: int = 0, limit: int = 1000) -> list[Failure]:
        """A job's files that did not become resident, in order, behind the number `after`."""
        walk = self._jobs.must_view(job_id).job.walk
        await self._journal.flush()
        return await self._store.failures(walk, after, limit) if walk else []

    # ---- leases, and what there is to see ----------------------------------------------------------------------

    async def lease(self, request: LeaseRequest) -> Lease:
        """Promise that a path is not released. Raises USAGE for a bad time or path."""
        self._must_not_drain()
        return await self._leases.take(request)

    async def renew(self, lease_id: str, seconds: float) -> Lease:
        """Let a lease run out `seconds` from now instead. Raises NO_SUCH_LEASE when it has run out already."""
        self._must_not_drain()
        return await self._leases.renew(lease_id, seconds)

    async def release_lease(self, lease_id: str) -> None:
        """End a lease before its time."""
        self._must_not_drain()
        await self._leases.end(lease_id)

    def leases(self, *, owner: int | None = None) -> list[Lease]:
        """The leases that hold now."""
        return self._leases.all(owner)

    async def coverage(self, path: bytes, identity: Identity) -> Status:
        """How much under a path is resident, as far as this user may look."""
        return await self.survey(path, identity).run()

    async def count(self, request: CountRequest, identity: Identity) -> Counted:
        """The same of several paths or a list, in more detail."""
        tree, hsm = self._access.tree(identity), self._access.hsm(identity)
        return await count(request, tree, hsm, self._means.archive.atlas)

    def survey(self, path: bytes, identity: Identity, depth: int | None = None) -> Survey:
        """A count that has not begun, of how much under a path is resident; by folders, so many levels deep."""
        return Survey(self._access.hsm(identity), Selection(self._access.tree(identity), [path]), depth=depth)

    def events(self) -> AsyncIterator[Event]:
        """What happens from now on; ends when the service drains. A slow reader misses events, and is told."""
        return self._news.read()

    def health(self) -> Health:
        """How all of it fares."""
        warming, machine = self._warming, self._warming.machine
        lanes = tuple(
            LaneHealth(
                lane_id.dev,
                lane_id.mdt,
                lane.window.size,
                lane.at_fsx,
                lane.stalled,
                lane.counts[FilePhase.WATCHED],
                lane.waiting,
            )
            for lane_id, lane in sorted(machine.lanes.items())
        )
        return Health(
            problems=tuple(self._problems()),
            draining=self._draining,
            started=self._started,
            jobs=Counter(self._jobs.phases()),
            lanes=lanes,
            stalled=machine.stalled,
            abandoned=self._hsm.abandoned + self._tree.abandoned,
            totals=dict(self._journal.totals),
            free={
                warming.mounts[dev]: (measure.space.free, measure.space.total) for dev, measure in warming.room.items()
            },
            inventory=self._inventory.numbers(),
        )

    def overview(self, *, owner: int | None = None) -> Overview:
        """The whole at a glance, with the files of one owner's jobs, or everybody's."""
        spaces = {self._warming.mounts[dev]: measure.space for dev, measure in self._warming.room.items()}
        return Overview(
            self._wall(),
            limit_of(self._warming),
            slowest(self._warming, owner, asyncio.get_running_loop().time()),
            rooms({**spaces, **self._around.spaces}, self.plan.make_room),
            stocks(self._inventory.done),
            tuple(self._past.samples),
            newest(self._jobs.tracked(), owner),
        )

    def measures(self) -> Measures:
        """All that metrics tell, now."""
        errands = self.periodic.errands.values()
        return self._gauges.read(
            self.health(),
            self.plan,
            self._jobs.tracked(),
            len(self.leases()),
            self._keeper.short,
            errands,
            self._wall(),
        )

    def _problems(self) -> list[str]:
        problems = [self._warming.problem, *self.periodic.troubles]
        if self._warming.machine.stalled:
            problems.append("files are in flight and none becomes resident")
        problems += [
            f"no more than {room.before + room.gained} of {room.wanted} bytes can be made free on {mount!r}"
            for mount, room in self._keeper.short.items()
        ]
        return [problem for problem in problems if problem]

    # ---- the end -----------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Ask for nothing more, store how far all is, wake those who wait with RESTARTING. Unfinished jobs stay so."""
        if self._draining:
            return
        self._draining = True
        self._waiters.close()
        self._news.close()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._jobs.note_all()
        with suppress(FsxwarmError):  # nobody is left to be told, and the next start walks again
            await self._journal.flush()

    async def reconfigure(self, plan: ServicePlan) -> None:
        """Go by another plan from now on. Another policy of warming lets all walks begin anew, after a pause."""
        self.plan = plan
        self._warming.go_by(plan)
        await self._jobs.keep_warm(plan.keep_warm)

    def _must_not_drain(self) -> None:
        if self._draining:
            raise restarting()

    # ---- what is done by itself ----------------------------------------------------------------------------------

    def _errands(self) -> Periodic:
        periodic = Periodic()
        periodic.add("storing", _FLUSH_EVERY, self._flush)
        periodic.add("measuring free space", _MEASURE_EVERY, self._warming.measure)
        periodic.add("explaining failures", _EXPLAIN_EVERY, self._warming.explain)
        periodic.add("keeping warm", _LOOK_EVERY, self._rounds)
        periodic.add("making room", self.plan.make_room_every, lambda: self._keeper.look(self.plan.make_room))
        periodic.add("expiring", _EXPIRE_EVERY, self._expire)
        periodic.add("watching free space", _WATCH_EVERY, lambda: self._around.measure(self._hsm))
        periodic.add("asking AWS", _ASK_AWS_EVERY, self._around.ask_aws)
        periodic.add("noting the past", EVERY, self._note)
        if self._means.skipping is not None:
            servers = Servers(self._means.skipping, asyncio.get_running_loop().time)
            periodic.add("looking at servers", _WATCH_EVERY, lambda: self._look_at(servers))
        periodic.hurry("noting the past")
        periodic.hurry("watching free space")
        periodic.hurry("asking AWS")
        return periodic

    async def _look_at(self, servers: Servers) -> None:
        skipping = await servers.look(self.plan.policy.skip_duplicates)
        policy = replace(self.plan.policy, skip_duplicates=skipping)
        if policy != self.plan.policy:
            self._tell("servers_changed", data={"file_systems": len(skipping)})
            await self.reconfigure(replace(self.plan, policy=policy))

    async def _note(self) -> None:
        self._past.note(self._warming, self._journal.totals, self._wall())

    async def _flush(self) -> None:
        await self._jobs.note_all()
        self._jobs.end_late()
        await self._journal.flush()
        if self._jobs.ended > self.plan.limits.finished_jobs + _MANY:
            self.periodic.hurry("expiring")

    async def _rounds(self) -> None:
        self._jobs.begin_rounds()
        await self._leases.expire()

    async def _expire(self) -> None:
        await self._journal.flush()
        limits = self.plan.limits
        self._protection.forget(limits.wanted_paths)
        limits = replace(limits, restored_age=max(limits.restored_age, self.plan.rest_after_restore))
        self._jobs.forget(await self._store.expire(self._wall(), limits))

    async def _scan(self) -> None:
        """Take stock of one association after another."""
        while True:
            for path in await self._to_count():
                if self._inventory.is_due(path, self.plan.inventory_every):
                    await self._attempt(path)
            await asyncio.sleep(_LOOK_EVERY)

    async def _to_count(self) -> list[bytes]:
        linked = await self._means.archive.linked() if self.plan.inventory_linked else []
        return list(dict.fromkeys([*self.plan.inventory, *linked]))

    async def _attempt(self, path: bytes) -> None:
        try:
            await self._inventory.scan(path, self.plan.inventory_rate)
        except FsxwarmError as error:
            self._tell("trouble", data={"what": "inventory", "path": path, "message": error.message})
            await asyncio.sleep(_MEASURE_EVERY)

    async def _restored_lately(self) -> Restored:
        return await self._journal.restored_since(self._wall() - self.plan.rest_after_restore)

    def _made_room(self, marks: Marks, released: Released, room: Room) -> None:
        name = "would_make_room" if marks.dry_run else "made_room"
        self._journal.count(f"{name}_files", released.released.files)
        self._journal.count(f"{name}_bytes", released.released.bytes)
        data = {"mount": marks.mount, "files": released.released.files, "bytes": released.released.bytes,
                "free": room.after, "wanted": room.wanted}  # fmt: skip
        self._tell(name if room.reached else "room_short", data=data)

    def _tell(self, kind: str, job: str = "", data: dict[str, object] | None = None, *, quietly: bool = False) -> None:
        event = Event(self._wall(), kind, job, data or {})
        self._hears(event)
        if not quietly:
            self._news.tell(event)
