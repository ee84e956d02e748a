"""Ports that act with a user's rights: one tree and one hsm a user, started when needed, ended when idle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from fsxwarm.config import Settings
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.pool import Rights
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import Identity
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Batch, Filters, Place, Stat, Tree

T = TypeVar("T")

_IDLE: Final = 60.0
"""Seconds after its last use that a user's helpers are kept for."""
_MOST_USERS: Final = 256
"""Users whose ports are remembered: they are small, their processes are not."""
_LET_THROUGH: Final = ("PATH", "LANG", "TZ", "FSXWARM_SYSTEM_CALLS")
"""Variables that users' processes get. No others: they may read them, and ours may hold secrets."""


class LustreAccess:
    """See `fsxwarm.ports.access.Access`. `tree` and `hsm` are our own, used for our own user; they stay the caller's.

    Unless we are root nobody else's rights can be taken on, and PermissionError says so. `idle` is in seconds: how long
    a user's helpers are kept after their last use. Helpers take a user's rights on themselves, and then cannot be
    traced or read by that user.
    """

    def __init__(
        self,
        tree: Tree,
        hsm: Hsm,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        helpers: int = 1,
        parallel: int = 2,
        idle: float = _IDLE,
    ) -> None:
        self._own = os.geteuid()
        self._tree = tree
        self._hsm = hsm
        self._settings = settings
        self._environ = {name: environ[name] for name in _LET_THROUGH if name in environ}
        self._helpers = helpers
        self._parallel = parallel
        self._idle = idle
        self._trees: dict[Identity, _OnDemand] = {}
        self._hsms: dict[Identity, LfsHsm] = {}

    def tree(self, identity: Identity) -> Tree:
        """A tree that is walked with this user's rights and names only files that he may read."""
        if identity.uid == self._own:
            return self._tree
        rights = self._rights(identity)
        if identity not in self._trees:
            self._forget_idle()
            self._trees[identity] = _OnDemand(lambda: self._start(rights), self._idle)
        return self._trees[identity]

    def hsm(self, identity: Identity) -> Hsm:
        """HSM calls made with this user's rights."""
        if identity.uid == self._own:
            return self._hsm
        rights = self._rights(identity)
        if identity not in self._hsms:
            self._forget_idle()
            children = Children(
                self._settings.lfs,
                self._environ,
                parallel=self._parallel,
                deadline=self._settings.call_deadline,
                rights=rights,
            )
            self._hsms[identity] = LfsHsm(children)
        return self._hsms[identity]

    @property
    def abandoned(self) -> int:
        """Helpers and children that could not be ended."""
        trees = sum(tree.abandoned for tree in self._trees.values())
        return trees + sum(hsm.abandoned for hsm in self._hsms.values())

    async def close(self) -> None:
        """End what was started for users."""
        trees = [tree.close() for tree in self._trees.values()]
        await asyncio.gather(*trees, *(hsm.close() for hsm in self._hsms.values()))

    def _rights(self, identity: Identity) -> Rights:
        if self._own != 0:
            raise PermissionError(f"only root can act for another user (uid {identity.uid})")
        gid, *groups = identity.gids
        return Rights(identity.uid, gid, tuple(groups))

    def _start(self, rights: Rights) -> HelperTree:
        deadline = self._settings.call_deadline
        return HelperTree(self._settings.mounts, helpers=self._helpers, deadline=deadline, rights=rights)

    def _forget_idle(self) -> None:
        if len(self._trees) >= _MOST_USERS:
            self._trees = {identity: tree for identity, tree in self._trees.items() if tree.running}
        if len(self._hsms) >= _MOST_USERS:
            self._hsms = {identity: hsm for identity, hsm in self._hsms.items() if hsm.running or hsm.abandoned}


class _OnDemand:
    """A tree whose helpers are started with its first use and ended some time after the last."""

    def __init__(self, start: Callable[[], HelperTree], idle: float) -> None:
        self._start = start
        self._idle = idle
        self._running: HelperTree | None = None
        self._users = 0
        self._end: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        """Whether it has helpers."""
        return self._running is not None

    @property
    def abandoned(self) -> int:
        """Helpers that could not be ended."""
        return 0 if self._running is None else self._running.abandoned

    @asynccontextmanager
    async def _use(self) -> AsyncIterator[HelperTree]:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._running is None:
            self._running = self._start()
        self._users += 1
        try:
            yield self._running
        finally:
            self._users -= 1
            if not self._users:
                self._end = asyncio.get_running_loop().call_later(self._idle, self._stop)

    def _stop(self) -> None:
        task = asyncio.create_task(self.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End the helpers."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        tree, self._running = self._running, None
        if tree is not None:
            await tree.close()

    async def resolve(self, path: bytes) -> Place | Trouble:
        """See the port."""
        return await self._with(lambda tree: tree.resolve(path))

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """See the port."""
        return await self._with(lambda tree: tree.stat(paths))

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """See the port."""
        async with self._use() as tree:
            async for batch in tree.walk(root, filters, whole=whole):
                yield batch

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """See the port."""
        async with self._use() as tree:
            async for batch in tree.listed(paths, filters, whole=whole):
                yield batch

    async def _with(self, work: Callable[[HelperTree], Awaitable[T]]) -> T:
        async with self._use() as tree:
            return await work(tree)
