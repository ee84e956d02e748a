"""Looking at files when some looks may hang or be refused."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import CallHungError, Hsm
from fsxwarm.ports.tree import Batch

T = TypeVar("T")

AT_ONCE: Final = 200
"""Files in one look."""

DENIED: Final = (errno.EACCES, errno.EPERM)
GONE: Final = (errno.ENOENT, errno.ENOTDIR)

NAMED: Final = 20
"""How many troubles are kept by name."""


@dataclass(slots=True)
class Troubles:
    """Paths at which something failed: how many, and the first of them."""

    count: int = 0
    first: list[Trouble] = field(default_factory=list)

    def add(self, trouble: Trouble) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(trouble)

    def take(self, batch: Batch) -> int:
        """Count a walk's troubles, without list entries that the selection counts itself; returns how many vanished."""
        vanished = 0
        for trouble in batch.troubles:
            if trouble.errno in GONE:
                vanished += bool(batch.folder)
            elif trouble.errno != NOT_ON_LUSTRE:
                self.add(trouble)
        return vanished


class Looks:
    """The looks of an `Hsm`, with a hung call told as a `Trouble` (ETIMEDOUT) of each of its files.

    An adapter of which too many calls hang raises FsxwarmError HUNG, which goes through.
    """

    def __init__(self, hsm: Hsm) -> None:
        self._hsm = hsm

    async def states(self, paths: Sequence[bytes]) -> list[Flags | Trouble]:
        """Read flags."""
        return await self._look(self._hsm.states, paths)

    async def actions(self, paths: Sequence[bytes]) -> list[Action | Trouble]:
        """Read actions."""
        return await self._look(self._hsm.actions, paths)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """Tell which are released, without reading rights."""
        return await self._look(self._hsm.released, paths)

    async def _look(
        self, call: Callable[[Sequence[bytes]], Awaitable[list[T | Trouble]]], paths: Sequence[bytes]
    ) -> list[T | Trouble]:
        if not paths:
            return []
        try:
            return await call(paths)
        except CallHungError as error:
            return [Trouble(path, errno.ETIMEDOUT, str(error)) for path in paths]
