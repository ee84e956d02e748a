"""Before FSx is asked: what S3 will refuse, found out by listing it beside the walk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.atlas import Atlas, Mounted, cannot_ask
from fsxwarm.engine.objects import Budget, Objects
from fsxwarm.engine.thaw import Holds, Thawing
from fsxwarm.model.association import Link, may_be_fsx
from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.outcome import Reason
from fsxwarm.model.s3 import CheckS3, Stored, refusal
from fsxwarm.model.tally import Tally
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.tree import Batch

_GROUP: Final = 1000
_BATCHES: Final = 500
_AT_ONCE: Final = 8
_PATIENCE: Final = 10.0
"""Seconds that FSx may take to tell what is linked where, unless a check was asked for."""
_SLACK: Final = 3600
"""Seconds by which an object may be younger than its file: exporting a file takes its time, and makes its object."""


@dataclass(slots=True)
class Checked:
    """What was found out so far. `unchecked` were let pass without a look; `outside` lie in no association.

    `newer` are files whose object was written after them. `requests` were made to S3; `skipped` is why checking was
    given up, empty while it goes on.
    """

    checked: Tally = field(default_factory=Tally)
    unchecked: Tally = field(default_factory=Tally)
    outside: Tally = field(default_factory=Tally)
    newer: Tally = field(default_factory=Tally)
    barred: dict[Reason, Tally] = field(default_factory=dict)
    requests: int = 0
    skipped: str = ""


class Inspector:
    """Looks up what S3 holds of files. `say` is told once why files go unchecked.

    `first` requests are made however few files there are. AUTO asks only of mounts that look like FSx. FsxwarmError
    CLOUD when AWS fails and `mode` is ALWAYS.
    """

    def __init__(self, atlas: Atlas, mode: CheckS3, say: Callable[[str], None], *, first: int = 1) -> None:
        self._atlas = atlas
        self._mode = mode
        self._say = say
        self._objects = Objects(atlas.cloud, asyncio.get_running_loop().time)
        self._budget = Budget(frugal=mode is CheckS3.AUTO, first=first)
        self._fsx: dict[Mounted | None, bool] = {}
        self._said_blind = False
        self.found = Checked()

    async def look(self, entries: Sequence[Entry], *, tiers: bool = True) -> dict[Key, Stored | None]:
        """What S3 holds of each file; None for nothing. Files that were not looked up are left out.

        Without `tiers` it is not asked whether it can be read.
        """
        found: dict[Key, Stored | None] = {}
        if self._mode is CheckS3.NEVER or self.found.skipped:
            self._pass(entries)
            return found
        try:
            groups = await self._by_link(entries)
            self._budget.wanted += sum(map(len, groups.values()))
            for link, keys in groups.items():
                uri = link.association.uri
                stored = await self._objects.look(uri.bucket, uri.key, list(keys), self._budget, tiers=tiers)
                self._notice(self._objects.blind)
                for key, entry in keys.items():
                    if key in stored:
                        found[entry.key] = stored[key]
                        self.found.checked.add(entry.size)
                    else:
                        self.found.unchecked.add(entry.size)
        except CloudError as error:
            if self._mode is CheckS3.ALWAYS:
                raise cannot_ask(error, "what S3 holds cannot be checked") from None
            self._give_up(error)
            self._pass([entry for entry in entries if entry.key not in found])
        self.found.requests = self._budget.requests
        return found

    async def _by_link(self, entries: Sequence[Entry]) -> dict[Link, dict[str, Entry]]:
        groups: dict[Link, dict[str, Entry]] = {}
        for entry in entries:
            if self._mode is CheckS3.AUTO and not self._may_be_fsx(entry.path):
                self.found.unchecked.add(entry.size)
                continue
            link = await self._link_of(entry.path)
            key = None if link is None else link.key_of(entry.path)
            if link is None:
                self.found.outside.add(entry.size)
            elif key is None:
                self.found.unchecked.add(entry.size)
            else:
                groups.setdefault(link, {})[key] = entry
        return groups

    async def _link_of(self, path: bytes) -> Link | None:
        """The link that a path lies in. Unless a check was asked for, a network without a way to AWS is given up."""
        try:
            async with asyncio.timeout(_PATIENCE if self._mode is CheckS3.AUTO else None):
                return await self._atlas.link_of(path)
        except TimeoutError:
            text = f"no answer within {_PATIENCE:.0f} s"
            raise CloudError(Fault.UNREACHABLE, "fsx:DescribeFileSystems", "", text) from None

    def _may_be_fsx(self, path: bytes) -> bool:
        mount = self._atlas.mount_of(path)
        known = self._fsx.get(mount)
        if known is None:
            known = self._fsx[mount] = mount is not None and may_be_fsx(mount.source)
        return known

    def _pass(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.found.unchecked.add(entry.size)

    def _notice(self, blind: CloudError | None) -> None:
        """Single objects cannot be asked about: that ends a check of all; else the listings go on, and it is said."""
        if blind is None:
            return
        if self._mode is CheckS3.ALWAYS:
            raise blind
        if not self._said_blind:
            self._said_blind = True
            self._say(f"archive tiers of Intelligent-Tiering objects are not seen: {blind} ({blind.advice})")

    def _give_up(self, error: CloudError) -> None:
        if self.found.skipped:
            return
        self.found.skipped = str(error)
        if error.fault in {Fault.NO_CREDENTIALS, Fault.NO_REGION}:
            self._say("without AWS credentials it is not checked what S3 holds (--check-s3 never says it is meant so)")
        else:
            self._say(f"it is not checked any more what S3 holds: {error} ({error.advice})")


class Preflight:
    """Implements `fsxwarm.engine.intake.Sieve`: files whose object is missing, changed or archived are barred.

    With a `thawer` the archived ones come at the end instead, as they are thawed.
    """

    def __init__(self, inspector: Inspector, thawer: Holds | None = None) -> None:
        self._inspector = inspector
        self._thawer = thawer

    @property
    def found(self) -> Checked:
        """What was found out so far."""
        return self._inspector.found

    @property
    def thawing(self) -> Thawing | None:
        """What is being thawed; None if nothing is to be."""
        return None if self._thawer is None else self._thawer.found

    def let_go(self) -> list[Entry]:
        """Wait no longer for thaws: returns the files that were held back and not handed on."""
        return [] if self._thawer is None else self._thawer.let_go()

    async def checked(self, batches: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
        """See `Sieve`: groups of about a thousand files are looked up, several at a time."""
        running: deque[asyncio.Task[list[Batch]]] = deque()
        try:
            async for group in _groups(batches):
                running.append(asyncio.create_task(self._judged(group)))
                while len(running) >= _AT_ONCE or (running and running[0].done()):
                    for batch in await running.popleft():
                        yield batch
            while running:
                for batch in await running.popleft():
                    yield batch
            if self._thawer is not None:
                yield Batch(b"", last=True)
                async for batch in self._thawer.thawed():
                    yield batch
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _judged(self, group: list[Batch]) -> list[Batch]:
        stored = await self._inspector.look([entry for batch in group for entry in wanted(batch)])
        for batch in group:
            for entry in wanted(batch):
                if entry.key in stored and (reason := self.judge(entry, stored)) is not None:
                    batch.barred[entry.key] = reason
            if self._thawer is not None:
                await self._thawer.hold_back(batch)
        return group

    def judge(self, entry: Entry, stored: Mapping[Key, Stored | None]) -> Reason | None:
        """Why S3 cannot give a file that was looked up; counts it."""
        one = stored[entry.key]
        reason = refusal(entry.size, one)
        if reason is not None:
            self.found.barred.setdefault(reason, Tally()).add(entry.size)
        elif one is not None and one.modified > max(entry.mtime, entry.ctime) + _SLACK:
            self.found.newer.add(entry.size)
        return reason


def wanted(batch: Batch) -> list[Entry]:
    """The files of a batch that may be released."""
    return [item for item in batch.items if isinstance(item, Entry) and not item.proves_resident]


async def _groups(batches: AsyncIterator[Batch]) -> AsyncIterator[list[Batch]]:
    group: list[Batch] = []
    files = 0
    async for batch in batches:
        group.append(batch)
        files += len(wanted(batch))
        if files >= _GROUP or len(group) >= _BATCHES:
            yield group
            group, files = [], 0
    if group:
        yield group
