"""What each route does: from a caller and a checked request to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from fsxwarm.client import wire
from fsxwarm.daemon import requests, views
from fsxwarm.daemon.access import Caller
from fsxwarm.daemon.kept import Kept
from fsxwarm.daemon.slurm import Service as ServiceOfDesk
from fsxwarm.daemon.slurm import SlurmDesk, SlurmRules, World
from fsxwarm.daemon.slurm_requests import SlurmBegin, SlurmEnd
from fsxwarm.engine.counting import Counted, CountRequest
from fsxwarm.engine.overview import Overview
from fsxwarm.engine.plan import Health
from fsxwarm.engine.status import Status
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model import job as model
from fsxwarm.model.entry import Trouble
from fsxwarm.model.filesystems import is_lustre_client
from fsxwarm.model.lease import Lease
from fsxwarm.ports.tree import Place

T = TypeVar("T")


class Service(ServiceOfDesk, Protocol):
    """What the face needs of the daemon's core, the desk for Slurm included; see `fsxwarm.engine.service.Service`."""

    async def set_priority(self, id: str, priority: int, /) -> model.JobView: ...  # noqa: A002, D102 - documented there
    async def failures(self, id: str, after: int, limit: int, /) -> list[model.Failure]: ...  # noqa: A002, D102 - the same
    async def renew(self, id: str, seconds: float, /) -> Lease: ...  # noqa: A002, D102 - the same
    async def coverage(self, path: bytes, identity: model.Identity, /) -> Status: ...  # noqa: D102 - the same
    async def count(self, request: CountRequest, identity: model.Identity, /) -> Counted: ...  # noqa: D102 - the same
    def health(self) -> Health: ...  # noqa: D102 - the same
    def overview(self, *, owner: int | None = None) -> Overview: ...  # noqa: D102 - the same
    def events(self) -> AsyncIterator[model.Event]: ...  # noqa: D102 - the same


Resolve = Callable[[bytes, model.Identity], Awaitable[Place | Trouble]]
"""Finds out, with somebody's rights, what a path is."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of the daemon one user may take; administrators may take more."""

    open_jobs: int
    queued_files: int
    leases: int


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has passed the gate and its checks. `of` is the job or lease that its path names."""

    caller: Caller
    query: object
    body: object
    of: str = ""


class Door(Protocol):
    """Lets browsers in."""

    def address(self, identity: model.Identity) -> wire.PageAddress:
        """A one-time address of the page."""
        ...


class Api:
    """The routes' handlers. `quota` may be replaced while it runs, and so may the `rules` of `slurm`.

    `door` leads to the page, where there is one.
    `world` and `wall` are what Slurm's jobs are taken on with.
    """

    def __init__(
        self,
        service: Service,
        resolve: Resolve,
        quota: Quota,
        world: World,
        rules: SlurmRules,
        wall: Callable[[], float],
    ) -> None:
        self.quota = quota
        self.door: Door | None = None
        self.slurm = SlurmDesk(service, world, rules, self._check_quota, wall)
        self._service = service
        self._resolve = resolve
        self._coming: Counter[int] = Counter()
        self._kept = Kept()

    # ---- jobs --------------------------------------------------------------------------------------------------

    async def submit(self, call: Call) -> wire.Job:
        """Take a job on: it is durable when this answers."""
        wish = _typed(call.body, requests.JobWish)
        if not wish.paths and not wish.files:
            raise FsxwarmError(Kind.USAGE, "there is nothing to do", hint="name paths or files")
        call.caller.may_set(wish.priority)
        uid = call.caller.uid
        self._check_quota(call.caller, len(wish.files))
        self._coming[uid] += 1
        try:
            taken = await self._kept.through(
                self._service.submit(wish.to_model(call.caller.identity, admin=call.caller.admin))
            )
        finally:
            self._coming[uid] -= 1
        return views.job(self._service.job(taken.id) or model.JobView(taken))

    def _check_quota(self, caller: Caller, files: int) -> None:
        if caller.admin:
            return
        mine = [view for view in self._service.jobs(owner=caller.uid) if not view.job.phase.final]
        if len(mine) + self._coming[caller.uid] >= self.quota.open_jobs:
            raise FsxwarmError(Kind.TOO_MANY, f"you have {len(mine):,} jobs that have not ended")
        waiting = sum(max(view.job.listed, view.counters.found.files) - view.counters.settled.files for view in mine)
        if waiting + files > self.quota.queued_files:
            raise FsxwarmError(Kind.TOO_MANY, f"your jobs have {waiting:,} files yet to settle")

    async def jobs(self, call: Call) -> wire.Jobs:
        """The caller's jobs, all of them for an administrator, the newest first."""
        owner = None if call.caller.admin else call.caller.uid
        limit = _typed(call.query, requests.JobsQuery).limit
        return {"jobs": [views.job(view) for view in self._service.jobs(owner=owner)[:limit]]}

    async def job(self, call: Call) -> wire.Job:
        """One job."""
        return views.job(self._found(call.of))

    async def wait(self, call: Call) -> wire.Job:
        """Wait until a job becomes ready or ends, or the time is over; how it stands then."""
        return views.job(await self._service.wait(call.of, _typed(call.query, requests.WaitQuery).timeout))

    async def cancel(self, call: Call) -> wire.Job:
        """Let go of a job: nothing more is asked for, what is in flight goes on at FSx."""
        return views.job(await self._kept.through(self._service.cancel(call.of)))

    async def change(self, call: Call) -> wire.Job:
        """Change a job's priority."""
        priority = _typed(call.body, requests.JobChange).priority
        if priority != self._found(call.of).job.request.priority:
            call.caller.may_set(priority)
        return views.job(await self._kept.through(self._service.set_priority(call.of, priority)))

    async def failures(self, call: Call) -> wire.Failures:
        """A job's files that did not become resident, in order."""
        query = _typed(call.query, requests.FailuresQuery)
        found = await self._service.failures(call.of, query.after, query.limit)
        more = len(found) == query.limit
        return {"failures": [views.failure(one) for one in found], "next": found[-1].number if more else None}

    # ---- leases ------------------------------------------------------------------------------------------------

    async def lease(self, call: Call) -> wire.Lease:
        """Promise that nothing below a path, which the caller must be able to see, is released for some time."""
        wish = _typed(call.body, requests.LeaseWish)
        caller = call.caller
        if not caller.admin and len(self._service.leases(owner=caller.uid)) >= self.quota.leases:
            raise FsxwarmError(Kind.TOO_MANY, f"you have {self.quota.leases:,} leases", hint="end some first")
        place = usable(await self._resolve(wish.exact, caller.identity), wish.exact)
        if place.path == place.mount and not caller.admin:
            raise FsxwarmError(Kind.NO_PERMISSION, "a lease on the whole file system is for administrators", hint="")
        return views.lease(await self._kept.through(self._service.lease(wish.to_model(caller.uid, place.path))))

    async def leases(self, call: Call) -> wire.Leases:
        """The caller's leases that hold now, all of them for an administrator."""
        owner = None if call.caller.admin else call.caller.uid
        return {"leases": [views.lease(lease) for lease in self._service.leases(owner=owner)]}

    async def renew(self, call: Call) -> wire.Lease:
        """Let a lease run out so many seconds from now instead."""
        seconds = _typed(call.body, requests.LeaseChange).seconds
        return views.lease(await self._kept.through(self._service.renew(call.of, seconds)))

    async def end_lease(self, call: Call) -> None:
        """End a lease before its time."""
        await self._kept.through(self._service.release_lease(call.of))

    # ---- jobs of Slurm -----------------------------------------------------------------------------------------

    async def slurm_begin(self, call: Call) -> wire.SlurmJob:
        """Warm what a job of Slurm needs, once, and keep it until its end; waits for it as long as asked to."""
        return await self.slurm.begin(call.caller, _typed(call.body, SlurmBegin))

    async def slurm_end(self, call: Call) -> wire.SlurmEnded:
        """Let go of what a job of Slurm needed; its space is given back if it asked for that."""
        return await self._kept.through(self.slurm.end(call.caller, _typed(call.body, SlurmEnd)))

    # ---- what there is to see ----------------------------------------------------------------------------------

    async def coverage(self, call: Call) -> wire.Coverage:
        """How much under a path is resident, as far as the caller may look."""
        path = _typed(call.query, requests.CoverageQuery).exact
        return views.coverage(path, await self._service.coverage(path, call.caller.identity))

    async def count(self, call: Call) -> wire.Counted:
        """How much of several paths or of a list is resident, by folders and flags if asked."""
        wish = _typed(call.body, requests.CountWish)
        if not wish.paths and not wish.files:
            raise FsxwarmError(Kind.USAGE, "there is nothing to count", hint="name paths or files")
        return views.counted(await self._service.count(wish.to_model(), call.caller.identity))

    async def health(self, call: Call) -> wire.Health:
        """How the daemon fares."""
        return views.health(self._service.health(), admin=call.caller.admin)

    async def overview(self, call: Call) -> wire.Overview:
        """The whole at a glance: the caller's jobs, everybody's window and space, the last hour."""
        return self.seen_by(call.caller)

    def seen_by(self, caller: Caller) -> wire.Overview:
        """What somebody may see of it."""
        owner = None if caller.admin else caller.uid
        return views.overview(self._service.overview(owner=owner), self._service.health(), admin=caller.admin)

    async def some_failures(self, job: str, most: int) -> list[wire.Failure]:
        """A job's first failures; who may see them is the caller's business."""
        return [views.failure(one) for one in await self._service.failures(job, 0, most)]

    async def page(self, call: Call) -> wire.PageAddress:
        """A one-time address of the page: the browser that opens it sees what the caller may see."""
        if self.door is None:
            raise FsxwarmError(Kind.CONFLICT, "this daemon has no page", hint="it needs metrics.listen")
        return self.door.address(call.caller.identity)

    async def events(self, call: Call) -> AsyncIterator[wire.Event]:
        """What happens from now on, one JSON object a line: the caller's own jobs, all for an administrator."""
        async with aclosing(cast("Any", self._service.events())) as events:
            async for event in events:
                seen = self._seen(event, call.caller)
                if seen is not None:
                    yield seen

    def _seen(self, event: model.Event, caller: Caller) -> wire.Event | None:
        view = self._service.job(event.job) if event.job else None
        if caller.admin or (view is not None and caller.owns(view.job.owner)):
            return views.event(event.at, event.kind, event.job, event.data)
        return None if event.job else views.public_event(event.at, event.kind)

    # ---- whose is it? ------------------------------------------------------------------------------------------

    def must_own_job(self, caller: Caller, job: str) -> None:
        """NO_SUCH_JOB unless there is such a job and it is the caller's to see: another's looks like none."""
        view = self._service.job(job)
        if view is None or not caller.owns(view.job.owner):
            raise FsxwarmError(Kind.NO_SUCH_JOB, "there is no such job of yours")

    def must_own_lease(self, caller: Caller, lease: str) -> None:
        """NO_SUCH_LEASE unless there is such a lease and it is the caller's."""
        if not any(one.id == lease and caller.owns(one.owner) for one in self._service.leases()):
            raise FsxwarmError(Kind.NO_SUCH_LEASE, "there is no such lease of yours")

    def _found(self, job: str) -> model.JobView:
        view = self._service.job(job)
        if view is None:
            raise FsxwarmError(Kind.NO_SUCH_JOB, "there is no such job of yours")
        return view


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"this route takes {kind.__name__}")
    return value


def usable(place: Place | Trouble, path: bytes) -> Place:
    """What a path is, if it can be worked on. FsxwarmError NO_SUCH_PATH, NOT_LUSTRE."""
    name = path.decode("utf-8", "backslashreplace")
    if isinstance(place, Trouble):
        raise FsxwarmError(Kind.NO_SUCH_PATH, f"{name}: there is no such path that you can reach", path=name)
    if not is_lustre_client(place.fstype, place.source):
        raise FsxwarmError(Kind.NOT_LUSTRE, f"{name} is not on FSx for Lustre", path=name)
    return place
