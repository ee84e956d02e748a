"""One walk's way into the machine: what it finds waits in a backlog until there is an appetite for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from fsxwarm.engine.backlog import Backlog
from fsxwarm.engine.looks import GONE
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.messages import Finish, Found, WalkEnded
from fsxwarm.model.outcome import Reason
from fsxwarm.model.progress import Progress
from fsxwarm.model.record import Barred, Item
from fsxwarm.ports.tree import Batch

_MOST: Final = 200
"""Files handed on at a time: the loop has others to serve."""


class Sieve(Protocol):
    """Finds out which files S3 cannot give, while they are walked."""

    def checked(self, batches: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
        """Hand batches on with `barred` filled in; the order is kept, except for files that had to be waited for."""
        ...


class Intake:
    """Walks a selection for the machine's job `number`, and counts what becomes of it.

    `unsettled` are the bytes found and not settled, by st_dev, without files that S3 cannot give. `told` hears of what
    could not be looked at; `sieve` finds out what S3 can give.
    """

    def __init__(
        self,
        selection: Selection,
        progress: Progress,
        told: Callable[[Trouble], None],
        number: int = 0,
        sieve: Sieve | None = None,
    ) -> None:
        self.selection = selection
        self.progress = progress
        self.number = number
        self.unsettled: Counter[int] = Counter()
        self.all_fed = False
        """Everything found has been handed on, and the walk has ended."""
        self._told = told
        self._sieve = sieve
        self._backlog = Backlog()
        self._walked = False

    async def walk(self, now: Callable[[], float], found: Callable[[], None]) -> None:
        """Walk it all; `found` is called after each part. Raises what resolving the selection raises."""
        try:
            batches = self.selection.batches()
            async for batch in batches if self._sieve is None else self._sieve.checked(batches):
                self._note(batch)
                if batch.last:
                    self.progress.scan_ended = now()
                found()
            if self.progress.scan_ended is None:
                self.progress.scan_ended = now()
        finally:
            self._walked = True

    def _note(self, batch: Batch) -> None:
        progress = self.progress
        items: list[Item] = list(batch.items)
        for held in batch.held:
            progress.scanned_item(held)
            progress.held.add(held.size)
        for at, item in enumerate(batch.items):
            if progress.scan_ended is None:
                progress.scanned_item(item)
            elif isinstance(item, Entry):  # held back until now, and counted then
                progress.held.add(-item.size, -1)
            if isinstance(item, Resident):
                continue
            if (reason := batch.barred.get(item.key)) is None:
                self.unsettled[item.dev] += item.size
            else:
                items[at] = Barred(item, reason)
        progress.skipped += batch.skipped
        for trouble in batch.troubles:
            if batch.folder and trouble.errno in GONE:
                continue  # a folder that vanished during the walk, with files that nobody can want any more
            progress.unreadable += 1
            self._told(trouble)
        self._backlog.put(items)

    @property
    def hungry(self) -> bool:
        """Whether something waits to be handed on."""
        return bool(self._backlog) or self.ends

    @property
    def ends(self) -> bool:
        """Whether all that waits to be handed on is that the walk has ended."""
        return self._walked and not self._backlog and not self.all_fed

    def take(self, appetite: int, *, aged: bool = False) -> list[Found | WalkEnded]:
        """Take up to `appetite` files from the backlog as events for the machine; `aged` as in `Found`."""
        events: list[Found | WalkEnded] = []
        if self._backlog and appetite:
            items = self._backlog.take(min(appetite, _MOST))
            entries: list[Entry] = []
            barred: dict[Key, Reason] = {}
            for item in items:
                if isinstance(item, Barred):
                    barred[item.entry.key] = item.reason
                    self.unsettled[item.entry.dev] += item.entry.size  # until it settles, which is at once
                one = item.entry if isinstance(item, Barred) else item
                self.progress.passed(one)
                if isinstance(one, Entry):
                    entries.append(one)
            events.append(Found(entries, self.number, barred, aged))
        if self.ends:
            self.all_fed = True
            events.append(WalkEnded(self.number))
        return events

    def settled(self, finish: Finish) -> None:
        """One of its files has settled."""
        self.unsettled[finish.entry.dev] -= finish.entry.size

    def close(self) -> None:
        """Give the backlog's temporary file back."""
        self._backlog.close()
