"""The Tree port: walks and stats, done in helper processes; this process never touches the files."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from fsxwarm.lustre.mounts import mount_of, read_mounts
from fsxwarm.lustre.pool import Job, Pool
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.patterns import compile_globs
from fsxwarm.ports.tree import Batch, Filters, Place, Stat

_CREDIT: Final = 4
"""Parts of a folder, a thousand records each, that are read ahead of their turn."""
_STATS: Final = 500


class HelperTree:
    """See `fsxwarm.ports.tree.Tree`. `mounts` is the mount table's file; `deadline` in seconds, per call.

    `helpers` processes with `threads` threads each; `user` is whose rights apply (None: our own).
    """

    def __init__(
        self,
        mounts: str = "/proc/self/mounts",
        *,
        helpers: int = 2,
        threads: int = 4,
        deadline: float = 30.0,
        most_abandoned: int = 4,
        user: int | None = None,
    ) -> None:
        self._mounts = mounts
        self._pool = Pool(helpers, threads, deadline, most_abandoned, user)

    @property
    def abandoned(self) -> int:
        """Helpers that could not be ended."""
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
            return Trouble(path, answer, os.strerror(answer))
        real, mode, dev = answer
        mount = mount_of(read_mounts(self._mounts), real)
        if mount is None:
            return Place(real, stat.S_ISDIR(mode), stat.S_ISREG(mode), dev, "", b"/", "")
        return Place(real, stat.S_ISDIR(mode), stat.S_ISREG(mode), dev, mount.fstype, mount.path, mount.source)

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        parts = [list(paths[start : start + _STATS]) for start in range(0, len(paths), _STATS)]
        jobs = [await self._pool.give(Job("stat", part)) for part in parts]
        answers = [answer for job in jobs for answer in await job.answer()]
        return [
            Trouble(path, answer, os.strerror(answer)) if isinstance(answer, int) else Stat(*answer)
            for path, answer in zip(paths, answers, strict=True)
        ]

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port."""
        options = (0, b"", compile_globs(filters.include), compile_globs(filters.exclude), whole)
        ahead: deque[tuple[Sequence[bytes], Job]] = deque()
        async for chunk in paths:
            ahead.append((chunk, await self._pool.give(Job("list", list(chunk), options))))
            if len(ahead) > self._pool.size:
                yield await _listed(*ahead.popleft())
        while ahead:
            yield await _listed(*ahead.popleft())

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        include, exclude = compile_globs(filters.include), compile_globs(filters.exclude)

        def job(folder: bytes) -> Job:
            inside = folder[len(root.path.rstrip(b"/")) + 1 :]
            prefix = inside + b"/" if inside else b""
            return Job("folder", folder, (root.dev, prefix, include, exclude, whole), credit=_CREDIT)

        async for batch in _DepthFirst(self._pool, job).walk(root.path):
            yield batch


class _DepthFirst:
    """Folders in sorted depth-first order, with some read ahead.

    Only so many are read ahead that each helper has a thread left: the folder whose turn it is can always be worked on,
    whatever those ahead of it wait for.
    """

    def __init__(self, pool: Pool, job: Any) -> None:
        self._pool = pool
        self._job = job
        self._most_ahead = pool.size * (pool.threads - 1)

    async def walk(self, root: bytes) -> AsyncIterator[Batch]:
        stack: list[tuple[bytes, Job | None]] = [(root, None)]  # the next folder is the last
        while stack:
            folder, begun = stack.pop()
            current = begun or await self._pool.give(self._job(folder))
            await self._read_ahead(stack)
            done = False
            while not done:
                done, *rest = await current.parts.get()
                if not done:
                    items, skipped, current.position = rest
                    yield _batch(folder, items, skipped)
                    self._pool.grant(current)
                    continue
                names, problem, elsewhere = rest
                if problem or elsewhere:
                    troubles = [Trouble(folder, problem, os.strerror(problem))] if problem else []
                    yield Batch(folder, troubles=troubles, skipped=elsewhere)
                stack += [(folder.rstrip(b"/") + b"/" + name, None) for name in reversed(names)]

    async def _read_ahead(self, stack: list[tuple[bytes, Job | None]]) -> None:
        begun = sum(job is not None for _, job in stack[-4 * self._most_ahead :])
        for place in range(len(stack) - 1, max(-1, len(stack) - 1 - self._most_ahead), -1):
            folder, job = stack[place]
            if job is None and begun < self._most_ahead:
                stack[place] = (folder, await self._pool.give(self._job(folder)))
                begun += 1


def _batch(folder: bytes, items: list[tuple[Any, ...]], skipped: int) -> Batch:
    batch = Batch(folder, skipped=skipped)
    prefix = folder.rstrip(b"/") + b"/"
    for item in items:
        if len(item) > 2:  # noqa: PLR2004 - a name and a stat
            batch.items.append(Entry(prefix + item[0], *item[1:]))
        elif isinstance(item[0], bytes):
            batch.troubles.append(Trouble(prefix + item[0], item[1], os.strerror(item[1])))
        else:
            batch.items.append(Resident(*item))
    return batch


async def _listed(paths: Sequence[bytes], job: Job) -> Batch:
    batch = Batch(b"")
    for path, answer in zip(paths, await job.answer(), strict=True):
        if not isinstance(answer, int):
            batch.items.append(Resident(1, answer[0]) if len(answer) == 1 else Entry(path, *answer))
        elif answer > 0:
            batch.troubles.append(Trouble(path, answer, os.strerror(answer)))
        elif answer == 0:
            batch.skipped += 1
    return batch
