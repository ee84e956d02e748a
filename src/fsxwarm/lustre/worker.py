"""One helper process, as the process that started it sees it: the jobs it has and what it says of them."""

from __future__ import annotations

import asyncio
import marshal
from collections.abc import Callable
from typing import Any, cast

from fsxwarm.lustre.helper import ANSWER, DONE, MARKS, REQUEST
from fsxwarm.lustre.jobs import Reading, Work

_FROM_IT = 1
_TO_IT = 0


class Worker(asyncio.SubprocessProtocol):
    """Sends jobs to a helper and answers to jobs; calls `settled` when a job is done, `lost` when it has died."""

    def __init__(self, settled: Callable[[], None], lost: Callable[[Worker], None]) -> None:
        self.jobs: dict[int, Work] = {}
        self.readings = 0
        self.lookups = 0
        self.heard = now()
        """When it last said anything (loop time)."""
        self.ended = asyncio.Event()
        """It has exited."""
        self.at_end: Callable[[Worker], None] | None = None
        """Called when it has, for one that would not die at once."""
        self._settled = settled
        self._lost = lost
        self._numbers: dict[Work, int] = {}
        self._last_number = 0
        self._unread = bytearray()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._transport.get_pid()

    def ask(self, job: Work) -> None:
        """Give it a job."""
        self._last_number += 1
        number = self._last_number
        self.jobs[number] = job
        self._numbers[job] = number
        self._count(job, 1)
        job.since, job.mark = now(), 0
        self._write(number, job.kind, *job.request())

    def grant(self, reading: Reading, parts: int) -> None:
        """Let it send more parts of a folder, if it is this one's."""
        number = self._numbers.get(reading)
        if number is not None:
            self._write(number, "credit", parts)

    def drop(self, reading: Reading) -> None:
        """Tell it, if it is this one's, that nobody wants the rest of a folder."""
        number = self._numbers.get(reading)
        if number is not None:
            self._forget(number)
            self._write(number, "credit", -1)

    def excuse(self) -> None:
        """Count its silence from now on."""
        self.heard = now()
        for job in self.jobs.values():
            job.since = self.heard

    def take_jobs(self) -> list[Work]:
        """Take all its jobs away."""
        jobs = list(self.jobs.values())
        for number in list(self.jobs):
            self._forget(number)
        return jobs

    def let_go(self) -> None:
        """Close the pipes and stop watching: it has ended, or cannot."""
        self._transport.close()

    # ---- as a protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take answers out of what comes."""
        del fd  # there is but one to read from
        self.heard = now()
        unread = self._unread
        unread += data
        at = 0
        while len(unread) - at >= ANSWER.size:
            length, number, what = ANSWER.unpack_from(unread, at)
            end = at + ANSWER.size + length
            if len(unread) < end:
                break
            self._hear(number, what, bytes(unread[at + ANSWER.size : end]))
            at = end
        del unread[:at]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It has closed its end, or died."""
        del exc
        if fd == _FROM_IT:
            self._lost(self)

    def process_exited(self) -> None:
        """It is gone."""
        self.ended.set()
        if self.at_end is not None:
            self.at_end(self)
            self.let_go()

    def _hear(self, number: int, what: int, answer: bytes) -> None:
        if what == MARKS:
            for one, mark in marshal.loads(answer).items():  # noqa: S302 - our own child's
                moved = self.jobs.get(one)
                if moved is not None and moved.mark != mark:
                    moved.mark, moved.since = mark, self.heard
            return
        job = self.jobs.get(number)
        if job is None:
            return
        job.since = self.heard
        if what == DONE:
            self._forget(number)
        job.hear(answer, done=what == DONE)
        if what == DONE:
            self._settled()

    # ---- inside ------------------------------------------------------------------------------------------------

    def _forget(self, number: int) -> None:
        job = self.jobs.pop(number)
        del self._numbers[job]
        self._count(job, -1)

    def _count(self, job: Work, step: int) -> None:
        if isinstance(job, Reading):
            self.readings += step
        else:
            self.lookups += step

    def _write(self, *frame: Any) -> None:
        """Send a frame; that it is gone is heard of otherwise."""
        pipe = self._transport.get_pipe_transport(_TO_IT)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            data = marshal.dumps(frame)
            pipe.write(REQUEST.pack(len(data)) + data)


def now() -> float:
    """The loop's time, in seconds."""
    return asyncio.get_running_loop().time()
