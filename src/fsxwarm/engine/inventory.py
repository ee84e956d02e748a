"""The inventory: how much of each association is resident, released, archived; counted in the background, slowly."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final

from fsxwarm.engine.looks import AT_ONCE, Looks
from fsxwarm.engine.release import named
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.measures import label
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree

_SAVE_EVERY: Final = 30.0


@dataclass(slots=True)
class Scan:
    """What a scan has counted, files and bytes. `started` and `ended` in seconds since the epoch.

    `unread` files' flags may not be read: they count as resident or released and as nothing else. `unknown` files would
    tell nothing. `after` is the folder up to which an unfinished scan has come; `mount` the path's mount point.
    """

    started: float = 0.0
    ended: float | None = None
    resident_files: int = 0
    resident_bytes: int = 0
    released_files: int = 0
    released_bytes: int = 0
    archived_files: int = 0
    archived_bytes: int = 0
    dirty_files: int = 0
    lost_files: int = 0
    not_archived_files: int = 0
    pinned_files: int = 0
    unread_files: int = 0
    unknown_files: int = 0
    after: str = ""
    mount: str = ""

    def count(self, size: int, *, released: bool) -> None:
        """Count a file of which only this is known."""
        if released:
            self.released_files += 1
            self.released_bytes += size
        else:
            self.resident_files += 1
            self.resident_bytes += size

    def count_flags(self, size: int, flags: Flags) -> None:
        """Count a file by its flags."""
        self.count(size, released=flags.released)
        if flags & Flags.ARCHIVED:
            self.archived_files += 1
            self.archived_bytes += size
        else:
            self.not_archived_files += 1
        self.pinned_files += bool(flags & Flags.NORELEASE)
        self.dirty_files += bool(flags & Flags.DIRTY)
        self.lost_files += bool(flags & Flags.LOST)


class Inventory:
    """Scans one path at a time. `calm` is set while no job waits: only then is anything looked at.

    A scan that was cut short goes on where it was: folders up to there are walked again, at the same pace, but their
    files' flags, the dear part, are not looked at again. `save` is given what `load` takes up after a restart.
    """

    def __init__(
        self, tree: Tree, hsm: Hsm, *, calm: asyncio.Event, save: Callable[[bytes, str], None],
        wall: Callable[[], float],
    ) -> None:  # fmt: skip
        self._tree = tree
        self._looks = Looks(hsm, tree)
        self._calm = calm
        self._save = save
        self._wall = wall
        self.done: dict[bytes, Scan] = {}
        """The last whole scan of each path."""
        self.under_way: dict[bytes, Scan] = {}

    def load(self, path: bytes, text: str) -> None:
        """Take up what earlier scans have counted."""
        state = json.loads(text)
        for name, scans in (("done", self.done), ("under_way", self.under_way)):
            if state[name] is not None:
                scans[path] = Scan(**state[name])

    def is_due(self, path: bytes, every: float) -> bool:
        """Whether a path's scan was cut short, or was begun `every` seconds ago, or never."""
        scan = self.done.get(path)
        return path in self.under_way or scan is None or self._wall() - scan.started >= every

    async def scan(self, path: bytes, rate: float) -> Scan:
        """Count a path, at most `rate` files a second. Raises what resolving it raises, and HUNG.

        However it ends, how far it has come is stored.
        """
        scan = replace(self.under_way.get(path) or Scan(self._wall()))
        try:
            mount = await self._count(path, scan, _Pace(rate))
            self.under_way.pop(path, None)
            self.done[path] = scan = replace(scan, ended=self._wall(), after="", mount=mount)
        finally:
            self._store(path)
        return scan

    async def _count(self, path: bytes, scan: Scan, pace: _Pace) -> str:
        """Count what is left of a scan; returns the mount point that the files are on."""
        after, folder = scan.after and _place(os.fsencode(scan.after)), b""
        saved = pace.now()
        selection = Selection(self._tree, [path], whole=True)
        async for batch in selection.batches():
            await self._calm.wait()
            entries = list(named(batch))
            await pace.spend(len(entries))
            if after and _place(batch.folder) <= after:
                continue
            if batch.folder != folder:
                if folder:  # whole now, so that a scan that is cut short can go on behind it
                    self.under_way[path] = replace(scan, after=os.fsdecode(folder))
                folder = batch.folder
                if pace.now() - saved >= _SAVE_EVERY:
                    saved = pace.now()
                    self._store(path)
            for start in range(0, len(entries), AT_ONCE):
                await self._look(scan, entries[start : start + AT_ONCE], pace)
        return label(next(iter(selection.mounts.values()), b""))

    def numbers(self) -> dict[bytes, dict[str, object]]:
        """What the last whole scan of each path has counted."""
        return {path: asdict(scan) for path, scan in self.done.items()}

    def _store(self, path: bytes) -> None:
        done, under_way = self.done.get(path), self.under_way.get(path)
        state = {"done": done and asdict(done), "under_way": under_way and asdict(under_way)}
        self._save(path, json.dumps(state))

    async def _look(self, scan: Scan, entries: list[Entry], pace: _Pace) -> None:
        await self._calm.wait()
        await pace.spend(len(entries))
        answers = await self._looks.states_or_released([entry.path for entry in entries])
        for entry, answer in zip(entries, answers, strict=True):
            if isinstance(answer, Trouble):
                scan.unknown_files += 1
            elif isinstance(answer, Flags):
                scan.count_flags(entry.size, answer)
            else:
                scan.unread_files += 1
                scan.count(entry.size, released=answer)


def _place(folder: bytes) -> list[bytes]:
    """Where a folder stands in a walk's order: by its names, its own files before those of folders in it."""
    return [name for name in folder.split(b"/") if name]


class _Pace:
    """Keeps a rate: what has been spent is waited for."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self.now = asyncio.get_running_loop().time
        self._free_at = 0.0

    async def spend(self, calls: int) -> None:
        now = self.now()
        self._free_at = max(self._free_at, now) + calls / self._rate
        await asyncio.sleep(self._free_at - now)
