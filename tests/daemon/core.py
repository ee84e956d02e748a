"""A core of the daemon on paper: keeps jobs, leases and events, and does nothing with files.

`finish` ends a job; whatever a test wants to happen meanwhile it does itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from fsxwarm.daemon.api import usable
from fsxwarm.engine.counting import Counted, CountRequest
from fsxwarm.engine.overview import Overview, Slow
from fsxwarm.engine.plan import Health
from fsxwarm.engine.selection import Unusable
from fsxwarm.engine.status import FlagTallies, Status
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import Count, Counters, Event, Failure, Identity, Job, JobRequest, JobView, Phase
from fsxwarm.model.lease import Lease, LeaseRequest
from fsxwarm.model.tally import Coverage, Tally
from fsxwarm.ports.tree import Place


class PaperCore:
    """See `fsxwarm.engine.service.Service`."""

    def __init__(self) -> None:
        self.all: dict[str, Job] = {}
        self.promises: dict[str, Lease] = {}
        self.misses: dict[str, list[Failure]] = {}
        self.problems: tuple[str, ...] = ()
        self.glance = Overview(at=2000.0)
        self.asked: list[tuple[bytes, Identity]] = []
        self._changed = asyncio.Condition()
        self._listeners: set[asyncio.Queue[Event | None]] = set()
        self.draining = False
        self.leased = 0
        self.now = 1000.0

    def wall(self) -> float:
        """The time, which a test sets."""
        return self.now

    async def submit(self, request: JobRequest) -> Job:
        if self.draining:
            raise FsxwarmError(Kind.RESTARTING, "the daemon is restarting")
        await asyncio.sleep(0)
        number = f"j{len(self.all) + 1}"
        job = Job(number, replace(request, files=()), 1000.0 + len(self.all), listed=len(request.files))
        self.all[number] = job
        await self.tell(Event(1.0, "job_queued", number, {"path": request.paths[0] if request.paths else b""}))
        return job

    def jobs(self, *, owner: int | None = None) -> list[JobView]:
        return [JobView(job) for job in reversed(self.all.values()) if owner in (None, job.owner)]

    def job(self, number: str) -> JobView | None:
        return JobView(self.all[number]) if number in self.all else None

    async def wait(self, number: str, seconds: float) -> JobView:
        async with self._changed:
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self.draining or self.all[number].phase.final)
            except TimeoutError:
                pass
        if self.draining:
            raise FsxwarmError(Kind.RESTARTING, "the daemon is restarting")
        return JobView(self.all[number])

    async def cancel(self, number: str) -> JobView:
        return await self._put(replace(self.all[number], phase=Phase.CANCELLED, exit=Exit.INTERRUPTED))

    async def set_priority(self, number: str, priority: int) -> JobView:
        job = self.all[number]
        return await self._put(replace(job, request=replace(job.request, priority=priority)))

    async def finish(self, number: str, status: Exit = Exit.DONE, files: int = 3) -> JobView:
        counters = Counters(found=Count(files, files * 10), restored=Count(files, files * 10), scanned=True)
        job = replace(self.all[number], phase=Phase.DONE, exit=status, counters=counters, ended=self.now)
        return await self._put(job)

    async def progress(self, number: str, counters: Counters) -> JobView:
        return await self._put(replace(self.all[number], phase=Phase.RUNNING, counters=counters))

    async def _put(self, job: Job) -> JobView:
        self.all[job.id] = job
        async with self._changed:
            self._changed.notify_all()
        await self.tell(Event(2.0, f"job_{job.phase}", job.id))
        return JobView(job)

    async def failures(self, number: str, after: int = 0, limit: int = 1000) -> list[Failure]:
        return [miss for miss in self.misses.get(number, []) if miss.number > after][:limit]

    async def lease(self, request: LeaseRequest) -> Lease:
        self.leased += 1
        words = (request.label, request.slurm_job_id)
        lease = Lease(f"l{self.leased}", request.owner, request.path, 0.0, request.seconds, *words)
        self.promises[lease.id] = lease
        return lease

    async def renew(self, number: str, seconds: float) -> Lease:
        self.promises[number] = replace(self.promises[number], expires=seconds)
        return self.promises[number]

    async def release_lease(self, number: str) -> None:
        del self.promises[number]
        async with self._changed:
            self._changed.notify_all()

    def leases(self, *, owner: int | None = None) -> list[Lease]:
        return [lease for lease in self.promises.values() if owner in (None, lease.owner)]

    async def coverage(self, path: bytes, identity: Identity) -> Status:
        self.asked.append((path, identity))
        return Status()

    async def count(self, request: CountRequest, identity: Identity) -> Counted:
        self.asked += [(path, identity) for path in request.paths]
        status = Status(flags=FlagTallies() if request.flags else None, depth=request.depth)
        if request.depth is not None:
            status.folders[b"/fsx/\xff"] = Coverage(Tally(1, 10), Tally(1, 30))
        return Counted(status, Unusable(len(request.files), list(request.files[:1])), Unusable())

    def health(self) -> Health:
        return Health(problems=self.problems, draining=self.draining, started=5.0, free={b"/fsx": (10, 100)})

    def overview(self, *, owner: int | None = None) -> Overview:
        jobs = sorted(self.jobs(owner=owner), key=lambda view: view.job.phase.final)
        slow = [one for one in self.glance.slowest if self._sees(one, owner)]
        return replace(self.glance, slowest=slow, jobs=jobs)

    def _sees(self, slow: Slow, owner: int | None) -> bool:
        return owner is None or any(self.all[job].owner == owner for job in slow.jobs)

    async def events(self) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        await self._listen(queue, self._listeners.add)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            await self._listen(queue, self._listeners.discard)

    async def _listen(
        self, queue: asyncio.Queue[Event | None], what: Callable[[asyncio.Queue[Event | None]], None]
    ) -> None:
        what(queue)
        async with self._changed:
            self._changed.notify_all()

    async def heard_by(self, listeners: int) -> None:
        """Wait until so many listen to the events."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self._listeners) == listeners)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something holds that changes with a job."""
        async with self._changed:
            await self._changed.wait_for(is_so)

    async def tell(self, event: Event) -> None:
        for queue in self._listeners:
            queue.put_nowait(event)
        await asyncio.sleep(0)

    async def drain(self) -> None:
        self.draining = True
        async with self._changed:
            self._changed.notify_all()
        for queue in self._listeners:
            queue.put_nowait(None)


async def resolve_on_paper(path: bytes, identity: Identity) -> Place | Trouble:
    """Places on paper: /fsx is a Lustre mount, below it all exists but `secret`, which root alone can reach."""
    if b"secret" in path and identity.uid != 0:
        return Trouble(path, 13)
    if path == b"/fsx" or path.startswith(b"/fsx/"):
        return Place(path, True, False, 7, "lustre", b"/fsx", "1@tcp:/abc")
    return Place(path, True, False, 1, "ext4", b"/", "/dev/sda1")


@dataclass
class PaperWorld:
    """Users below 60,000 exist and are served; `lists` are what can be read."""

    lists: dict[bytes, list[bytes]] = field(default_factory=dict)

    async def identity(self, uid: int) -> Identity:
        if uid >= 60_000:
            raise FsxwarmError(Kind.NO_PERMISSION, f"this machine knows no user with uid {uid}")
        return Identity(uid, (uid,))

    async def place(self, path: bytes, identity: Identity) -> Place:
        return usable(await resolve_on_paper(path, identity), path)

    async def paths(self, named: Sequence[bytes]) -> list[bytes]:
        return [path.replace(b"s3://bucket", b"/fsx/bucket") for path in named]

    async def listed(self, path: bytes, identity: Identity) -> list[bytes]:
        if path not in self.lists:
            raise FsxwarmError(Kind.NO_SUCH_PATH, f"there is no list {path!r} for uid {identity.uid}")
        return self.lists[path]
