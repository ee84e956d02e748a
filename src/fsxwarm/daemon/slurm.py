"""Jobs of Slurm: what its hooks call at a job's begin and end. They hand on raw text and understand nothing of it.

Both calls may be made any number of times, from any number of nodes: a job is warmed once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol
from weakref import WeakValueDictionary

from fsxwarm.client import wire
from fsxwarm.daemon.access import Caller
from fsxwarm.daemon.kept import Kept
from fsxwarm.daemon.slurm_requests import SlurmBegin, SlurmEnd
from fsxwarm.engine.protection import folders_of
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model import job as model
from fsxwarm.model.directive import Directive
from fsxwarm.model.job import Identity, Job, JobOptions, JobRequest, JobView, Phase
from fsxwarm.model.lease import MOST_SECONDS, Lease, LeaseRequest
from fsxwarm.model.units import format_count, format_duration, format_size
from fsxwarm.ports.tree import Place

_FAILED: Final = 10.0
"""Seconds in which a failure is told to a job's other nodes; later ones are another try."""
_MOST_FOLDERS: Final = 20
"""Folders of a list that are leased; of more, the folders above them."""


class Service(Protocol):
    """What is needed of the daemon's core; see `fsxwarm.engine.service.Service`."""

    async def submit(self, request: JobRequest, /) -> Job: ...  # noqa: D102 - documented there
    def jobs(self, *, owner: int | None = None) -> list[JobView]: ...  # noqa: D102 - the same
    def job(self, id: str, /) -> JobView | None: ...  # noqa: A002, D102 - the same
    async def wait(self, id: str, timeout: float, /) -> JobView: ...  # noqa: A002, ASYNC109, D102 - the same
    async def cancel(self, id: str, /) -> JobView: ...  # noqa: A002, D102 - the same
    async def lease(self, request: LeaseRequest, /) -> Lease: ...  # noqa: D102 - the same
    async def release_lease(self, id: str, /) -> None: ...  # noqa: A002, D102 - the same
    def leases(self, *, owner: int | None = None) -> list[Lease]: ...  # noqa: D102 - the same


class World(Protocol):
    """What is asked of the machine."""

    async def identity(self, uid: int) -> Identity:
        """A user with his groups. FsxwarmError NO_PERMISSION for one whom the daemon does not serve."""
        ...

    async def place(self, path: bytes, identity: Identity) -> Place:
        """What a path is, with this user's rights. FsxwarmError NO_SUCH_PATH, NOT_LUSTRE."""
        ...

    async def paths(self, named: Sequence[bytes]) -> list[bytes]:
        """Paths in the place of S3 addresses. FsxwarmError as `engine.addresses.mapped`."""
        ...

    async def listed(self, path: bytes, identity: Identity) -> list[bytes]:
        """The files that a list names, read with this user's rights. FsxwarmError NO_SUCH_PATH, USAGE."""
        ...


@dataclass(frozen=True, slots=True)
class SlurmRules:
    """`trusted` are the uids that may act for other users; `lease` and `fresh` are seconds."""

    trusted: frozenset[int] = frozenset()
    lease: float = 7 * 86400.0
    """How long a job's paths are kept for it if nobody tells of its end."""
    fresh: float = 60.0
    """How long what was found resident is taken for resident without another look."""
    patience: float = 60.0
    """How long a job that waits for its data (its script was sent) may not ask before it counts as cancelled: when
    Slurm cancels a job, it may kill the hook that was to tell of it (22.05, measured)."""


class SlurmDesk:
    """Takes Slurm's jobs on and lets them go. `rules` may be replaced while it runs; `wall` in seconds since the epoch.

    `check` raises FsxwarmError TOO_MANY for somebody who may take no more of the daemon; it is asked of those who act
    for themselves. Slurm's own limits are enough for those for whom Slurm asks.
    """

    def __init__(
        self,
        service: Service,
        world: World,
        rules: SlurmRules,
        check: Callable[[Caller, int], None],
        wall: Callable[[], float],
    ) -> None:
        self.rules = rules
        self._service = service
        self._world = world
        self._check = check
        self._wall = wall
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._kept = Kept()
        self._clocks: dict[str, asyncio.TimerHandle] = {}

    async def begin(self, caller: Caller, wish: SlurmBegin) -> wire.SlurmJob:
        """Warm what a job needs, unless that is under way or has just been done; keep it until the job's end."""
        identity = await self._acted_for(caller, wish.uid)
        directive = wish.directive()
        if directive is None:
            return {"state": "none", "message": "the job asks for nothing", "job": "", "exit": None, "coverage": 1.0}
        job = self._known(identity, wish) or self._own(identity, wish)
        if job is None:
            job = await self._kept.through(self._taken_on(caller, identity, wish, directive))
        until = self._wall() + wish.wait
        view = self._seen(job)
        self._stop_clock(job)
        try:
            while not _is_over(view) and (left := until - self._wall()) > 0:
                view = await self._service.wait(job, left)
        finally:
            if wish.source == "script" and not _is_over(self._seen(job)):
                self._start_clock(job, caller, wish)
        return _answer(view, self._wall())

    async def end(self, caller: Caller, wish: SlurmEnd) -> wire.SlurmEnded:
        """Let go of a job: its warming and its leases end, other jobs' do not; its space may be given back."""
        identity = await self._acted_for(caller, wish.uid)
        async with self._lock(identity, wish.slurm_job_id):
            cancelled = [
                view.job.id
                for view in self._service.jobs(owner=identity.uid)
                if view.job.request.slurm_job_id == wish.slurm_job_id
                and view.job.request.kind.warms
                and not view.job.phase.final
            ]
            for job in cancelled:
                await self._service.cancel(job)
            leases = [one for one in self._service.leases(owner=identity.uid) if one.slurm_job_id == wish.slurm_job_id]
            for lease in leases:
                await self._service.release_lease(lease.id)
            released = await self._give_back(wish, identity) if wish.ran and leases else ""
        what = f"{format_count(len(leases), 'lease')} ended, {format_count(len(cancelled), 'job')} cancelled"
        return {
            "message": f"{what}, job {released} gives the space back" if released else what,
            "cancelled": cancelled,
            "leases": len(leases),
            "release": released,
        }

    async def _acted_for(self, caller: Caller, uid: int) -> Identity:
        if uid == caller.uid:
            return caller.identity
        if caller.uid not in self.rules.trusted:
            raise FsxwarmError(
                Kind.NO_PERMISSION,
                f"uid {caller.uid} may not act for uid {uid}",
                hint="name Slurm's user in the daemon's configuration (slurm.act_for_others)",
            )
        return await self._world.identity(uid)

    async def _request(self, directive: Directive, identity: Identity, wish: SlurmBegin | SlurmEnd) -> JobRequest:
        files: list[bytes] = []
        for name in directive.lists:
            files += await self._world.listed(os.fsencode(name), identity)
        return JobRequest(
            model.Kind.PRELOAD,
            identity,
            tuple(await self._world.paths([os.fsencode(path) for path in directive.paths])),
            tuple(await self._world.paths(files)),
            directive.include,
            directive.exclude,
            JobOptions(directive.ready, directive.deadline, directive.fit, directive.order),
            label=wish.label,
            slurm_job_id=wish.slurm_job_id,
        )

    async def _taken_on(self, caller: Caller, identity: Identity, wish: SlurmBegin, directive: Directive) -> str:
        """The job that warms this: one that is there, or a new one."""
        async with self._lock(identity, wish.slurm_job_id):
            own = self._own(identity, wish)
            if own is not None:
                return own
            request = await self._request(directive, identity, wish)
            itself = caller.uid == identity.uid and caller.uid not in self.rules.trusted
            fresh = self._fresh(request)
            wide: set[bytes] = set()
            if fresh is None or itself:
                places = {path: await self._world.place(path, identity) for path in request.paths}
                wide = {path for path, place in places.items() if place.path == place.mount}
            if itself:
                self._check(caller, len(request.files))
            await self._keep(request, directive, leave_out=wide if itself else frozenset())
            return fresh or (await self._service.submit(request)).id

    def _start_clock(self, job: str, caller: Caller, wish: SlurmBegin) -> None:
        """Let go of a job in some time, unless it is asked about again."""

        def give_up() -> None:
            del self._clocks[job]
            if not _is_over(self._seen(job)):
                gone = SlurmEnd(slurm_job_id=wish.slurm_job_id, uid=wish.uid, source=wish.source, ran=False)
                self._kept.begin(self.end(caller, gone))

        self._stop_clock(job)
        self._clocks[job] = asyncio.get_running_loop().call_later(self.rules.patience, give_up)

    def _stop_clock(self, job: str) -> None:
        clock = self._clocks.pop(job, None)
        if clock is not None:
            clock.cancel()

    def _known(self, identity: Identity, wish: SlurmBegin) -> str | None:
        """The job that an earlier answer to this user named, unless it was forgotten."""
        view = self._service.job(wish.job) if wish.job else None
        if view is None:
            return None
        if view.job.owner != identity.uid:
            raise FsxwarmError(Kind.NO_SUCH_JOB, f"uid {identity.uid} has no job {wish.job}")
        return view.job.id

    def _own(self, identity: Identity, wish: SlurmBegin) -> str | None:
        """The job that was taken on for this one of Slurm, unless it ended long ago: a requeued job asks anew."""
        for view in self._service.jobs(owner=identity.uid):
            job, request = view.job, view.job.request
            if (request.slurm_job_id, request.label) == (wish.slurm_job_id, wish.label) and request.kind.warms:
                good = self.rules.fresh if job.exit is Exit.DONE else _FAILED
                cold = job.ended is not None and self._wall() - job.ended > good
                return None if cold or job.phase is Phase.CANCELLED else job.id
        return None

    def _fresh(self, request: JobRequest) -> str | None:
        """A job that has just found or made all of these files resident, when none can have been released since."""
        if request.files:
            return None
        jobs = [view.job for view in self._service.jobs()]
        released = max((_end(job) for job in jobs if job.request.kind is model.Kind.RELEASE), default=0.0)
        now = self._wall()
        for job in jobs:
            if _alike(job, request) and job.exit is Exit.DONE and job.counters.coverage >= 1.0:
                ended = _end(job)
                if ended > released and now - ended <= self.rules.fresh:
                    return job.id
        return None

    async def _keep(self, request: JobRequest, directive: Directive, leave_out: Collection[bytes]) -> None:
        """Take leases on what the job wants, in place of those of an earlier run of it."""
        uid, job, label = request.identity.uid, request.slurm_job_id, request.label
        for lease in self._service.leases(owner=uid):
            if (lease.slurm_job_id, lease.label) == (job, label):
                await self._service.release_lease(lease.id)
        seconds = min(directive.lease or self.rules.lease, MOST_SECONDS)
        wanted = {*request.paths, *folders_of(request.files, _MOST_FOLDERS)}
        for path in sorted(wanted.difference(leave_out)):
            await self._service.lease(LeaseRequest(uid, path, seconds, label, job))

    async def _give_back(self, wish: SlurmEnd, identity: Identity) -> str:
        directive = wish.directive()
        if directive is None or not directive.release:
            return ""
        warmed = await self._request(directive, identity, wish)
        request = replace(warmed, kind=model.Kind.RELEASE, options=JobOptions())
        return (await self._service.submit(request)).id

    def _seen(self, job: str) -> JobView:
        view = self._service.job(job)
        if view is None:
            raise FsxwarmError(Kind.NO_SUCH_JOB, f"job {job} is gone")
        return view

    def _lock(self, identity: Identity, slurm_job_id: str) -> asyncio.Lock:
        return self._locks.setdefault((identity.uid, slurm_job_id), asyncio.Lock())


def _alike(job: Job, request: JobRequest) -> bool:
    """Whether a job without a list warms the same."""
    one = job.request
    return (
        one.kind is request.kind
        and one.identity == request.identity
        and not job.listed
        and (one.paths, one.include, one.exclude) == (request.paths, request.include, request.exclude)
    )


def _is_over(view: JobView) -> bool:
    """Whether a job need not be waited for any more."""
    return view.job.ready or view.job.phase.final


def _end(job: Job) -> float:
    """When a job has ended; infinitely late for one that has not."""
    return float("inf") if job.ended is None else job.ended


def _answer(view: JobView, now: float) -> wire.SlurmJob:
    job, counters = view.job, view.counters
    state, message = _state(view, now)
    status = None if job.exit is None else int(job.exit)
    return {"state": state, "message": message, "job": job.id, "exit": status, "coverage": counters.coverage}


def _state(view: JobView, now: float) -> tuple[wire.SlurmState, str]:
    job, counters = view.job, view.counters
    resident = counters.resident.plus(counters.restored)
    there = f"{format_count(resident.files, 'file')} ({format_size(resident.bytes)}) resident"
    if job.ended is not None and job.exit is Exit.DONE:
        return "ready", f"{there}, looked at {format_duration(max(0.0, now - job.ended))} ago by job {job.id}"
    if job.ready:
        return "ready", f"{counters.coverage:.0%} is there, job {job.id} warms the rest"
    if not job.phase.final:
        found = format_count(counters.found.files, "file")
        return "warming", f"job {job.id} warms: {resident.files:,} of {found} are there"
    if job.exit is Exit.DEADLINE:
        return "late", f"the deadline passed with {counters.coverage:.0%} there (job {job.id})"
    return "failed", f"{_why(job)} (`fsxwarm jobs show {job.id}`)"


def _why(job: Job) -> str:
    if job.phase is Phase.CANCELLED:
        return f"job {job.id} was cancelled"
    if job.error:
        return job.error
    counters = job.counters
    if job.exit is Exit.NO_ROOM:
        return "there is not enough room on the file system"
    bad = counters.failed.plus(counters.blocked).files + counters.unreadable
    reasons = ", ".join(sorted(counters.reasons))
    return f"{format_count(bad, 'file')} did not become resident" + (f": {reasons}" if reasons else "")
