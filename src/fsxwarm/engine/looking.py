"""Carrying out looks: one instruction becomes calls to the ports, and every result or error becomes a sight."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fsxwarm.model.diagnosis import GONE
from fsxwarm.model.entry import Entry, Key, Trouble, stat_proves_resident
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.messages import Look, Sight
from fsxwarm.ports.hsm import CallHungError, Hsm
from fsxwarm.ports.tree import Stat, Tree

_STAT_PATIENCE: Final = 2.0
"""Seconds that a stat may take which is made only to learn from: what else was seen would be old news by then."""


class Looker:
    """Looks at files through the ports; `cost` counts the files looked at, by way of looking.

    Not `stat_settles`: on this client a stat may block while the file's restore goes on, and none is made to learn
    what stats prove.
    """

    def __init__(self, tree: Tree, hsm: Hsm, *, stat_settles: bool = True) -> None:
        self._tree = tree
        self._hsm = hsm
        self._stat_settles = stat_settles
        self.cost: Counter[Look] = Counter()

    async def look(self, how: Look, files: Sequence[Entry]) -> dict[Key, Sight]:
        """Look at files; one that could not be looked at has its trouble as its sight.

        Raises FsxwarmError only where no further call makes sense (no lfs, too many calls hang).
        """
        paths = [entry.path for entry in files]
        if how is not Look.BOTH:
            self.cost[how] += len(files)
        try:
            sights = await self._sights(how, files, paths)
        except CallHungError as hung:
            late = [Sight(trouble=Trouble(path, errno.ETIMEDOUT, str(hung))) for path in paths]
            return {entry.key: sight for entry, sight in zip(files, late, strict=True)}
        if how is not Look.STAT:
            await self._doubt(files, sights)
        return {entry.key: sight for entry, sight in zip(files, sights, strict=True)}

    async def _doubt(self, files: Sequence[Entry], sights: list[Sight]) -> None:
        """Look for files that are said to be gone: an `lfs` that finds nothing must not empty the tree.

        Where a stat finds the same file, the trouble becomes EIO.
        """
        gone = [at for at, sight in enumerate(sights) if sight.trouble is not None and sight.trouble.errno in GONE]
        if not gone:
            return
        stats = await self._tree.stat([files[at].path for at in gone])
        for at, stat in zip(gone, stats, strict=True):
            trouble = sights[at].trouble
            if trouble is not None and isinstance(stat, Stat) and (stat.dev, stat.ino) == files[at].key:
                text = f"it is there, but a look at it says: {trouble.text or os.strerror(trouble.errno)}"
                sights[at] = Sight(trouble=Trouble(files[at].path, errno.EIO, text))

    async def _sights(self, how: Look, files: Sequence[Entry], paths: list[bytes]) -> list[Sight]:
        keys = [entry.key for entry in files]
        match how:
            case Look.STAT:
                return [_by_stat(e, s) for e, s in zip(files, await self._tree.stat(paths), strict=True)]
            case Look.STATE:
                return [_by_flags(answer) for answer in await self._hsm.states(paths, keys)]
            case Look.ACTION:
                return [_by_action(answer) for answer in await self._hsm.actions(paths, keys)]
            case Look.RELEASED:
                return [_by_layout(answer) for answer in await self._hsm.released(paths)]
            case Look.BOTH:
                return await self._both(files, paths, keys)

    async def _both(self, files: Sequence[Entry], paths: list[bytes], keys: list[Key]) -> list[Sight]:
        """Read the actions, then the flags but of files that wait for their restore; stat those that are resident."""
        actions = await self._hsm.actions(paths, keys)
        unclear = [at for at, action in enumerate(actions) if isinstance(action, Trouble) or not action.waits]
        states = await self._hsm.states([paths[at] for at in unclear], [keys[at] for at in unclear]) if unclear else []
        self.cost[Look.ACTION] += len(paths)
        self.cost[Look.STATE] += len(unclear)
        sights = [_by_action(action) for action in actions]
        for at, flags in zip(unclear, states, strict=True):
            sights[at] = _together(sights[at], flags)
        warm = [at for at, sight in enumerate(sights) if sight.flags is not None and not sight.flags.released]
        if warm and self._stat_settles:
            # Would a stat have told? Only one that is made now can say: the file may have just become resident.
            self.cost[Look.STAT] += len(warm)
            with suppress(TimeoutError):  # nobody learns, then
                async with asyncio.timeout(_STAT_PATIENCE):
                    stats = await self._tree.stat([paths[at] for at in warm])
                    for at, stat in zip(warm, stats, strict=True):
                        sights[at] = replace(sights[at], resident=_by_stat(files[at], stat).resident)
        return sights


def _by_stat(entry: Entry, answer: Stat | Trouble) -> Sight:
    if isinstance(answer, Trouble):
        return Sight(trouble=answer)
    if (answer.dev, answer.ino) != entry.key:
        return Sight(trouble=Trouble(entry.path, errno.ESTALE, "another file has its name now"))
    return Sight(resident=stat_proves_resident(answer.size, answer.blocks))


def _by_flags(answer: Flags | Trouble) -> Sight:
    return Sight(trouble=answer) if isinstance(answer, Trouble) else Sight(flags=answer)


def _by_action(answer: Action | Trouble) -> Sight:
    return Sight(trouble=answer) if isinstance(answer, Trouble) else Sight(action=answer)


def _by_layout(answer: bool | Trouble) -> Sight:  # noqa: FBT001 - it is the port's answer
    return Sight(trouble=answer) if isinstance(answer, Trouble) else Sight(resident=not answer)


def _together(sight: Sight, flags: Flags | Trouble) -> Sight:
    if isinstance(flags, Trouble):
        return Sight(trouble=flags)
    return sight if sight.trouble is not None else replace(sight, flags=flags)
