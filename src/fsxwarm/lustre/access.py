"""Ports that act with a user's rights: one tree and one hsm a user, started when needed, ended when idle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Final

from fsxwarm.config import Backend, Settings
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.backend import ChosenHsm
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.lustre.ondemand import OnDemandHsm, OnDemandTree
from fsxwarm.lustre.pool import Rights
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.job import Identity
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree

_HELPERS: Final = 1
"""Processes that look at files for a user."""
_IDLE: Final = 60.0
"""Seconds after its last use that a user's helpers are kept for."""
_MOST_USERS: Final = 256
"""Users whose ports are remembered: they are small, their processes are not."""
_LET_THROUGH: Final = ("PATH", "LANG", "TZ", "FSXWARM_SYSTEM_CALLS")
"""Variables that users' processes get. No others: they may read them, and ours may hold secrets."""


class LustreAccess:
    """See `fsxwarm.ports.access.Access`. `tree` and `hsm` are our own, used for our own user; they stay the caller's.

    Unless we are root nobody else's rights can be taken on, and PermissionError says so. Helpers take a user's rights
    on themselves, and then cannot be traced or read by that user.

    What a user's walk has found is asked for by root later, by a name that this user may have given to another file
    by then. Native calls notice that, `lfs` cannot: with `lfs` other users' ports raise FsxwarmError NOT_LUSTRE.
    """

    def __init__(self, tree: Tree, hsm: ChosenHsm, settings: Settings, environ: Mapping[str, str]) -> None:
        self._own = os.geteuid()
        self._tree = tree
        self._hsm = hsm
        self._settings = settings
        self._environ = {name: environ[name] for name in _LET_THROUGH if name in environ}
        self._lfs = LfsHsm(Children(settings.lfs, environ, deadline=settings.call_deadline))
        self._trees: dict[Identity, OnDemandTree] = {}
        self._hsms: dict[Identity, OnDemandHsm] = {}

    def tree(self, identity: Identity) -> Tree:
        """A tree that is walked with this user's rights and names only files that he may read."""
        if identity.uid == self._own:
            return self._tree
        rights = self._rights(identity)
        if identity not in self._trees:
            self._forget_idle()
            self._trees[identity] = OnDemandTree(lambda: self._start_tree(rights), _IDLE, self._allow)
        return self._trees[identity]

    def hsm(self, identity: Identity) -> Hsm:
        """HSM calls made with this user's rights."""
        if identity.uid == self._own:
            return self._hsm
        rights = self._rights(identity)
        if identity not in self._hsms:
            self._forget_idle()
            self._hsms[identity] = OnDemandHsm(lambda: self._start_hsm(rights), _IDLE, self._allow)
        return self._hsms[identity]

    @property
    def abandoned(self) -> int:
        """Helpers and children that could not be ended."""
        trees = sum(tree.abandoned for tree in self._trees.values())
        return trees + sum(hsm.abandoned for hsm in self._hsms.values()) + self._lfs.abandoned

    async def close(self) -> None:
        """End what was started for users."""
        trees = [tree.close() for tree in self._trees.values()]
        await asyncio.gather(*trees, *(hsm.close() for hsm in self._hsms.values()), self._lfs.close())

    async def _allow(self) -> None:
        choice = await self._hsm.choose()
        if choice is not None and choice.backend is Backend.LFS:
            raise FsxwarmError(
                Kind.NOT_LUSTRE,
                f"only root's own jobs are taken here, where restores are asked for by `lfs` ({choice.why}): "
                "it goes by name, and names can be swapped under its hands",
                hint="run `fsxwarm doctor` as root; warming.backend must not be lfs",
            )

    def _rights(self, identity: Identity) -> Rights:
        if self._own != 0:
            raise PermissionError(f"only root can act for another user (uid {identity.uid})")
        return Rights.of(identity)

    def _start_tree(self, rights: Rights) -> HelperTree:
        deadline = self._settings.call_deadline
        return HelperTree(self._settings.mounts, helpers=_HELPERS, deadline=deadline, rights=rights)

    def _start_hsm(self, rights: Rights) -> NativeHsm:
        return NativeHsm(
            self._lfs, self._settings.mounts, helpers=_HELPERS, deadline=self._settings.call_deadline,
            environ=self._environ, rights=rights,
        )  # fmt: skip

    def _forget_idle(self) -> None:
        if len(self._trees) >= _MOST_USERS:
            self._trees = {identity: tree for identity, tree in self._trees.items() if tree.running}
        if len(self._hsms) >= _MOST_USERS:
            self._hsms = {identity: hsm for identity, hsm in self._hsms.items() if hsm.running}
