"""Looking at files when some looks may hang or be refused."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import CallHungError, Hsm
from fsxwarm.ports.tree import Batch, Tree

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

    Files that are said not to exist are looked for: a tool that finds none at all must not pass for an empty tree.
    An adapter of which too many calls hang raises FsxwarmError HUNG, which goes through.
    """

    def __init__(self, hsm: Hsm, tree: Tree) -> None:
        self._hsm = hsm
        self._tree = tree

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """Read flags."""
        return await self._look(lambda names: self._hsm.states(names, keys), paths)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """Read actions."""
        return await self._look(lambda names: self._hsm.actions(names, keys), paths)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """Tell which are released, without reading rights."""
        return await self._look(self._hsm.released, paths)

    async def states_or_released(
        self, paths: Sequence[bytes], keys: Sequence[Key] = ()
    ) -> list[Flags | bool | Trouble]:
        """Read flags; of a file whose flags may not be read, tell instead whether it is released."""
        found: list[Flags | bool | Trouble] = [*await self.states(paths, keys)]
        denied = [at for at, state in enumerate(found) if isinstance(state, Trouble) and state.errno in DENIED]
        for at, answer in zip(denied, await self.released([paths[at] for at in denied]), strict=True):
            found[at] = answer
        return found

    async def _look(
        self, call: Callable[[Sequence[bytes]], Awaitable[list[T | Trouble]]], paths: Sequence[bytes]
    ) -> list[T | Trouble]:
        if not paths:
            return []
        try:
            answers = await call(paths)
        except CallHungError as error:
            return [Trouble(path, errno.ETIMEDOUT, str(error)) for path in paths]
        return await really_gone(self._tree, answers)


def is_released(answer: Flags | bool) -> bool:  # noqa: FBT001 - what `states_or_released` tells
    """Whether a file is released, by its flags or as it was told."""
    return answer.released if isinstance(answer, Flags) else answer


async def really_gone(tree: Tree, answers: list[T | Trouble]) -> list[T | Trouble]:
    """Doubt each ENOENT: where stat finds the file, the trouble becomes EIO."""
    gone = {at: answer for at, answer in enumerate(answers) if isinstance(answer, Trouble) and answer.errno in GONE}
    if gone:
        stats = await tree.stat([trouble.path for trouble in gone.values()])
        for (at, trouble), stat in zip(gone.items(), stats, strict=True):
            if not isinstance(stat, Trouble):
                text = (
                    f"it is there, but lfs says: {trouble.text}" if trouble.text else "it is there, but lfs finds none"
                )
                answers[at] = Trouble(trouble.path, errno.EIO, text)
    return answers
