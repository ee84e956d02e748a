"""Helper processes: started when needed, given jobs, abandoned whole when a call in them never comes back."""

from __future__ import annotations

import asyncio
import errno
import marshal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre import helper

_HELPER: Final = str(Path(helper.__file__))
_GRACE: Final = 2.0
_TRIES: Final = 2
"""How often a job may bring its helper down before it is the job that is at fault."""


class Job:
    """Work given to a helper. `parts` brings what it answers, ended by the answer that says done.

    `position` is how far a folder has been handed on: where to go on if its helper is lost.
    """

    def __init__(self, kind: str, *arguments: Any, credit: int = 0) -> None:
        self.kind = kind
        self.arguments = arguments
        self.credit = credit
        self.position = 0
        self.tries = 0
        self.owed = credit
        """Parts that the helper may still send; 0: it waits for us."""
        self.since = 0.0
        """When it was last heard of."""
        self.parts: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self.worker: Worker | None = None

    def request(self, number: int) -> tuple[Any, ...]:
        """The frame that asks for it."""
        if self.kind == "folder":
            return (number, self.kind, self.credit, *self.arguments, self.position)
        return (number, self.kind, *self.arguments)

    async def answer(self) -> Any:
        """Wait for the one answer of a job without parts."""
        return (await self.parts.get())[1]


class Worker:
    """One helper process and the jobs that it has."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.jobs: dict[int, Job] = {}
        self.reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def write(self, frame: tuple[Any, ...]) -> None:
        """Send a request; a helper that is gone is noticed by its reader."""
        data = marshal.dumps(frame)
        if self.process.stdin is not None and not self.process.stdin.is_closing():
            self.process.stdin.write(helper.LENGTH.pack(len(data)) + data)


class Pool:
    """Gives jobs to `size` helpers with `threads` threads each.

    A job that is not heard of for `deadline` seconds costs its helper: it is killed, or abandoned where it cannot
    die, and replaced; its other jobs are done again, the culprit ends with ETIMEDOUT. More than `most_abandoned`
    raise FsxwarmError HUNG. `user` runs the helpers with another user's rights (root only).
    """

    def __init__(self, size: int, threads: int, deadline: float, most_abandoned: int, user: int | None = None) -> None:
        self.size = size
        self.threads = threads
        self.abandoned = 0
        self._deadline = deadline
        self._most_abandoned = most_abandoned
        self._user = user
        self._workers: list[Worker] = []
        self._starting = asyncio.Lock()
        self._number = 0
        self._watch: asyncio.Task[None] | None = None
        self._replacing: set[asyncio.Task[None]] = set()
        self._failure: FsxwarmError | None = None
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The helpers' process ids."""
        return [worker.pid for worker in self._workers]

    async def give(self, job: Job) -> Job:
        """Give a job to the helper that has least to do."""
        async with self._starting:
            while len(self._workers) < self.size and not self._closed:
                self._workers.append(await self._start())
            if self._watch is None:
                self._watch = asyncio.create_task(self._watch_deadlines())
        if self._failure is not None:
            raise self._failure
        worker = min(self._workers, key=lambda worker: len(worker.jobs))
        self._assign(job, worker)
        return job

    def grant(self, job: Job) -> None:
        """A part of a folder has been dealt with: the helper may send another."""
        job.owed += 1
        job.since = asyncio.get_running_loop().time()
        if job.worker is not None:
            number = next((number for number, other in job.worker.jobs.items() if other is job), None)
            if number is not None:
                job.worker.write((number, "credit", 1))

    async def close(self) -> None:
        """End all helpers; what hangs in the kernel is left to it."""
        self._closed = True
        tasks = [task for task in (self._watch, *self._replacing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers, self._workers = self._workers, []
        await asyncio.gather(*(self._end(worker) for worker in workers))

    # ---- helpers -----------------------------------------------------------------------------------------------

    async def _start(self) -> Worker:
        options: dict[str, Any] = (
            {} if self._user is None else {"user": self._user, "group": self._user, "extra_groups": []}
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", _HELPER, str(self.threads),
            stdin=PIPE, stdout=PIPE, limit=1 << 20, start_new_session=True, **options,
        )  # fmt: skip
        worker = Worker(process)
        worker.reader = asyncio.create_task(self._read(worker))
        return worker

    def _assign(self, job: Job, worker: Worker) -> None:
        self._number += 1
        job.worker = worker
        job.owed = job.credit
        job.since = asyncio.get_running_loop().time()
        worker.jobs[self._number] = job
        worker.write(job.request(self._number))

    async def _read(self, worker: Worker) -> None:
        stream = worker.process.stdout
        if stream is None:
            return
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = await stream.readexactly(helper.LENGTH.size)
                frame = marshal.loads(await stream.readexactly(helper.LENGTH.unpack(head)[0]))  # noqa: S302 - our own child
                self._heard(worker, frame)
        self._lose(worker, None)

    def _heard(self, worker: Worker, frame: tuple[Any, ...]) -> None:
        number, done, *rest = frame
        job = worker.jobs.get(number)
        if job is None:
            return
        job.since = asyncio.get_running_loop().time()
        job.owed -= 1
        if done:
            del worker.jobs[number]
            job.worker = None
        job.parts.put_nowait((done, *rest))

    # ---- losses ------------------------------------------------------------------------------------------------

    async def _watch_deadlines(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._deadline / 10)
            for worker in list(self._workers):
                waited_for = [job for job in worker.jobs.values() if job.kind != "folder" or job.owed > 0]
                oldest = min(waited_for, key=lambda job: job.since, default=None)
                if oldest is not None and loop.time() - oldest.since > self._deadline:
                    self._lose(worker, oldest)

    def _lose(self, worker: Worker, culprit: Job | None) -> None:
        """A helper died, or is to be given up because of `culprit`: replace it and do its jobs again."""
        if worker not in self._workers or self._closed:
            return
        self._workers.remove(worker)
        task = asyncio.create_task(self._replace(worker, culprit))
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    async def _replace(self, worker: Worker, culprit: Job | None) -> None:
        jobs = list(worker.jobs.values())
        worker.jobs.clear()
        await self._end(worker)
        if self.abandoned > self._most_abandoned:
            self._failure = FsxwarmError(
                Kind.HUNG, f"{self.abandoned} calls to the file system hang in the kernel and cannot be ended"
            )
        for job in jobs:
            job.worker = None
            job.tries += 1
            if job is culprit or job.tries > _TRIES or self._failure is not None:
                job.parts.put_nowait(_gave_up(job))
            else:
                while not job.parts.empty():  # parts that nobody has taken yet will come again
                    job.parts.get_nowait()
                await self.give(job)

    async def _end(self, worker: Worker) -> None:
        with suppress(ProcessLookupError):
            worker.process.kill()
        try:
            async with asyncio.timeout(_GRACE):
                await worker.process.wait()
        except TimeoutError:
            self.abandoned += 1
        if worker.reader is not None and worker.reader is not asyncio.current_task():
            worker.reader.cancel()
            await asyncio.gather(worker.reader, return_exceptions=True)
        if worker.process.stdin is not None:
            worker.process.stdin.close()


def _gave_up(job: Job) -> tuple[Any, ...]:
    """The answer that stands in for one that never came."""
    match job.kind:
        case "folder":
            return (1, [], errno.ETIMEDOUT, 0)
        case "resolve":
            return (1, errno.ETIMEDOUT)
        case _:
            paths: Sequence[bytes] = job.arguments[0]
            return (1, [errno.ETIMEDOUT] * len(paths))
