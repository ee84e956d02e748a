"""A file system on paper: the Tree and Hsm ports over a dictionary, without time, agents or processes.

It answers as the ports promise and can be changed between two calls (`before` is called with a call's name). It does
not simulate queues, restores, deadlines or Lustre's versions: the simulated FSx does.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import IDLE, MAX_REQUEST, Action, Flags
from fsxwarm.ports.hsm import Ost, Reply, Space
from fsxwarm.ports.tree import Batch, Filters, Place, Stat

CLEAN = Flags.EXISTS | Flags.ARCHIVED
GONE = CLEAN | Flags.RELEASED
MOUNTS = {b"/": ("ext4", "/dev/sda1", 1), b"/fsx": ("lustre", "fs-1@tcp:/abc", 7), b"/home": ("nfs4", "nas:/home", 9)}


@dataclass
class File:
    """A file; `errno` makes reading its flags fail, `refuse` its release."""

    flags: Flags = CLEAN
    size: int = 10_000
    ino: int = 0
    used: int = 0
    nlink: int = 1
    action: Action = IDLE
    errno: int = 0
    refuse: int = 0

    @property
    def blocks(self) -> int:
        return 0 if self.flags.released or not self.size else max(2, self.size // 512)


@dataclass
class Paper:
    """A world of files by path. Folders exist where files are, and in `folders`; `closed` ones cannot be read."""

    files: dict[bytes, File]
    folders: set[bytes] = field(default_factory=set)
    closed: set[bytes] = field(default_factory=set)
    total: int = 10**9
    other: int = 0
    shows: float = 1.0
    before: Callable[[str], None] = lambda _: None
    released_paths: list[bytes] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    abandoned: int = 0

    def __post_init__(self) -> None:
        for number, (path, file) in enumerate(self.files.items(), start=1):
            file.ino = file.ino or number
            self._grow(path)
        self.folders |= set(MOUNTS)

    def _grow(self, path: bytes) -> None:
        while path not in (b"", b"/"):
            path = path.rpartition(b"/")[0] or b"/"
            self.folders.add(path)

    def _call(self, name: str, paths: Sequence[bytes]) -> None:
        self.calls.append((name, len(paths)))
        self.before(name)

    def _mount(self, path: bytes) -> bytes:
        return max((m for m in MOUNTS if path == m or path.startswith(m.rstrip(b"/") + b"/")), key=len)

    def _entry(self, path: bytes) -> Entry:
        file = self.files[path]
        dev = MOUNTS[self._mount(path)][2]
        return Entry(path, dev, file.ino, file.size, file.blocks, file.used, 0, 0, file.nlink, 0, 0o100644)

    # The Tree port

    async def resolve(self, path: bytes) -> Place | Trouble:
        if path not in self.files and path not in self.folders:
            return Trouble(path, errno.ENOENT)
        mount = self._mount(path)
        fstype, source, dev = MOUNTS[mount]
        return Place(path, path in self.folders, path in self.files, dev, fstype, mount, source)

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        base = root.path.rstrip(b"/") + b"/"
        for folder in sorted(f for f in self.folders if f == root.path or f.startswith(base)):
            if folder in self.closed:
                yield Batch(folder, troubles=[Trouble(folder, errno.EACCES)])
                continue
            paths = sorted(path for path in self.files if path.rpartition(b"/")[0] == folder.rstrip(b"/"))
            yield self._batch(folder, paths, filters, whole=whole)

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        async for chunk in paths:
            known = [path for path in chunk if path in self.files]
            batch = self._batch(b"", known, filters, whole=whole)
            for path in chunk:
                if path in self.folders:
                    batch.troubles.append(Trouble(path, errno.EISDIR))
                elif path not in self.files:
                    batch.troubles.append(Trouble(path, errno.ENOENT))
            yield batch

    def _batch(self, folder: bytes, paths: Sequence[bytes], filters: Filters, *, whole: bool) -> Batch:
        batch = Batch(folder)
        for path in paths:
            if any(path.endswith(end.lstrip("*").encode()) for end in filters.exclude):
                continue
            entry = self._entry(path)
            if filters.shard is not None and not filters.shard.owns(entry.ino):
                continue
            if not whole and entry.nlink == 1 and entry.proves_resident:
                batch.items.append(Resident(1, entry.size))
            else:
                batch.items.append(entry)
        return batch

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        self._call("stat", paths)
        return [
            Stat(entry.dev, entry.ino, entry.size, entry.blocks)
            if path in self.files and (entry := self._entry(path))
            else Trouble(path, errno.ENOENT)
            for path in paths
        ]

    async def close(self) -> None:
        pass

    # The Hsm port

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        self._call("states", paths)
        return [self._trouble(path) or self.files[path].flags for path in paths]

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        self._call("actions", paths)
        return [self._trouble(path) or self.files[path].action for path in paths]

    def _trouble(self, path: bytes) -> Trouble | None:
        if path not in self.files:
            return Trouble(path, errno.ENOENT)
        return Trouble(path, code) if (code := self.files[path].errno) else None

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        self._call("released", paths)
        return [
            self.files[path].flags.released if path in self.files else Trouble(path, errno.ENOENT) for path in paths
        ]

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        self._call("restore", paths)
        return Reply(next((self.files[path].refuse for path in paths), 0))

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        self._call("cancel", paths)
        return Reply(errno.EPERM)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        self._call("release", paths)
        assert len(paths) <= MAX_REQUEST
        if any(path not in self.files for path in paths):
            return Reply(errno.ENOENT)
        for path in paths:
            file = self.files[path]
            assert file.action.idle, "releasing a file that is being restored blocks"
            if file.refuse:
                return Reply(file.refuse)
            if not file.flags.releasable and not file.flags.released:
                return Reply(errno.EPERM)
            file.flags |= Flags.RELEASED
            self.released_paths.append(path)
        return Reply(0)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        self._call("pin", paths)
        for path in paths:
            if self._trouble(path) is None:
                flags = self.files[path].flags
                self.files[path].flags = flags | Flags.NORELEASE if on else flags & ~Flags.NORELEASE
        return [self._trouble(path) for path in paths]

    async def space(self, mount: bytes) -> Space | Trouble:
        self._call("space", [mount])
        resident = sum(file.size for file in self.files.values() if not file.flags.released)
        given = sum(self.files[path].size for path in self.released_paths)
        free = int(self.total - self.other - resident - given * (1 - self.shows))
        return Space(self.total, free, (Ost("fs-OST0000", self.total, free),))

    async def version(self) -> tuple[int, ...] | Trouble:
        return (2, 15, 8)
