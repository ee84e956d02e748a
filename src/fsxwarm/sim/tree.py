"""The Tree port over names in memory."""

from __future__ import annotations

import asyncio
import errno
import stat
from collections.abc import AsyncIterator, Sequence
from typing import Final

from fsxwarm.model.entry import Entry, Resident, Trouble, stat_proves_resident
from fsxwarm.model.patterns import matcher
from fsxwarm.ports.tree import Batch, Filters, Place, Stat, not_regular
from fsxwarm.sim import lookup
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.faults import CallFault
from fsxwarm.sim.inodes import Folder, Inode, LustreFile
from fsxwarm.sim.lfs.kernel import Kind
from fsxwarm.sim.namespace import VirtualNamespace

_BATCH: Final = 1000
_LOCAL: Final = ("ext4", b"/", "/dev/sda1")


class _Wanted:
    """What a walk's filters want."""

    def __init__(self, filters: Filters) -> None:
        self.name = matcher(filters.include, filters.exclude)
        self._shard = filters.shard

    def owns(self, inode: Inode) -> bool:
        """Whether it is this shard's; a folder is everybody's."""
        return self._shard is None or isinstance(inode, Folder) or self._shard.owns(inode.ino)


class SimTree:
    """Walks and stats for one caller. What does not answer within `deadline` seconds is given up."""

    def __init__(
        self, clockwork: Clockwork, names: VirtualNamespace, caller: Caller = ROOT, *, deadline: float = 30.0
    ) -> None:
        self._clockwork = clockwork
        self._world = clockwork.world
        self._names = names
        self._caller = caller
        self._deadline = deadline
        self._abandoned = 0

    @property
    def abandoned(self) -> int:
        """How many calls never came back."""
        return self._abandoned

    async def close(self) -> None:
        """See the port."""

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        if not await self._answers("resolve", 1):
            return _hung(path)
        try:
            real, inode = self._names.real_path(path, self._caller)
        except OSError as error:
            return _trouble(path, error)
        fstype, mount, source = _LOCAL
        if inode.mount is not None:
            fstype, mount, source = "lustre", inode.mount.path, self._names.source
        return Place(real, inode.kind is Kind.FOLDER, inode.kind is Kind.FILE, inode.dev, fstype, mount, source)

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        wanted = _Wanted(filters)
        try:
            top = self._names.find(root.path, self._caller)
        except OSError as error:
            yield Batch(root.path, troubles=[_trouble(root.path, error)])
            return
        if not isinstance(top, Folder):
            yield Batch(root.path, troubles=[_trouble(root.path, lookup.failure(errno.ENOTDIR, root.path))])
            return
        todo = [_Visit(top, root.path, b"")]
        while todo:
            visit = todo.pop()
            async for batch in self._folder(visit, wanted, whole=whole):
                yield batch
            todo += reversed(visit.below)

    async def _folder(self, visit: _Visit, wanted: _Wanted, *, whole: bool) -> AsyncIterator[Batch]:
        """Read one folder, batch by batch."""
        batch = Batch(visit.path)
        if not await self._answers("walk", 0):
            batch.troubles.append(_hung(visit.path))
        elif not lookup.may(self._caller, visit.folder, lookup.READ):
            batch.troubles.append(_trouble(visit.path, lookup.failure(errno.EACCES, visit.path)))
        else:
            searchable = lookup.may(self._caller, visit.folder, lookup.SEARCH)
            names = sorted(name for name, inode in visit.folder.entries.items() if wanted.owns(inode))
            for at in range(0, len(names), _BATCH):
                some = names[at : at + _BATCH]
                await self._stats(len(some))
                for name in some:
                    if searchable:
                        visit.meet(name, wanted, batch, whole=whole)
                    else:
                        path = visit.prefix + name
                        batch.troubles.append(_trouble(path, lookup.failure(errno.EACCES, path)))
                yield batch
                batch = Batch(visit.path)
            if names:
                return
        yield batch

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port. Patterns see the path without its leading slash."""
        wanted = _Wanted(filters)
        async for chunk in paths:
            batch = Batch(b"")
            answers = await self._answers("walk", len(chunk))
            for path in chunk:
                if not answers:
                    batch.troubles.append(_hung(path))
                    continue
                try:
                    found = self._names.find(path, self._caller, follow=False)
                except OSError as error:
                    batch.troubles.append(_trouble(path, error))
                    continue
                if not wanted.owns(found):
                    continue
                if isinstance(found, Folder):
                    batch.troubles.append(_trouble(path, lookup.failure(errno.EISDIR, path)))
                elif not wanted.name(path.lstrip(b"/"), False):
                    continue
                elif isinstance(found, LustreFile):
                    _add(batch, found, path, whole=whole)
                else:
                    batch.troubles.append(not_regular(path, is_link=True))
            yield batch

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        if not await self._answers("stat", len(paths)):
            return [_hung(path) for path in paths]
        if self._world.spec.costs.per_queued:
            nodes = (file.node for file in self._names.files(paths))
            await asyncio.sleep(self._world.search_time(nodes, self._clockwork.now(), log=False))
        return [self._stat(path) for path in paths]

    def _stat(self, path: bytes) -> Stat | Trouble:
        try:
            found: Inode = self._names.find(path, self._caller, follow=False)
        except OSError as error:
            return _trouble(path, error)
        if isinstance(found, LustreFile):
            return Stat(found.dev, found.ino, found.size, found.blocks)
        return Stat(found.dev, found.ino, len(found.target), 0)

    async def _answers(self, kind: str, files: int) -> bool:
        """Let the time pass that stats take; False if they never come back."""
        self._world.counts[f"{kind} calls"] += 1
        fault = self._world.faults.on_call(kind, self._clockwork.now())
        if fault in {CallFault.HANG, CallFault.HANG_AFTER}:
            self._abandoned += 1
            await asyncio.sleep(self._deadline)
            return False
        await self._stats(files)
        return True

    async def _stats(self, files: int) -> None:
        self._world.counts["getattr"] += files
        await asyncio.sleep(self._world.spec.costs.stat * files)
        self._world.advance(self._clockwork.now())


class _Visit:
    """A folder of a walk: where it is, where that is below the walk's root, and which folders in it come next."""

    __slots__ = ("below", "folder", "inside", "path", "prefix")

    def __init__(self, folder: Folder, path: bytes, inside: bytes) -> None:
        self.folder = folder
        self.path = path
        self.inside = inside
        self.prefix = path.rstrip(b"/") + b"/"
        self.below: list[_Visit] = []

    def meet(self, name: bytes, wanted: _Wanted, batch: Batch, *, whole: bool) -> None:
        """Look at one name of the folder."""
        found = self.folder.entries.get(name)
        inside = self.inside + name
        if found is None:
            return  # gone since the folder was read
        if isinstance(found, LustreFile):
            if wanted.name(inside, False):
                _add(batch, found, self.prefix + name, whole=whole)
        elif not isinstance(found, Folder) or found.dev != self.folder.dev:
            batch.skipped += 1
        elif wanted.name(inside, True):
            self.below.append(_Visit(found, self.prefix + name, inside + b"/"))


def _add(batch: Batch, file: LustreFile, path: bytes, *, whole: bool) -> None:
    size, blocks = file.size, file.blocks
    if whole or file.nlink > 1 or not stat_proves_resident(size, blocks):
        mode = file.mode | stat.S_IFREG
        batch.items.append(
            Entry(
                path, file.dev, file.ino, size, blocks, file.mtime, file.atime, file.ctime, file.nlink, file.uid, mode
            )
        )
    elif batch.items and isinstance(last := batch.items[-1], Resident):
        batch.items[-1] = Resident(last.files + 1, last.bytes + size)
    else:
        batch.items.append(Resident(1, size))


def _trouble(path: bytes, error: OSError) -> Trouble:
    return Trouble(path, error.errno or errno.EIO, error.strerror or "")


def _hung(path: bytes) -> Trouble:
    return Trouble(path, errno.ETIMEDOUT, "no answer")
