"""Why restores failed: what the file system wrote into its CloudWatch log, joined to the files that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.warm import Listener
from fsxwarm.model.association import may_be_fsx
from fsxwarm.model.entry import Trouble
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.restore_log import read_event
from fsxwarm.ports.cloud import CloudError
from fsxwarm.ports.restore_log import RestoreLog

_HELD: Final = 50_000
SLACK: Final = 60.0
"""Seconds by which the clocks of FSx and of this machine may differ."""
_READS: Final = 3
_BETWEEN: Final = 3.0


class Causes:
    """What a log says of the failures of a time: of objects, of whole buckets, of the file system."""

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
            causes = self._known[chart.system.id] = Causes()
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


class Explaining:
    """Stands before a listener and holds failed restores back until `end` has found out why they failed.

    At most 50,000 are held; more are handed on as they are. `clock` tells seconds since the epoch.
    """

    def __init__(self, listener: Listener, atlas: Atlas, log: RestoreLog, clock: Callable[[], float]) -> None:
        self._listener = listener
        self._enquiry = Enquiry(atlas, log)
        self._clock = clock
        self._began = clock()
        self._held: list[Finish] = []

    def settled(self, finish: Finish) -> None:
        """See `Listener`."""
        failed = finish.outcome is Outcome.FAILED and finish.reason is Reason.RESTORE_FAILED
        if failed and len(self._held) < _HELD:
            self._held.append(finish)
        else:
            self._listener.settled(finish)

    def said(self, say: Say) -> None:
        """See `Listener`."""
        self._listener.said(say)

    def trouble(self, trouble: Trouble) -> None:
        """See `Listener`."""
        self._listener.trouble(trouble)

    def ready(self) -> None:
        """See `Listener`."""
        self._listener.ready()

    async def end(self) -> str:
        """Hand on what was held, with reasons; returns why they could not be found out, empty if they could."""
        problem = ""
        try:
            if self._held:
                problem = await self._explain()
        finally:
            self.let_go()
        return problem

    def let_go(self) -> None:
        """Hand on what was held as it is."""
        held, self._held = self._held, []
        for finish in held:
            self._listener.settled(finish)

    async def _explain(self) -> str:
        for attempt in range(_READS):
            if attempt:
                await asyncio.sleep(_BETWEEN)  # events take a moment to show up in the log
            try:
                paths = [finish.entry.path for finish in self._held]
                if not await self._enquiry.read(paths, self._began - SLACK, self._clock() + SLACK):
                    return "why restores failed is not known: the file system does not log to CloudWatch"
                if all([await self._explained(at) for at in range(len(self._held))]):
                    return ""
            except CloudError as error:
                return f"why restores failed is not known: {error} ({error.advice})"
        return ""

    async def _explained(self, at: int) -> bool:
        finish = self._held[at]
        if finish.reason is not Reason.RESTORE_FAILED:
            return True
        reason = await self._enquiry.reason(finish.entry.path)
        if reason is not None:
            self._held[at] = replace(finish, reason=reason)
        return reason is not None
