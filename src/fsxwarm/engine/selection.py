"""Which files a command is about: paths, a list and filters become one stream, each file once."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from fsxwarm.engine.addresses import Addresses, mapped, mapped_list
from fsxwarm.engine.order import Order, in_order
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.filesystems import describe, is_lustre_client
from fsxwarm.ports.tree import Batch, Filters, Place, Tree

NAMED: Final = 10
"""How many of the missing list entries are kept by name."""

NOT_ON_LUSTRE: Final = errno.ENOTTY
"""The errno of a list entry that lies elsewhere, as lfs has it."""

_RESOLVE_AT_ONCE: Final = 64
_FILES_AT_ONCE: Final = 1000
_FOLDERS_REMEMBERED: Final = 10_000
_GONE: Final = (errno.ENOENT, errno.ENOTDIR)


@dataclass(slots=True)
class Unusable:
    """List entries that cannot be taken: how many, and the first of them."""

    count: int = 0
    first: list[bytes] = field(default_factory=list)

    def add(self, path: bytes) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(path)


class _Seen:
    """The files that were handed on, by identity."""

    def __init__(self) -> None:
        self._inodes: dict[int, set[int]] = {}

    def add(self, entry: Entry) -> bool:
        """Remember a file; False when it was there already."""
        inodes = self._inodes.setdefault(entry.dev, set())
        before = len(inodes)
        inodes.add(entry.ino)
        return len(inodes) > before


class Selection:
    """The files under `paths` (absolute) and in `listed` (chunks of absolute paths), in that order, each once.

    Hard links are one file. Duplicate paths, and paths inside a folder that is given too, are dropped. With `whole`
    every file is an entry; without it files that a stat proves resident come as `Resident` runs. Memory does not
    grow with the walk (only hard-linked files are remembered), unless there is a list: then each file is, because
    a list may name it again. S3 addresses may stand for paths where `addresses` knows what they mean.
    """

    def __init__(
        self,
        tree: Tree,
        paths: Sequence[bytes],
        *,
        listed: AsyncIterator[Sequence[bytes]] | None = None,
        filters: Filters | None = None,
        whole: bool = False,
        order: Order = Order.LISTED,
        addresses: Addresses | None = None,
    ) -> None:
        self.tree = tree
        self._paths = paths
        self._listed = listed
        self._filters = filters or Filters()
        self._whole = whole
        self._order = order
        self._addresses = addresses
        self._places: tuple[Place, ...] | None = None
        self._seen = _Seen()
        self._on_lustre = _OnLustre(tree)
        self.missing = Unusable()
        """List entries that do not exist."""
        self.outside = Unusable()
        """List entries that are not on Lustre."""
        if listed is not None and addresses is not None:
            self._listed = mapped_list(listed, addresses, self.outside.add)

    async def resolve(self) -> tuple[Place, ...]:
        """Find the places that `paths` mean, without duplicates and nested ones. May be called at any time.

        Raises FsxwarmError NO_SUCH_PATH, NO_PERMISSION, NOT_LUSTRE, HUNG or USAGE for the first bad path.
        """
        if self._places is None:
            places: list[Place] = []
            paths = self._paths if self._addresses is None else await mapped(self._paths, self._addresses)
            for start in range(0, len(paths), _RESOLVE_AT_ONCE):
                some = paths[start : start + _RESOLVE_AT_ONCE]
                found = await asyncio.gather(*map(self.tree.resolve, some))
                places += [_usable(path, place) for path, place in zip(some, found, strict=True)]
            for place in places:
                self._on_lustre.learn(place)
            self._places = _without_nested(places)
        return self._places

    async def batches(self) -> AsyncIterator[Batch]:
        """Walk it all, once: a list can be read only once. Raises what `resolve` raises."""
        await self.resolve()
        async for batch in in_order(self._unsorted(), self._order):
            yield batch

    @property
    def mounts(self) -> dict[int, bytes]:
        """The file systems that files were found on so far: st_dev and mount point."""
        return dict(sorted(self._on_lustre.mounts))

    async def _unsorted(self) -> AsyncIterator[Batch]:
        async for batch in self._given():
            yield self._once(batch)
        if self._listed is not None:
            async for batch in self._from_list(self._listed):
                yield self._once(batch)

    async def _given(self) -> AsyncIterator[Batch]:
        whole = self._whole or self._listed is not None
        for is_dir, places in groupby(await self.resolve(), key=lambda place: place.is_dir):
            if is_dir:
                for place in places:
                    async for batch in self.tree.walk(place, self._filters, whole=whole):
                        yield batch
            else:
                files = chunked([place.path for place in places])
                async for batch in self.tree.listed(files, self._filters, whole=whole):
                    yield batch

    async def _from_list(self, listed: AsyncIterator[Sequence[bytes]]) -> AsyncIterator[Batch]:
        chunks: deque[Sequence[bytes]] = deque()

        async def noted() -> AsyncIterator[Sequence[bytes]]:
            async for chunk in listed:
                chunks.append(chunk)
                yield chunk

        walked: set[bytes] = set()
        async for batch in self.tree.listed(noted(), self._filters, whole=True):
            part, folders = await self._sorted_out(batch)
            items = deque(part.items)
            part.items = []
            for path in chunks.popleft():
                while items and isinstance(items[0], Entry) and items[0].path == path:
                    part.items.append(items.popleft())
                if path in folders and path not in walked:
                    walked.add(path)
                    yield part
                    part = Batch(b"")
                    async for inner in self._folder_in_list(path):
                        yield inner
            part.items += items
            yield part

    async def _sorted_out(self, batch: Batch) -> tuple[Batch, set[bytes]]:
        """Count what a list has no business naming; return the rest, and the folders in it."""
        part = Batch(batch.folder, skipped=batch.skipped)
        folders: set[bytes] = set()
        for item in batch.items:
            if isinstance(item, Resident) or await self._on_lustre(item):
                part.items.append(item)
            else:
                part.troubles.append(self._elsewhere(item.path))
        for trouble in batch.troubles:
            if trouble.errno == errno.EISDIR:
                folders.add(trouble.path)
                continue
            if trouble.errno in _GONE:
                self.missing.add(trouble.path)
            part.troubles.append(trouble)
        return part, folders

    async def _folder_in_list(self, path: bytes) -> AsyncIterator[Batch]:
        place = await self.tree.resolve(path)
        if isinstance(place, Trouble):
            yield Batch(b"", troubles=[place])
        elif not is_lustre_client(place.fstype, place.source):
            yield Batch(b"", troubles=[self._elsewhere(path)])
        else:
            self._on_lustre.learn(place)
            async for batch in self.tree.walk(place, self._filters, whole=True):
                yield batch

    def _elsewhere(self, path: bytes) -> Trouble:
        self.outside.add(path)
        return Trouble(path, NOT_ON_LUSTRE, "not on FSx for Lustre")

    def _once(self, batch: Batch) -> Batch:
        """Drop files that came before, and fold proven residents into runs unless all are wanted."""
        items: list[Entry | Resident] = []
        for item in batch.items:
            if isinstance(item, Entry):
                if (item.nlink > 1 or self._listed is not None) and not self._seen.add(item):
                    continue
                if not self._whole and item.proves_resident:
                    _count(items, Resident(1, item.size))
                    continue
                items.append(item)
            else:
                _count(items, item)
        batch.items = items
        return batch


class _OnLustre:
    """Tells whether listed files are on a Lustre client's mount, asking once a folder at most."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._folders: dict[bytes, bool] = {}
        self.mounts: set[tuple[int, bytes]] = set()

    def learn(self, place: Place) -> None:
        self.mounts.add((place.dev, place.mount))

    async def __call__(self, entry: Entry) -> bool:
        if any(entry.dev == dev and _is_below(entry.path, mount) for dev, mount in self.mounts):
            return True
        folder = _parent(entry.path)
        known = self._folders.get(folder)
        if known is None:
            place = await self._tree.resolve(folder)
            known = not isinstance(place, Trouble) and is_lustre_client(place.fstype, place.source)
            if known and not isinstance(place, Trouble):
                self.learn(place)
            if len(self._folders) >= _FOLDERS_REMEMBERED:
                self._folders.clear()
            self._folders[folder] = known
        return known


def _usable(path: bytes, place: Place | Trouble) -> Place:
    name = os.fsdecode(path)
    if isinstance(place, Trouble):
        why = f"{name}: {place.text or os.strerror(place.errno)}"
        if place.errno in (errno.EACCES, errno.EPERM):
            raise FsxwarmError(Kind.NO_PERMISSION, why, path=name)
        if place.errno == errno.ETIMEDOUT:
            raise FsxwarmError(Kind.HUNG, f"{name}: the file system does not answer", path=name)
        if place.errno in (*_GONE, errno.ENAMETOOLONG, errno.ELOOP):
            raise FsxwarmError(Kind.NO_SUCH_PATH, why, path=name)
        raise FsxwarmError(Kind.UNREADABLE, why, path=name)
    if not is_lustre_client(place.fstype, place.source):
        what = describe(place.fstype, place.source)
        raise FsxwarmError(Kind.NOT_LUSTRE, f"{name} is not on FSx for Lustre but on {what}", path=name)
    if not (place.is_dir or place.is_file):
        raise FsxwarmError(Kind.USAGE, f"{name} is neither a file nor a folder", hint="", path=name)
    return place


def _without_nested(places: Iterable[Place]) -> tuple[Place, ...]:
    unique = {place.path: place for place in places}
    folders = {path: place.dev for path, place in unique.items() if place.is_dir}
    return tuple(
        place for place in unique.values() if not any(folders.get(up) == place.dev for up in _parents(place.path))
    )


def _parents(path: bytes) -> Iterable[bytes]:
    while (up := _parent(path)) != path:
        yield up
        path = up


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0] or b"/"


def _is_below(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder.rstrip(b"/") + b"/")


def _count(items: list[Entry | Resident], run: Resident) -> None:
    if items and isinstance(items[-1], Resident):
        last = items[-1]
        items[-1] = Resident(last.files + run.files, last.bytes + run.bytes)
    else:
        items.append(run)


async def chunked(paths: Sequence[bytes]) -> AsyncIterator[Sequence[bytes]]:
    """A list, some of it at a time."""
    for start in range(0, len(paths), _FILES_AT_ONCE):
        yield paths[start : start + _FILES_AT_ONCE]
