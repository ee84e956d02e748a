"""How much of a selection is resident, and in what state its files are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.crew import Crew
from fsxwarm.engine.folders import cut, parent
from fsxwarm.engine.looks import AT_ONCE, GONE, Looks, Troubles, is_released
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.tally import Coverage, Tally
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Place

_PARALLEL: Final = 8


@dataclass(slots=True)
class FlagTallies:
    """Files by flag; a file may count several times, or never."""

    dirty: Tally = field(default_factory=Tally)
    never_archived: Tally = field(default_factory=Tally)
    pinned: Tally = field(default_factory=Tally)
    lost: Tally = field(default_factory=Tally)
    restoring: Tally = field(default_factory=Tally)
    unread: Tally = field(default_factory=Tally)

    def count(self, flags: Flags, size: int) -> None:
        """Count one file of `size` bytes."""
        if flags & Flags.DIRTY:
            self.dirty.add(size)
        if not flags & Flags.ARCHIVED:
            self.never_archived.add(size)
        if flags & Flags.NORELEASE:
            self.pinned.add(size)
        if flags & Flags.LOST:
            self.lost.add(size)


@dataclass(slots=True)
class Status:
    """What a survey found, also while it runs.

    `unknown` counts files of which nobody would say whether they are released; `vanished` those that disappeared
    meanwhile; `skipped` what is no regular file; `troubles` folders and files that could not be read.
    """

    all: Coverage = field(default_factory=Coverage)
    unknown: Tally = field(default_factory=Tally)
    flags: FlagTallies | None = None
    depth: int | None = None
    folders: dict[bytes, Coverage] = field(default_factory=dict)
    troubles: Troubles = field(default_factory=Troubles)
    vanished: int = 0
    skipped: int = 0

    @property
    def total(self) -> Tally:
        """Everything that was found."""
        return self.all.resident + self.all.released + self.unknown

    @property
    def all_resident(self) -> bool:
        """Whether each file is proved resident: nothing released, nothing unknown, nothing unreadable."""
        return not (self.all.released.files or self.unknown.files or self.troubles.count)


class Survey:
    """Counts a selection. `status` can be watched while `run` fills it.

    `depth` breaks the counts down by folder, that many levels below each path given (below the mount point for
    listed files); None leaves that out. With `flags` every file's flags are read, which opens each of them; the
    selection must then be `whole`, and also if a list is broken down by folder.
    """

    def __init__(self, hsm: Hsm, selection: Selection, *, depth: int | None = None, flags: bool = False) -> None:
        self._looks = Looks(hsm, selection.tree)
        self._selection = selection
        self._roots: Sequence[Place] = ()
        self._last = (b"", Coverage())
        self.status = Status(flags=FlagTallies() if flags else None, depth=depth)

    async def run(self) -> Status:
        """Walk and count; raises what resolving the selection raises, and HUNG."""
        self._roots = await self._selection.resolve()
        pending: list[Entry] = []
        async with Crew(_PARALLEL) as crew:
            async for batch in self._selection.batches():
                self.status.skipped += batch.skipped
                self.status.vanished += self.status.troubles.take(batch)
                for item in batch.items:
                    if isinstance(item, Resident):
                        self._count(batch.folder, item.bytes, files=item.files)
                    elif self.status.flags is None and item.proves_resident:
                        self._count(parent(item.path), item.size)
                    else:
                        pending.append(item)
                while len(pending) >= AT_ONCE:
                    await crew.start(self._look(pending[:AT_ONCE]))
                    del pending[:AT_ONCE]
            if pending:
                await crew.start(self._look(pending))
        return self.status

    async def _look(self, entries: Sequence[Entry]) -> None:
        flags = self.status.flags
        released: list[Entry] = []
        answers = await self._looks.states_or_released([entry.path for entry in entries])
        for entry, answer in zip(entries, answers, strict=True):
            if isinstance(answer, Trouble):
                self._unknown(entry, answer)
                continue
            self._count(parent(entry.path), entry.size, released=is_released(answer))
            if flags is not None and isinstance(answer, Flags):
                flags.count(answer, entry.size)
                if answer.released:
                    released.append(entry)
            elif flags is not None:
                flags.unread.add(entry.size)
        if flags is not None:
            await self._look_for_restores(released, flags)

    async def _look_for_restores(self, entries: Sequence[Entry], flags: FlagTallies) -> None:
        actions = await self._looks.actions([entry.path for entry in entries])
        for entry, action in zip(entries, actions, strict=True):
            if isinstance(action, Action) and action.restoring:
                flags.restoring.add(entry.size)

    def _unknown(self, entry: Entry, trouble: Trouble) -> None:
        if trouble.errno in GONE:
            self.status.vanished += 1
        else:
            self.status.unknown.add(entry.size)
            self.status.troubles.add(trouble)

    def _count(self, folder: bytes, size: int, *, files: int = 1, released: bool = False) -> None:
        coverages = [self.status.all]
        if self.status.depth is not None:
            if folder != self._last[0]:
                below = self._cut(folder, self.status.depth)
                self._last = (folder, self.status.folders.setdefault(below, Coverage()))
            coverages.append(self._last[1])
        for coverage in coverages:
            (coverage.released if released else coverage.resident).add(size, files)

    def _cut(self, folder: bytes, depth: int) -> bytes:
        roots = {place.path for place in self._roots if place.is_dir} | set(self._selection.mounts.values())
        return cut(folder, roots, depth)
