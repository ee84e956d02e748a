"""Helper processes: started when needed, given jobs, abandoned whole when a call in them never comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre import helper
from fsxwarm.lustre.jobs import Job, Reading, Work
from fsxwarm.lustre.worker import Worker, now

if TYPE_CHECKING:
    from fsxwarm.model.job import Identity

J = TypeVar("J", bound=Job)

PROGRAM: Final = str(Path(helper.__file__))

_BEATS: Final = 4
"""Signs of life of a helper within one deadline. Missing three it is held up as a whole: no call is to blame."""

_GRACE: Final = 2.0
"""Seconds that a helper gets to die."""

_START: Final = 0.02
"""Seconds for which work goes on before one helper more is started for it: about what a start takes."""


class Rights(NamedTuple):
    """Whose rights apply."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @classmethod
    def of(cls, identity: Identity) -> Rights:
        """Those of a user."""
        gid, *groups = identity.gids
        return cls(identity.uid, gid, tuple(groups))


class Pool:
    """Gives jobs to processes, with so many `lookups` at a time in each: to one first, and to more of them, up to
    `helpers`, as long as there is more work than helpers.

    A job that does not move for `deadline` seconds costs its helper: it is killed, and abandoned where it does not die
    at once, and replaced; its other jobs are done again, the culprit ends with ETIMEDOUT. With
    `max_abandoned` of them alive, nothing more is tried: FsxwarmError HUNG. `rights` runs the helpers as another user
    (root only), `environ` is their environment (None: ours), `program` what they run, `kill` sends signals.
    """

    def __init__(
        self,
        helpers: int,
        lookups: int,
        deadline: float,
        max_abandoned: int,
        *,
        rights: Rights | None = None,
        environ: Mapping[str, str] | None = None,
        program: str = PROGRAM,
        kill: Callable[[int, int], None] = os.kill,
    ) -> None:
        self.helpers = helpers
        self._most_lookups = lookups
        self._deadline = deadline
        self._max_abandoned = max_abandoned
        self._rights = rights
        self._environ = environ
        self._program = program
        self._kill = kill
        self._workers: list[Worker] = []
        self._abandoned: set[Worker] = set()
        self._readings: deque[Reading] = deque()
        self._lookups: deque[Work] = deque()
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._size = 1
        self._growing: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The helpers' process ids."""
        return [worker.pid for worker in self._workers]

    @property
    def abandoned(self) -> int:
        """How many helpers were to die and have not yet."""
        return len(self._abandoned)

    async def ready(self) -> None:
        """Start the helpers that are missing. FsxwarmError HUNG if too many hang, UNFORESEEN if none can be started."""
        self._check()
        if len(self._workers) < self._size:
            await asyncio.shield(self._begin(self._fill()))
            self._check()

    async def give(self, job: J) -> J:
        """Give a job to the helper that has least to do; raises what `ready` raises."""
        await self.ready()
        self._lookups.append(job)
        self._hand_out()
        return job

    def begin(self, reading: Reading) -> None:
        """Have a folder read, once the pool has been `ready`."""
        self._readings.append(reading)
        self._hand_out()

    def grant(self, reading: Reading, parts: int) -> None:
        """Let a folder's helper send more parts."""
        reading.owed += parts
        reading.since = now()
        for worker in self._workers:
            worker.grant(reading, parts)

    def drop(self, reading: Reading) -> None:
        """Nobody wants the rest of a folder."""
        with suppress(ValueError):
            self._readings.remove(reading)
        for worker in self._workers:
            worker.drop(reading)

    async def close(self) -> None:
        """End all helpers; what hangs in the kernel is left to it."""
        self._closed = True
        if self._growing is not None:
            self._growing.cancel()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        self._fail_all(FsxwarmError(Kind.INTERRUPTED, "the walk was ended"))
        if self._tasks:
            await asyncio.wait(self._tasks)
        workers, self._workers = self._workers, []
        await asyncio.gather(*map(self._end, workers))
        for worker in self._abandoned:
            worker.let_go()

    # ---- helpers -----------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._closed:
            raise FsxwarmError(Kind.INTERRUPTED, "the walk was ended")
        if self.abandoned >= self._max_abandoned:
            raise self._too_many()

    def _too_many(self) -> FsxwarmError:
        return FsxwarmError(
            Kind.HUNG,
            f"{self.abandoned} calls to the file system hang in the kernel and cannot be ended",
            hung=self.abandoned,
        )

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin what must come to its end, whoever still waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fill(self) -> None:
        async with self._starting:
            while len(self._workers) < self._size and not self._closed:
                self._workers.append(await self._start())
            if self._watch is None and not self._closed:
                self._watch = asyncio.get_running_loop().create_task(self._watch_deadlines())
        self._hand_out()

    async def _start(self) -> Worker:
        beat = self._deadline / _BEATS
        rights = () if self._rights is None else (self._rights.uid, self._rights.gid, *self._rights.groups)
        try:
            _, worker = await asyncio.get_running_loop().subprocess_exec(
                lambda: Worker(self._hand_out, self._lose),
                sys.executable, "-I", "-S", "-X", "utf8", self._program, str(beat), *map(str, rights),
                stderr=None, start_new_session=True, env=self._environ,
            )  # fmt: skip
        except OSError as error:
            raise FsxwarmError(
                Kind.UNFORESEEN,
                f"cannot start a process that walks the files: {error.strerror}",
                hint="raise the limits on processes and open files (ulimit -u, -n)",
            ) from error
        return worker

    def _hand_out(self) -> None:
        """Give away what waits. A folder finds a thread always, a lookup where few are: waiting is no hanging."""
        while self._readings and self._workers:
            min(self._workers, key=lambda worker: worker.readings).ask(self._readings.popleft())
        while self._lookups and self._workers:
            worker = min(self._workers, key=lambda worker: worker.lookups)
            if worker.lookups >= self._most_lookups:
                break
            worker.ask(self._lookups.popleft())
        if self._growing is None and self._has_more_work():
            self._growing = asyncio.get_running_loop().call_later(_START, self._grow)

    def _has_more_work(self) -> bool:
        """Whether one helper more would have something to do."""
        if self._size == self.helpers or self._closed:
            return False
        waiting = len(self._readings) + len(self._lookups)
        return waiting + sum(job.waited_for for worker in self._workers for job in worker.jobs.values()) > self._size

    def _grow(self) -> None:
        self._growing = None
        if self._has_more_work():
            self._size += 1
            self._begin(self._refill())

    # ---- losses ------------------------------------------------------------------------------------------------

    async def _watch_deadlines(self) -> None:
        """Look for what does not move. If we ourselves were stopped for a while, that is nobody's fault."""
        deadline = self._deadline
        while True:
            before = now()
            await asyncio.sleep(deadline / 10)
            if now() - before > deadline / 2:
                for worker in self._workers:
                    worker.excuse()
                continue
            for worker in list(self._workers):
                if now() - worker.heard > deadline * (_BEATS - 1) / _BEATS:
                    self._give_up(worker, None)
                    continue
                waited_for = [job for job in worker.jobs.values() if job.waited_for]
                oldest = min(waited_for, key=lambda job: job.since, default=None)
                if oldest is not None and now() - oldest.since > deadline:
                    self._give_up(worker, oldest)

    def _lose(self, worker: Worker) -> None:
        """A helper died."""
        self._give_up(worker, None)

    def _give_up(self, worker: Worker, culprit: Work | None) -> None:
        """Replace a helper that died, or that hangs because of `culprit`, and do its jobs again."""
        if worker in self._workers and not self._closed:
            self._workers.remove(worker)
            jobs = [job for job in worker.take_jobs() if job.lose(culprit=job is culprit)]
            self._readings.extendleft(job for job in reversed(jobs) if isinstance(job, Reading))
            self._lookups.extendleft(job for job in reversed(jobs) if not isinstance(job, Reading))
            self._begin(self._replace(worker))

    async def _replace(self, worker: Worker) -> None:
        await self._end(worker)
        if self.abandoned >= self._max_abandoned:
            self._fail_all(self._too_many())
            return
        await self._refill()

    async def _refill(self) -> None:
        try:
            await self._fill()
        except FsxwarmError as error:
            self._fail_all(error)

    def _fail_all(self, error: FsxwarmError) -> None:
        given = [job for worker in self._workers for job in worker.take_jobs()]
        for job in (*given, *self._readings, *self._lookups):
            job.fail(error)
        self._readings.clear()
        self._lookups.clear()

    async def _end(self, worker: Worker) -> None:
        with suppress(ProcessLookupError):
            self._kill(worker.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(_GRACE):
                await worker.ended.wait()
        except TimeoutError:
            self._abandoned.add(worker)
            worker.at_end = self._abandoned.discard
        else:
            worker.let_go()
