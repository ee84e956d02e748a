"""Giving space back without ever losing data."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from fsxwarm.engine.crew import Crew, Turns
from fsxwarm.engine.looks import AT_ONCE, DENIED, GONE, Looks, Troubles
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import MAX_REQUEST, Action, Flags, Verb
from fsxwarm.model.release import Reason
from fsxwarm.model.tally import Tally
from fsxwarm.ports.hsm import CallHungError, Hsm, Reply
from fsxwarm.ports.tree import Batch, Tree

_PARALLEL: Final = 4
_NAMED: Final = 10


class ReleaseKeeper(Protocol):
    """Has the last word on what is safe to release."""

    async def refused(self, entries: Sequence[Entry]) -> Mapping[Key, Reason]:
        """Those of at most 50 files that must be left alone, and why."""
        ...


@dataclass(slots=True)
class Left:
    """Files left alone for one reason: how many, and the first of them."""

    tally: Tally = field(default_factory=Tally)
    first: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Released:
    """What became of the files, also while it is going on.

    `released` gave their space back, `used` is what stat said of it in bytes (sparse and compressed files use less
    than their size); with `dry_run` they would have. `already` had none, `recent` were used too recently; `left`
    were left alone for a known reason, `troubles` because a call failed: of these nothing is known.
    """

    dry_run: bool = False
    released: Tally = field(default_factory=Tally)
    used: int = 0
    already: Tally = field(default_factory=Tally)
    recent: Tally = field(default_factory=Tally)
    left: dict[Reason, Left] = field(default_factory=dict)
    troubles: Troubles = field(default_factory=Troubles)
    vanished: int = 0

    def leave(self, entry: Entry, reason: Reason) -> None:
        """Count a file that is left alone."""
        left = self.left.setdefault(reason, Left())
        left.tally.add(entry.size)
        if len(left.first) < _NAMED:
            left.first.append(entry.path)

    def give(self, entry: Entry) -> None:
        """Count a file that was released."""
        self.released.add(entry.size)
        self.used += min(entry.size, entry.blocks * 512)


class Releaser:
    """Releases files a batch at a time.

    A file is released only if, right before, nothing was queued for it at the coordinator (releasing a file that is
    being restored blocks, then throws the restore away), its flags allow it (a full copy is in the archive and it
    has not changed since; no pin), and its name still means the same file. The server checks the flags once more.
    `guard` may name a reason of its own to leave a file alone; `keeper` is asked last, of all that passed, in the order
    in which the releases were begun.
    """

    def __init__(
        self,
        tree: Tree,
        hsm: Hsm,
        *,
        dry_run: bool = False,
        guard: Callable[[Entry], Reason | None] = lambda _: None,
        keeper: ReleaseKeeper | None = None,
    ) -> None:
        self._tree = tree
        self._hsm = hsm
        self._looks = Looks(hsm, tree)
        self._guard = guard
        self._keeper = keeper
        self._turns = Turns()  # what the keeper looks up lies side by side in the order of the walk
        self.result = Released(dry_run=dry_run)

    async def release(self, entries: Sequence[Entry]) -> None:
        """Release what may be released of at most 50 files; the rest is counted."""
        turn = self._turns.take()
        try:
            entries = await self.look(entries)
            await turn.come()
            entries = await self._safe(entries)
        finally:
            turn.over()
        if not self.result.dry_run:
            entries = await self._same(entries)
            while entries:
                entries = await self._ask(entries)
            return
        for entry in entries:
            self.result.give(entry)

    async def _safe(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Keep the files that the keeper lets go."""
        if self._keeper is None or not entries:
            return entries
        refused = await self._keeper.refused(entries)
        for entry in entries:
            if entry.key in refused:
                self.result.leave(entry, refused[entry.key])
        return [entry for entry in entries if entry.key not in refused]

    async def look(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the files that may be released now, and count the others."""
        free, released = await self._looked(entries)
        for entry in released:
            self.result.already.add(entry.size)
        return free

    async def _looked(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        """Return the files that may be released and those that are; count what must be left alone."""
        paths, keys = [entry.path for entry in entries], [entry.key for entry in entries]
        actions = await self._looks.actions(paths, keys)
        states = await self._looks.states(paths, keys)
        free: list[Entry] = []
        released: list[Entry] = []
        for entry, action, state in zip(entries, actions, states, strict=True):
            if isinstance(state, Trouble):
                self._trouble(entry, state)
            elif isinstance(action, Trouble):
                self._trouble(entry, action)
            elif (reason := _obstacle(action, state) or self._guard(entry)) is not None:
                self.result.leave(entry, reason)
            else:
                (released if state.released else free).append(entry)
        return free, released

    async def _same(self, entries: Sequence[Entry]) -> list[Entry]:
        """Keep the files whose names still mean what was looked at."""
        if not entries:
            return []
        stats = await self._tree.stat([entry.path for entry in entries])
        same: list[Entry] = []
        for entry, stat in zip(entries, stats, strict=True):
            if isinstance(stat, Trouble):
                self._trouble(entry, stat)
            elif (stat.dev, stat.ino, stat.size) != (entry.dev, entry.ino, entry.size):
                self.result.leave(entry, Reason.CHANGED)
            else:
                same.append(entry)
        return same

    async def _ask(self, entries: Sequence[Entry]) -> list[Entry]:
        """Make one request; return the files behind a refused one, which were not tried."""
        try:
            reply = await self._hsm.release([entry.path for entry in entries], [entry.key for entry in entries])
        except CallHungError:
            for entry in entries:
                self.result.leave(entry, Reason.HUNG)
            return []
        if reply.errno:
            return await self._behind(entries, reply)
        for entry in entries:
            self.result.give(entry)
        return []

    async def _behind(self, entries: Sequence[Entry], reply: Reply) -> list[Entry]:
        """Look at each file of a refused request: it stopped at the first that could not be released."""
        free, released = await self._looked(entries)
        for entry in released:
            self.result.give(entry)
        if free and len(free) + len(released) == len(entries):
            self._refused(free.pop(0), reply)
        return await self._same(free)

    def _trouble(self, entry: Entry, trouble: Trouble) -> None:
        if trouble.errno in GONE:
            self.result.vanished += 1
        elif trouble.errno == errno.ESTALE:
            self.result.leave(entry, Reason.CHANGED)
        elif trouble.errno == errno.ETIMEDOUT:
            self.result.leave(entry, Reason.HUNG)
        elif trouble.errno in DENIED:
            self.result.leave(entry, Reason.UNREADABLE)
        else:
            self.result.troubles.add(trouble)

    def _refused(self, entry: Entry, reply: Reply) -> None:
        """Count a file whose flags allow it and that was refused all the same."""
        if reply.errno == errno.EACCES:
            self.result.leave(entry, Reason.NOT_YOURS)
        elif reply.errno in (errno.EBUSY, errno.ESTALE, errno.EPERM):
            self.result.leave(entry, Reason.BUSY)
        else:
            self.result.troubles.add(Trouble(entry.path, reply.errno, reply.text))


async def release_all(releaser: Releaser, selection: Selection, *, used_before: int | None = None) -> Released:
    """Release every file of a whole selection, or those last used before a time (seconds since the epoch)."""
    result = releaser.result
    ready: list[Entry] = []
    unclear: list[Entry] = []

    async def clear_up(entries: Sequence[Entry]) -> None:
        ready.extend(await releaser.look(entries))

    async with Crew(_PARALLEL) as crew:
        async for batch in selection.batches():
            result.vanished += result.troubles.take(batch)
            for entry in named(batch):
                if used_before is not None and entry.used >= used_before:
                    result.recent.add(entry.size)
                elif entry.proves_resident:
                    ready.append(entry)
                elif entry.size:
                    unclear.append(entry)
                else:
                    result.already.add(0)
            while len(unclear) >= AT_ONCE:
                await crew.start(clear_up(unclear[:AT_ONCE]))
                del unclear[:AT_ONCE]
            while len(ready) >= MAX_REQUEST:
                await crew.start(releaser.release(_taken(ready)))
        await clear_up(unclear)
    async with Crew(_PARALLEL) as crew:
        while ready:
            await crew.start(releaser.release(_taken(ready)))
    return result


async def candidates(selection: Selection, *, used_before: int | None = None) -> Tally:
    """Count the files that a release would look at: resident by their stat, and not used too recently."""
    tally = Tally()
    async for batch in selection.batches():
        for entry in named(batch):
            if entry.proves_resident and (used_before is None or entry.used < used_before):
                tally.add(entry.size)
    return tally


def named(batch: Batch) -> Iterator[Entry]:
    """The files of a batch of a whole selection, in which each has a name."""
    for item in batch.items:
        if isinstance(item, Resident):
            raise TypeError("this needs a whole selection: each file by name")
        yield item


def _taken(entries: list[Entry]) -> list[Entry]:
    taken = entries[:MAX_REQUEST]
    del entries[:MAX_REQUEST]
    return taken


def _obstacle(action: Action, flags: Flags) -> Reason | None:  # noqa: PLR0911 - one line a reason
    """Why a file is left alone; None for one that may be released, and for one that is released and idle."""
    if action.restoring or action.verb is Verb.CANCEL:
        return Reason.RESTORING
    if not action.idle:
        return Reason.BUSY
    if flags & Flags.LOST:
        return Reason.LOST
    if flags.released:
        return None
    if not flags & Flags.ARCHIVED:
        return Reason.NEVER_ARCHIVED
    if flags & Flags.DIRTY:
        return Reason.DIRTY
    return Reason.PINNED if flags & Flags.NORELEASE else None
