"""Thawing: files whose objects are archived wait for a copy that can be read, and then go the way of the others.

S3 takes minutes to two days for this, and charges by the object. So nothing is asked of it before the walk has ended:
then it is known how many there are, and whether they fit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.backlog import Backlog
from fsxwarm.engine.looks import Looks
from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.hsm import Flags
from fsxwarm.model.outcome import Reason
from fsxwarm.model.s3 import THAW_COSTS, Stored, ThawTier, refusal
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import format_count, format_duration, format_size
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.tree import Batch

_ARCHIVED: Final = frozenset({Reason.STORAGE_CLASS, Reason.THAWING})
_AT_ONCE: Final = 64
_LOOKED_AT: Final = 50
"""Objects still being thawed that a round looks at, at the least; a tenth of all if that is more."""
_TELL_EVERY: Final = 600.0
_FOR_GOOD: Final = frozenset({Fault.DENIED, Fault.NO_CREDENTIALS, Fault.NO_REGION, Fault.EXPIRED, Fault.INVALID})
_HOURS: Final = 3600.0
_SOON: Final = {ThawTier.EXPEDITED: 10.0}

Spare = Callable[[], Awaitable[Mapping[int, int]]]
"""Measures the bytes that each file system (st_dev) has for more than what is wanted already; empty: not looked at."""


class ThawWish(NamedTuple):
    """How to thaw: how fast and dear, and for how many days the copy is kept."""

    tier: ThawTier
    days: int

    @property
    def patience(self) -> float:
        """Seconds between two looks at what is being thawed, at the most."""
        return _SOON.get(self.tier, 60.0)

    def words(self) -> str:
        """The cost class, and how long it takes, for people."""
        cost = THAW_COSTS[self.tier]
        takes = format_duration(cost.glacier * _HOURS)
        deep = (
            "not for Deep Archive" if cost.deep is None else f"{format_duration(cost.deep * _HOURS)} for Deep Archive"
        )
        return (
            f"{self.tier.value} ({cost.words}; takes up to {takes}, {deep}), kept for {format_count(self.days, 'day')}"
        )


@dataclass(slots=True)
class Thawing:
    """What has been thawed so far: `asked` of S3, `already` being thawed then, `thawed` by now, `waiting` still."""

    wish: ThawWish
    asked: Tally = field(default_factory=Tally)
    already: Tally = field(default_factory=Tally)
    thawed: Tally = field(default_factory=Tally)
    waiting: Tally = field(default_factory=Tally)


class Holds(Protocol):
    """Decides what becomes of files whose objects are archived."""

    @property
    def found(self) -> Thawing:
        """What came of it so far."""
        ...

    async def hold_back(self, batch: Batch) -> None:
        """Take out of a batch what is to be thawed first."""
        ...

    def thawed(self) -> AsyncIterator[Batch]:
        """Once the walk has ended: hand on what was held back."""
        ...

    def let_go(self) -> list[Entry]:
        """Wait no longer: returns what is still held back."""
        ...


class Rehearsal:
    """For a dry run: lets the files of archived objects pass, and counts those that would be thawed."""

    def __init__(self, wish: ThawWish) -> None:
        self._archived: set[Key] = set()
        self.found = Thawing(wish)

    async def hold_back(self, batch: Batch) -> None:
        """See `Holds`."""
        archived = {key for key, reason in batch.barred.items() if reason in _ARCHIVED}
        self._archived |= archived
        for key in archived:
            del batch.barred[key]

    async def thawed(self) -> AsyncIterator[Batch]:
        """See `Holds`: nothing was held back."""
        nothing: tuple[Batch, ...] = ()
        for batch in nothing:
            yield batch

    def let_go(self) -> list[Entry]:
        """See `Holds`."""
        return []

    def released(self, entry: Entry) -> None:
        """A file turned out to be released."""
        if entry.key in self._archived:
            self.found.waiting.add(entry.size)


class Thawer:
    """Holds files of archived objects back, has these thawed, and lets the files go as they are.

    `say` is told lines for people. `fit`: what does not fit is left out; else nothing is thawed where not all fits.
    The first look comes after `poll` seconds, each next one after twice as many, up to the wish's patience.
    """

    def __init__(
        self,
        atlas: Atlas,
        looks: Looks,
        wish: ThawWish,
        say: Callable[[str], None],
        *,
        spare: Spare,
        fit: bool = False,
        poll: float = 1.0,
    ) -> None:
        self._atlas = atlas
        self._looks = looks
        self._wish = wish
        self._say = say
        self._spare = spare
        self._fit = fit
        self._poll = poll
        self._now = asyncio.get_running_loop().time
        self._queue = Backlog()
        self._held: Counter[int] = Counter()
        self._told: set[tuple[Fault, str]] = set()
        self._told_at = self._now()
        self.found = Thawing(wish)

    async def hold_back(self, batch: Batch) -> None:
        """Take the released files of archived objects out of a batch."""
        archived = [item for item in batch.items if isinstance(item, Entry) and batch.barred.get(item.key) in _ARCHIVED]
        if not archived:
            return
        held = await self._released(archived)
        keys = {entry.key for entry in held}
        batch.items = [item for item in batch.items if not (isinstance(item, Entry) and item.key in keys)]
        batch.held += held
        for entry in held:
            del batch.barred[entry.key]
            self._wait_for(entry)
            self._held[entry.dev] += entry.size

    async def thawed(self) -> AsyncIterator[Batch]:
        """Have all that was held back thawed; hands the files on, as they are thawed or turn out not to be."""
        if not self._queue:
            return
        spare = dict(await self._spare())
        short = {dev for dev, room in spare.items() if self._held[dev] > room}
        waiting = self.found.waiting
        what = f"{format_count(waiting.files, 'archived object')}, {format_size(waiting.bytes)}"
        if short.issuperset(self._held) and not self._fit:
            self._say(f"{what}, not thawed: there is no room for the files")
        else:
            self._say(f"thawing {what}: {self._wish.words()}")

        async def begin(entry: Entry) -> Reason | None:
            if entry.dev in short:
                if not self._fit or spare[entry.dev] < entry.size:
                    return Reason.NO_ROOM
                spare[entry.dev] -= entry.size
            return await self._begin(entry)

        async for batch in self._round(begin, waiting.files):  # each object once
            yield batch
        while self._queue:
            self._tell()
            await asyncio.sleep(self._poll)
            self._poll = min(2 * self._poll, self._wish.patience)
            async for batch in self._round(self._look, max(_LOOKED_AT, self.found.waiting.files // 10)):
                yield batch
        if self.found.thawed.files:
            self._say(f"{format_count(self.found.thawed.files, 'object')} thawed")

    def let_go(self) -> list[Entry]:
        """See `Holds`: the files of objects that are not thawed. S3 goes on with those."""
        left: list[Entry] = []
        while items := self._queue.take(_AT_ONCE):
            left += [item for item in items if isinstance(item, Entry)]
        self._queue.close()
        return left

    # ---- rounds ------------------------------------------------------------------------------------------------

    async def _round(self, judge: Callable[[Entry], Awaitable[Reason | None]], ongoing: int) -> AsyncIterator[Batch]:
        """Judge what waits, until so many are still being thawed; those go to the queue's end."""
        left = self.found.waiting.files
        while left > 0 and ongoing > 0:
            entries = [item for item in self._queue.take(min(left, ongoing, _AT_ONCE)) if isinstance(item, Entry)]
            left -= len(entries)
            try:
                reasons = await asyncio.gather(*map(judge, entries))
            except asyncio.CancelledError:
                self._queue.put(entries)
                raise
            batch = Batch(b"")
            for entry, reason in zip(entries, reasons, strict=True):
                self.found.waiting = self.found.waiting + Tally(-1, -entry.size)
                if reason is Reason.THAWING:
                    ongoing -= 1
                    self._wait_for(entry)
                    continue
                batch.items.append(entry)
                if reason is None:
                    self.found.thawed.add(entry.size)
                else:
                    batch.barred[entry.key] = reason
            yield batch

    def _wait_for(self, entry: Entry) -> None:
        self._queue.put([entry])
        self.found.waiting.add(entry.size)

    def _tell(self) -> None:
        if self._now() >= self._told_at + _TELL_EVERY:
            self._told_at = self._now()
            waiting, thawed = self.found.waiting, self.found.thawed
            self._say(f"{format_count(waiting.files, 'object')} still being thawed, {thawed.files:,} thawed")

    # ---- one object --------------------------------------------------------------------------------------------

    async def _begin(self, entry: Entry) -> Reason | None:
        """Ask for a thaw, unless S3 is at it already; why the file has to wait, or cannot be had."""
        try:
            stored, reason = await self._judged(entry)
            if reason is Reason.THAWING:
                self.found.already.add(entry.size)
            if reason is Reason.STORAGE_CLASS and stored is not None and self._suits(stored):
                bucket, key = await self._address(entry)
                days = 0 if stored.archive else self._wish.days  # a tiering object comes back for good
                await self._atlas.cloud.thaw(bucket, key, self._wish.tier, days)
                self.found.asked.add(entry.size)
                return Reason.THAWING
        except CloudError as error:
            self._complain(error, "not thawed")
            return Reason.STORAGE_CLASS
        return reason

    async def _look(self, entry: Entry) -> Reason | None:
        """Whether an object is thawed by now."""
        try:
            return (await self._judged(entry))[1]
        except CloudError as error:
            self._complain(error, "whether it is thawed cannot be seen")
            return Reason.STORAGE_CLASS if error.fault in _FOR_GOOD else Reason.THAWING

    async def _judged(self, entry: Entry) -> tuple[Stored | None, Reason | None]:
        stored = await self._atlas.cloud.head(*await self._address(entry))
        return stored, refusal(entry.size, stored)

    async def _address(self, entry: Entry) -> tuple[str, str]:
        link = await self._atlas.link_of(entry.path)
        key = None if link is None else link.key_of(entry.path)
        if link is None or key is None:
            raise CloudError(Fault.NOT_FOUND, "s3:GetObject", "", "its association has gone")
        return link.association.uri.bucket, key

    def _suits(self, stored: Stored) -> bool:
        if not stored.deep or THAW_COSTS[self._wish.tier].deep is not None:
            return True
        self._once(Fault.INVALID, "deep", f"not thawed: {self._wish.tier.value} is not for Deep Archive (--tier Bulk)")
        return False

    def _complain(self, error: CloudError, what: str) -> None:
        self._once(error.fault, error.action, f"{what}: {error} ({error.advice})")

    def _once(self, fault: Fault, matter: str, line: str) -> None:
        if (fault, matter) not in self._told:
            self._told.add((fault, matter))
            self._say(line)

    async def _released(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those that only S3 holds; thawing for any other would be money for nothing."""
        states = await self._looks.states_or_released([entry.path for entry in entries])
        return [
            entry
            for entry, state in zip(entries, states, strict=True)
            if state is True or (isinstance(state, Flags) and state.restorable)
        ]
