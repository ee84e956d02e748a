"""The Tree port: walks and stats, done in helper processes; this process never touches the files."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fsxwarm.lustre.depth_first import DepthFirst
from fsxwarm.lustre.helper import LINK, UNWANTED
from fsxwarm.lustre.jobs import Job, Names
from fsxwarm.lustre.mounts import mount_of, read_mounts
from fsxwarm.lustre.pool import PROGRAM, Pool, Rights
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.patterns import compile_globs
from fsxwarm.ports.tree import Batch, Filters, Place, Stat, not_regular

if TYPE_CHECKING:
    from fsxwarm.lustre.helper import Options

_STATS: Final = 500
"""Paths that one helper looks up in one go."""
_LOOKUPS: Final = 4
"""Lookups that one helper does at a time."""


class HelperTree:
    """See `fsxwarm.ports.tree.Tree`. `mounts` is the mount table's file; `deadline` in seconds, per call.

    `helpers` processes; with `max_abandoned` of them that hang and do not die, calls raise FsxwarmError HUNG. `rights`
    says whose rights apply (None: our own). `program` is what helpers run, and `kill` ends them.
    """

    def __init__(
        self,
        mounts: str = "/proc/self/mounts",
        *,
        helpers: int = 2,
        deadline: float = 30.0,
        max_abandoned: int = 4,
        rights: Rights | None = None,
        program: str = PROGRAM,
        kill: Callable[[int, int], None] = os.kill,
    ) -> None:
        self._mounts = mounts
        self._pool = Pool(helpers, _LOOKUPS, deadline, max_abandoned, rights=rights, program=program, kill=kill)

    @property
    def abandoned(self) -> int:
        """Helpers that were to die and have not yet: a call in them hangs in the kernel."""
        return self._pool.abandoned

    @property
    def pids(self) -> list[int]:
        """The helpers' process ids."""
        return self._pool.pids

    async def close(self) -> None:
        """End the helpers."""
        await self._pool.close()

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        answer = await (await self._pool.give(Job("resolve", path))).answer()
        if isinstance(answer, int):
            return _trouble(path, answer)
        real, mode, dev = answer
        mount = mount_of(read_mounts(self._mounts), real)
        if mount is None:
            return Place(real, stat.S_ISDIR(mode), stat.S_ISREG(mode), dev, "", b"/", "")
        return Place(real, stat.S_ISDIR(mode), stat.S_ISREG(mode), dev, mount.fstype, mount.path, mount.source)

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        parts = [paths[start : start + _STATS] for start in range(0, len(paths), _STATS)]
        jobs = [await self._pool.give(Names("stat", part)) for part in parts]
        answers = [answer for job in jobs for answer in await job.answer()]
        return [
            _trouble(path, answer) if isinstance(answer, int) else Stat(*answer)
            for path, answer in zip(paths, answers, strict=True)
        ]

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port. Patterns see the path without its leading slash."""
        options = _options(0, filters, whole=whole)
        ahead: deque[tuple[Sequence[bytes], Names]] = deque()
        async for chunk in paths:
            ahead.append((chunk, await self._pool.give(Names("list", chunk, options))))
            if len(ahead) > 2 * self._pool.helpers:
                yield await _listed(*ahead.popleft())
        while ahead:
            yield await _listed(*ahead.popleft())

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        options = _options(root.dev, filters, whole=whole)
        walk = DepthFirst(self._pool, root.path, options)
        try:
            async for inside, (items, skipped, errno) in walk.parts():
                folder = root.path.rstrip(b"/") + b"/" + inside if inside else root.path
                batch = _batch(folder, items, skipped)
                if errno:
                    batch.troubles.append(_trouble(folder, errno))
                yield batch
        finally:
            walk.end()


def _options(dev: int, filters: Filters, *, whole: bool) -> Options:
    share = None if filters.shard is None else (filters.shard.index, filters.shard.count)
    return dev, compile_globs(filters.include), compile_globs(filters.exclude), whole, share


def _trouble(path: bytes, errno: int) -> Trouble:
    return Trouble(path, errno, os.strerror(errno))


def _batch(folder: bytes, items: list[tuple[Any, ...]], skipped: int) -> Batch:
    batch = Batch(folder, skipped=skipped)
    prefix = folder.rstrip(b"/") + b"/"
    for item in items:
        if len(item) > 2:  # noqa: PLR2004 - a name and a stat
            batch.items.append(Entry(prefix + item[0], *item[1:]))
        elif isinstance(item[0], bytes):
            batch.troubles.append(_trouble(prefix + item[0], item[1]))
        else:
            batch.items.append(Resident(*item))
    return batch


async def _listed(paths: Sequence[bytes], job: Names) -> Batch:
    batch = Batch(b"")
    for path, answer in zip(paths, await job.answer(), strict=True):
        if not isinstance(answer, int):
            batch.items.append(Resident(1, answer[0]) if len(answer) == 1 else Entry(path, *answer))
        elif answer > 0:
            batch.troubles.append(_trouble(path, answer))
        elif answer != UNWANTED:
            batch.troubles.append(not_regular(path, is_link=answer == LINK))
    return batch
