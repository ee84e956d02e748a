"""Release jobs: the daemon gives space back on somebody's behalf, with that somebody's rights."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator
from typing import Final

from fsxwarm.engine.archive import Archive
from fsxwarm.engine.protection import Protection
from fsxwarm.engine.records import unreadable
from fsxwarm.engine.release import Releaser, release_all
from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.engine.walks import select
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.job import ROOT, Count, Counters, Failure, Job
from fsxwarm.model.release import Reason
from fsxwarm.model.tally import Tally
from fsxwarm.ports.access import Access

_AT_ONCE: Final = 2


class Releasing:
    """One release job. `counters` may be read while `run` is at it.

    Only files that belong to the job's owner are released, or anybody's when an administrator asks; never one that
    is leased, or wanted by a job that has not ended; nor one of which `archive` knows that S3 does not hold it.
    """

    def __init__(
        self, job: Job, access: Access, protection: Protection, archive: Archive, files: tuple[bytes, ...]
    ) -> None:
        request = job.request
        identity = ROOT if request.admin else request.identity
        self._job = job
        self._owner = None if identity.uid == ROOT.uid else identity.uid
        self._protection = protection
        tree = access.tree(identity)
        self._selection = select(job, tree, files, whole=True)
        self._releaser = Releaser(
            tree,
            access.hsm(identity),
            dry_run=request.options.dry_run,
            guard=self._guard,
            keeper=archive.guard(request.options.check_s3),
        )
        self._ended = False

    async def run(self) -> None:
        """Release what may be released. Raises what resolving the selection raises."""
        await release_all(self._releaser, self._selection, used_before=self._job.request.options.used_before)
        self._ended = True

    def _guard(self, entry: Entry) -> Reason | None:
        if self._owner is not None and entry.uid != self._owner:
            return Reason.NOT_YOURS
        return self._protection.reason(entry.path)

    @property
    def counters(self) -> Counters:
        """How far it has come."""
        result = self._releaser.result
        left = Tally()
        for some in result.left.values():
            left += some.tally
        left += result.recent
        reasons = {reason.value: some.tally.files for reason, some in result.left.items()}
        if result.recent.files:
            reasons["recent"] = result.recent.files
        found = result.released + result.already + left
        return Counters(
            found=Count(found.files + result.vanished, found.bytes),
            released=Count(result.released.files, result.released.bytes),
            already=Count(result.already.files, result.already.bytes),
            left=Count(left.files, left.bytes),
            vanished=Count(result.vanished, 0),
            unreadable=result.troubles.count + self._selection.missing.count + self._selection.outside.count,
            scanned=self._ended,
            reasons=reasons,
        )

    def failures(self, at: float) -> Iterator[Failure]:
        """The first files left alone for each reason, and the first paths that could not be looked at.

        `at` is the time to file them under, in seconds since the epoch.
        """
        result, selection = self._releaser.result, self._selection
        for path in selection.missing.first:
            yield unreadable(Trouble(path, errno.ENOENT), at)
        for path in selection.outside.first:
            yield unreadable(Trouble(path, NOT_ON_LUSTRE, "not on FSx for Lustre"), at)
        for trouble in result.troubles.first:
            yield unreadable(trouble, at)
        for reason, some in result.left.items():
            for path in some.first:
                yield Failure(0, at, path, "left", reason.value)


class Desk:
    """Carries out jobs in their order, few at a time. `work` does one, given its id."""

    def __init__(self, work: Callable[[str], Coroutine[None, None, None]]) -> None:
        self._work = work
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._under_way: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        """Whether a job waits or is under way."""
        return not self._queue.empty() or bool(self._under_way)

    def put(self, job: str) -> None:
        """Have a job done."""
        self._queue.put_nowait(job)

    def cancel(self, job: str) -> None:
        """Stop a job that is under way."""
        if job in self._under_way:
            self._under_way[job].cancel()

    async def run(self) -> None:
        """Work until cancelled. Raises what a job has broken with."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            job = await self._queue.get()
            task = self._under_way[job] = asyncio.create_task(self._work(job))
            try:
                await asyncio.wait({task})
            finally:
                del self._under_way[job]
                task.cancel()
            if not task.cancelled():
                task.result()
