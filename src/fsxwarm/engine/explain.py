"""Why restores failed: what the file system wrote into its CloudWatch log, joined to the files that failed."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.warm import Listener, Relay
from fsxwarm.model.association import may_be_fsx
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import MEANINGS, Outcome, Reason
from fsxwarm.model.restore_log import read_event
from fsxwarm.model.units import format_count
from fsxwarm.ports.cloud import CloudError
from fsxwarm.ports.restore_log import RestoreLog

HELD: Final = 50_000
"""Failures that are held back at a time."""
_REMEMBERED: Final = 200_000
SLACK: Final = 60.0
"""Seconds by which the clocks of FSx and of this machine may differ."""
_LATE: Final = 300.0
"""Seconds after its time by which an event may show up in the log."""
_READS: Final = 3
_BETWEEN: Final = 3.0
_EVERY: Final = 20.0
"""Seconds between looks into the log while files are being warmed."""
_TELL_AGAIN: Final = 10
"""A reason is told again once so many times as many files have failed for it."""


def is_unexplained(finish: Finish) -> bool:
    """Whether a restore failed and nobody knows why yet."""
    return finish.outcome is Outcome.FAILED and finish.reason is Reason.RESTORE_FAILED


class Causes:
    """What a log says of failures: of objects (the last 200,000), of whole buckets, of the file system."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Reason] = {}
        self._buckets: dict[str, Reason] = {}
        self._system: Reason | None = None

    def learn(self, message: str) -> None:
        """Take in an event."""
        failure = read_event(message)
        if failure is None:
            return
        if failure.key:
            self._objects[failure.bucket, failure.key] = failure.reason
            if len(self._objects) > _REMEMBERED:
                del self._objects[next(iter(self._objects))]
        elif failure.bucket:
            self._buckets[failure.bucket] = failure.reason
        else:
            self._system = failure.reason

    def of(self, bucket: str, key: str) -> Reason | None:
        """Why an object could not be restored; a full disk names no file, so it is what remains."""
        return self._objects.get((bucket, key)) or self._buckets.get(bucket) or self._system


class Enquiry:
    """Asks the logs of file systems why restores failed. Raises CloudError."""

    def __init__(self, atlas: Atlas, log: RestoreLog) -> None:
        self._atlas = atlas
        self._log = log
        self._known: dict[str, Causes] = {}

    async def read(self, paths: Iterable[bytes], start: float, end: float) -> bool:
        """Read what was logged between two moments (seconds since the epoch) by the file systems that files are on.

        Tells whether any of them logs at all.
        """
        mounts = {mount for path in paths if (mount := self._atlas.mount_of(path)) is not None}
        for mount in mounts:
            if not may_be_fsx(mount.source):
                continue
            chart = await self._atlas.chart(mount)
            if chart.failure is not None:
                raise chart.failure
            if chart.system is None or not chart.system.log_group:
                continue
            causes = self._known.setdefault(chart.system.id, Causes())
            async for event in self._log.events(chart.system.log_group, chart.system.id, start=start, end=end):
                causes.learn(event.message)
        return bool(self._known)

    async def reason(self, path: bytes) -> Reason | None:
        """Why a file was not restored, by what has been read; None if that does not tell."""
        chart, link = await self._atlas.chart_of(path), await self._atlas.link_of(path)
        key = None if link is None else link.key_of(path)
        causes = None if chart is None or chart.system is None else self._known.get(chart.system.id)
        if causes is None or link is None or key is None:
            return None
        return causes.of(link.association.uri.bucket, key)


class Explaining(Relay):
    """Stands before a listener and holds failed restores back until it is found out why they failed.

    While `watching`, the log is asked now and then; `end` asks it for the last time. At most 50,000 are held; more are
    handed on as they are. `clock` tells seconds since the epoch.
    """

    def __init__(self, listener: Listener, atlas: Atlas, log: RestoreLog, clock: Callable[[], float]) -> None:
        super().__init__(listener)
        self._enquiry = Enquiry(atlas, log)
        self._clock = clock
        self._from = clock() - SLACK
        self._serial = itertools.count()
        self._held: dict[int, Finish] = {}
        self._found: Counter[Reason] = Counter()
        self._told: Counter[Reason] = Counter()

    def settled(self, finish: Finish) -> None:
        """See `Listener`."""
        if is_unexplained(finish) and len(self._held) < HELD:
            self._held[next(self._serial)] = finish
        else:
            super().settled(finish)

    @asynccontextmanager
    async def watching(self, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """While the body runs, ask the log every 20 seconds, if anything failed; `tell` reasons as they come up."""
        task = asyncio.create_task(self._watch(tell))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def end(self) -> str:
        """Hand on what is held, with reasons; returns why they could not be found out, empty if they could."""
        problem = ""
        try:
            for attempt in range(_READS):
                if not self._held:
                    break
                if attempt:
                    await asyncio.sleep(_BETWEEN)  # events take a moment to show up in the log
                if not await self._explain():
                    problem = "why restores failed is not known: the file system does not log to CloudWatch"
                    break
        except CloudError as error:
            problem = f"why restores failed is not known: {error} ({error.advice})"
        finally:
            self.let_go()
        return problem

    def let_go(self) -> None:
        """Hand on what is held as it is."""
        for number in list(self._held):
            self._listener.settled(self._held.pop(number))

    async def _watch(self, tell: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            if not self._held:
                continue
            try:
                await self._explain()
            except CloudError:  # `end` tries again, and says so
                continue
            for reason, files in self._found.items():
                if files >= _TELL_AGAIN * self._told[reason]:
                    self._told[reason] = files
                    meaning = MEANINGS[reason]
                    tell(f"{format_count(files, 'file')} failed: {meaning.what}; {meaning.todo}")

    async def _explain(self) -> bool:
        """Read what was logged since the last time, and hand on what it explains; False if nothing is logged at all."""
        now = self._clock()
        if not await self._enquiry.read([one.entry.path for one in self._held.values()], self._from, now + SLACK):
            return False
        self._from = max(self._from, now - _LATE)
        for number, finish in list(self._held.items()):
            reason = await self._enquiry.reason(finish.entry.path)
            if reason is not None:
                self._found[reason] += 1
                self._listener.settled(replace(self._held.pop(number), reason=reason))
        return True
