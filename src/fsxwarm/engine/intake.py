"""One walk's way into the machine: what it finds waits in a backlog until there is an appetite for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from fsxwarm.engine.backlog import Backlog
from fsxwarm.engine.looks import GONE
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.messages import Finish, Found, WalkEnded
from fsxwarm.model.progress import Progress
from fsxwarm.ports.tree import Batch

_MOST: Final = 2000


class Intake:
    """Walks a selection for the machine's job `number`, and counts what becomes of it.

    `unsettled` are the bytes found and not settled, by st_dev. `told` hears of what could not be looked at.
    """

    def __init__(
        self, selection: Selection, progress: Progress, told: Callable[[Trouble], None], number: int = 0
    ) -> None:
        self.selection = selection
        self.progress = progress
        self.number = number
        self.unsettled: Counter[int] = Counter()
        self.all_fed = False
        """Everything found has been handed on, and the walk has ended."""
        self._told = told
        self._backlog = Backlog()
        self._walked = False

    async def walk(self, now: Callable[[], float], found: Callable[[], None]) -> None:
        """Walk it all; `found` is called after each part. Raises what resolving the selection raises."""
        try:
            async for batch in self.selection.batches():
                self._note(batch)
                found()
            self.progress.scan_ended = now()
        finally:
            self._walked = True

    def _note(self, batch: Batch) -> None:
        progress = self.progress
        for item in batch.items:
            progress.scanned_item(item)
            if isinstance(item, Entry):
                self.unsettled[item.dev] += item.size
        progress.skipped += batch.skipped
        for trouble in batch.troubles:
            if batch.folder and trouble.errno in GONE:
                continue  # a folder that vanished during the walk, with files that nobody can want any more
            progress.unreadable += 1
            self._told(trouble)
        self._backlog.put(batch.items)

    @property
    def hungry(self) -> bool:
        """Whether something waits to be handed on."""
        return bool(self._backlog) or self.ends

    @property
    def ends(self) -> bool:
        """Whether all that waits to be handed on is that the walk has ended."""
        return self._walked and not self._backlog and not self.all_fed

    def take(self, appetite: int) -> list[Found | WalkEnded]:
        """Take up to `appetite` files from the backlog as events for the machine."""
        events: list[Found | WalkEnded] = []
        if self._backlog and appetite:
            items = self._backlog.take(min(appetite, _MOST))
            for item in items:
                self.progress.passed(item)
            events.append(Found([item for item in items if isinstance(item, Entry)], self.number))
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
