"""The daemon's jobs: taken on, resumed, followed, ended; each change noted for the store and told to who watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from fsxwarm.engine.addresses import is_address
from fsxwarm.engine.journal import Journal
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import KeepWarm
from fsxwarm.engine.protection import Protection, folders_of
from fsxwarm.engine.records import Records, Tell
from fsxwarm.engine.releasing import Desk, Releasing
from fsxwarm.engine.shared import SharedWarming
from fsxwarm.engine.tracked import Tracked
from fsxwarm.engine.walks import Walk
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import (
    LOW_PRIORITY,
    ROOT,
    TOP_PRIORITY,
    Count,
    Counters,
    Job,
    JobOptions,
    JobRequest,
    JobView,
    Phase,
)
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.outcome import Reason
from fsxwarm.ports.tree import Place

CONFIGURED: Final = "configuration"
"""The label of keep-warm jobs that come from the configuration."""

_BOOT: Final = 900.0
"""Seconds after the start in which a resumed job's path may be missing: the file system may not be mounted yet."""
_AT_ONCE: Final = 100
"""Jobs that are noted in a row, before others get a turn."""


class Jobs:
    """Holds every job that the store holds. `warming` is given before the first is taken on.

    `calm` is set while no job waits for anything. `wake` is told of each job that has become ready or has ended.
    `records` notes what becomes of files.
    """

    warming: SharedWarming

    def __init__(
        self,
        means: Means,
        journal: Journal,
        protection: Protection,
        tell: Tell,
        wake: Callable[[str], None],
        records: Records,
    ) -> None:
        self._means = means
        self._store = means.store
        self._journal = journal
        self._protection = protection
        self._tell = tell
        self._wake = wake
        self._wall = means.wall
        self._records = records
        self._started = means.wall()
        self._jobs: dict[str, Tracked] = {}
        self._open: dict[str, Tracked] = {}
        """Those that have not ended."""
        self._desk = Desk(self._release)
        self._requests = 0
        self.calm = asyncio.Event()
        self.calm.set()

    # ---- taking on -----------------------------------------------------------------------------------------------

    async def submit(self, request: JobRequest) -> Job:
        """Take a job on; it is durable when this returns."""
        _check(request)
        request = await self._means.archive.placed(request)
        job = await self._store.add_job(request, self._wall())
        tracked = self._jobs[job.id] = self._open[job.id] = Tracked(job)
        self._hold(job, request.files)
        self._tell("job_queued", job.id)
        self._begin(tracked)
        return job

    async def resume(self, jobs: Iterable[Job]) -> None:
        """Take up what the store holds: unfinished jobs begin anew, and count on."""
        for job in jobs:
            tracked = self._jobs[job.id] = Tracked(job)
            if job.phase.final:
                continue
            self._open[job.id] = tracked
            self._hold(job, await self._store.files(job.id) if job.listed else ())
            if job.phase is not Phase.RESTING:
                self._change(tracked, phase=Phase.QUEUED, resumed=job.resumed + 1)
                self._begin(tracked)

    def _hold(self, job: Job, files: Sequence[bytes]) -> None:
        if job.request.kind.warms:
            self._protection.hold(job.id, {*job.request.paths, *folders_of(files)})

    def _begin(self, tracked: Tracked) -> None:
        self.calm.clear()
        job = tracked.job
        if not job.request.kind.warms:
            self._desk.put(job.id)
            return
        tracked.walk = self.warming.join(job)
        if tracked.walk.began is not None:
            self._runs(tracked, tracked.walk)

    async def keep_warm(self, wishes: Sequence[KeepWarm]) -> None:
        """Have just those keep-warm jobs of the configuration that it names now."""
        known = {
            (it.job.request.paths, it.job.request.options.every): it.job.id
            for it in self._open.values()
            if it.job.request.label == CONFIGURED and it.job.owner == ROOT.uid
        }
        wanted = {(wish.paths, wish.every) for wish in wishes}
        for wish, job_id in known.items():
            if wish not in wanted:
                self.cancel(job_id)
        for paths, every in wanted - known.keys():
            options = JobOptions(fit=True, every=every)
            await self.submit(
                JobRequest(JobKind.KEEP_WARM, ROOT, paths, options=options, priority=LOW_PRIORITY, label=CONFIGURED)
            )

    def begin_rounds(self) -> None:
        """Walk again for those keep-warm jobs whose time has come."""
        now = self._wall()
        for tracked in list(self._open.values()):
            job = tracked.job
            if job.phase is Phase.RESTING and (job.next_round is None or now >= job.next_round):
                tracked.base = Counters()
                self._change(tracked, phase=Phase.QUEUED, counters=Counters(), next_round=None, error="")
                self._begin(tracked)

    # ---- looking -------------------------------------------------------------------------------------------------

    def views(self, owner: int | None) -> list[JobView]:
        """All, or one owner's, the newest first."""
        return [it.view() for it in reversed(self._jobs.values()) if owner in (None, it.job.owner)]

    def tracked(self) -> Iterable[Tracked]:
        """All, the oldest first; to look at."""
        return self._jobs.values()

    def phases(self) -> list[str]:
        """Every job's phase."""
        return [it.job.phase.value for it in self._jobs.values()]

    @property
    def ended(self) -> int:
        """Jobs that have ended and are still known."""
        return len(self._jobs) - len(self._open)

    def view(self, job_id: str) -> JobView | None:
        """One, if there is one of this id."""
        tracked = self._jobs.get(job_id)
        return None if tracked is None else tracked.view()

    def must_view(self, job_id: str) -> JobView:
        """One; NO_SUCH_JOB if there is none."""
        return self._get(job_id).view()

    def _get(self, job_id: str) -> Tracked:
        tracked = self._jobs.get(job_id)
        if tracked is None:
            raise FsxwarmError(Kind.NO_SUCH_JOB, f"there is no job {job_id}", job=job_id)
        return tracked

    # ---- changing --------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> None:
        """Let go of a job, unless it has ended."""
        tracked = self._get(job_id)
        if not tracked.job.phase.final:
            self._desk.cancel(job_id)
            self._give_up(tracked, Reason.INTERRUPTED, Phase.CANCELLED, Exit.INTERRUPTED)

    def set_priority(self, job_id: str, priority: int) -> None:
        """Change a job's priority. CONFLICT once it has ended: nothing of it is left to go first."""
        _check_priority(priority)
        tracked = self._get(job_id)
        if tracked.job.phase.final:
            raise FsxwarmError(Kind.CONFLICT, f"job {job_id} has ended: its priority no longer matters", job=job_id)
        self._change(tracked, request=replace(tracked.job.request, priority=priority))
        if tracked.walk is not None:
            self.warming.rank(tracked.walk, tracked.job)

    def end_late(self) -> None:
        """Let go of jobs whose deadline has passed."""
        now = self._wall()
        for tracked in list(self._open.values()):
            deadline = tracked.job.request.options.deadline
            if deadline is not None and tracked.walk is not None and now >= tracked.job.created + deadline:
                self._give_up(tracked, Reason.DEADLINE, Phase.DONE, Exit.DEADLINE)

    async def note_all(self) -> None:
        """Note what has been counted, for the store, and whether any job waits; a few jobs at a time."""
        if not self.warming.busy and not self._desk.busy:
            self.calm.set()
        open_jobs = list(self._open.values())
        for start in range(0, len(open_jobs), _AT_ONCE):
            known: dict[Walk, Counters] = {}
            for tracked in open_jobs[start : start + _AT_ONCE]:
                if tracked.note(known):
                    self._journal.job(tracked.job)
            await asyncio.sleep(0)
        sent = self.warming.requests_sent
        if sent != self._requests:
            self._journal.count("requests", sent - self._requests)
            self._requests = sent

    def forget(self, job_ids: Iterable[str]) -> None:
        """Forget jobs that the store has forgotten."""
        for job_id in job_ids:
            self._jobs.pop(job_id, None)

    def _change(self, tracked: Tracked, **fields: object) -> None:
        tracked.job = replace(tracked.job, **fields)  # type: ignore[arg-type]  # the fields are Job's own
        self._journal.job(tracked.job)

    def _runs(self, tracked: Tracked, walk: Walk) -> None:
        started = self._wall() if tracked.job.started is None else tracked.job.started
        self._change(tracked, phase=Phase.RUNNING, started=started, walk=walk.id, error="")
        self._tell("job_running", tracked.job.id)

    def _give_up(self, tracked: Tracked, reason: Reason, phase: Phase, status: Exit) -> None:
        counters, walk = tracked.counters(), tracked.walk
        in_flight = Count() if walk is None else self.warming.leave(walk, tracked.job.id, reason)
        self._end(tracked, counters.gave_up(reason, in_flight), phase, status)

    def _end(self, tracked: Tracked, counters: Counters, phase: Phase, status: Exit, error: str = "") -> None:
        now, job = self._wall(), tracked.job
        for root in self._protection.held(job.id):
            self._protection.wanted[root] = now
            self._journal.wanted(root, now)
        tracked.walk = tracked.releasing = None
        if phase is Phase.RESTING:
            next_round = now + job.request.options.every
            self._change(tracked, phase=phase, counters=counters, exit=status, error=error, next_round=next_round,
                         rounds=job.rounds + 1)  # fmt: skip
            tracked.note_round()
        else:
            self._protection.drop(job.id)
            self._open.pop(job.id, None)
            self._change(tracked, phase=phase, counters=counters, exit=status, error=error, ended=now)
            self._journal.count(f"jobs_{phase.value}")
        self._journal.count(f"ended_{status.name.lower()}")
        self._tell(f"job_{phase.value}", job.id, {"exit": int(status)})
        self._wake(job.id)

    # ---- releasing -------------------------------------------------------------------------------------------------

    async def run_releases(self) -> None:
        """Carry out release jobs until cancelled."""
        await self._desk.run()

    async def _release(self, job_id: str) -> None:
        tracked = self._jobs.get(job_id)
        if tracked is None or tracked.job.phase.final:
            return
        job = tracked.job
        walk = f"{job.id}-{job.resumed}-released"
        self._change(tracked, phase=Phase.RUNNING, started=self._wall(), walk=walk)
        self._tell("job_running", job.id)
        try:
            files = await self._store.files(job.id) if job.listed else ()
            tracked.releasing = releasing = Releasing(
                job, self._means.access, self._protection, self._means.archive, files
            )
            await releasing.run()
            for failure in releasing.failures(self._wall()):
                self._journal.failure(walk, failure)
        except FsxwarmError as error:
            self._end(tracked, tracked.counters(), Phase.FAILED, error.exit, error.message)
            return
        counters = tracked.counters()
        self._journal.count("released_files", releasing.counters.released.files)
        self._journal.count("released_bytes", releasing.counters.released.bytes)
        self._end(tracked, counters, Phase.DONE, counters.exit(fit=False))

    # ---- hearing of walks ------------------------------------------------------------------------------------------

    def _of(self, walk: Walk) -> list[Tracked]:
        return [self._jobs[job_id] for job_id in list(walk.jobs)]

    def walk_began(self, walk: Walk, places: Sequence[Place]) -> None:
        """See `shared.Hears`."""
        for tracked in self._of(walk):
            held = self._protection.held(tracked.job.id)
            self._protection.hold(tracked.job.id, held | {place.path for place in places})
            self._runs(tracked, walk)

    def walk_begins_anew(self, walk: Walk) -> None:
        """See `shared.Hears`."""
        for tracked in self._of(walk):
            tracked.base = tracked.counters()

    def walk_ended(self, walk: Walk) -> None:
        """See `shared.Hears`."""
        self._check_ready(walk)
        for tracked in self._of(walk):
            kind, counters = tracked.job.request.kind, tracked.counters()
            phase = Phase.RESTING if kind is JobKind.KEEP_WARM else Phase.DONE
            self._end(tracked, counters, phase, counters.exit(fit=tracked.job.request.options.fit))

    def walk_failed(self, walk: Walk, error: FsxwarmError) -> bool:
        """See `shared.Hears`."""
        again = False
        booting = self._wall() - self._started < _BOOT
        for tracked in self._of(walk):
            job = tracked.job
            if not error.permanent or (job.resumed and booting):
                again = True
                self._change(tracked, error=error.message)
                continue
            walk.drop(job.id)
            phase = Phase.RESTING if job.request.kind is JobKind.KEEP_WARM else Phase.FAILED
            self._end(tracked, tracked.counters(), phase, error.exit, error.message)
        return again

    def no_room(self, walk: Walk) -> None:
        """See `shared.Hears`."""
        for tracked in self._of(walk):
            if not tracked.job.request.options.fit:
                self._give_up(tracked, Reason.NO_ROOM, Phase.DONE, Exit.NO_ROOM)

    def settled(self, finish: Finish, walks: Sequence[Walk]) -> None:
        """See `shared.Hears`."""
        self._records.settled(finish, walks)

    def let_go(self, walk: Walk, finishes: Iterable[Finish]) -> None:
        """See `shared.Hears`."""
        self._records.let_go(walk, finishes)

    def unreadable(self, walk: Walk, trouble: Trouble) -> None:
        """See `shared.Hears`."""
        self._records.unreadable(walk, trouble)

    def said(self, say: Say) -> None:
        """See `shared.Hears`."""
        data: dict[str, object] = {"seconds": round(say.seconds, 1)} if say.seconds else {}
        if len(say.files) > 1:
            data["files"] = len(say.files)
        jobs: list[str] = []
        if say.files:
            data["path"] = say.files[0].path
            jobs = self.warming.wanted_by(say.files[0].key)
        for job_id in jobs or [""]:
            self._tell(say.word.value, job_id, data)

    def turned(self) -> None:
        """See `shared.Hears`: tell of jobs that have become ready."""
        for walk in self.warming.walks.values():
            self._check_ready(walk)

    def _check_ready(self, walk: Walk) -> None:
        for job_id in list(walk.unready):
            tracked = self._jobs[job_id]
            share = tracked.job.request.options.ready
            if share is not None and walk.progress.ready(share):
                walk.unready.discard(job_id)
                self._change(tracked, ready=True)
                self._tell("job_ready", job_id)
                self._wake(job_id)


def _check(request: JobRequest) -> None:
    _check_priority(request.priority)
    if not request.paths and not request.files:
        raise FsxwarmError(Kind.USAGE, "a job needs paths or a list", hint="")
    if not all(path.startswith(b"/") or is_address(path) for path in (*request.paths, *request.files)):
        raise FsxwarmError(Kind.USAGE, "a job's paths are absolute, or S3 addresses", hint="")


def _check_priority(priority: int) -> None:
    if not 0 <= priority <= TOP_PRIORITY:
        raise FsxwarmError(Kind.USAGE, f"a priority is from 0 to {TOP_PRIORITY}, not {priority}", hint="")
