"""Keeps room on file systems: below the low mark, releases what was used least recently until the high mark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fsxwarm.engine.make_room import MakeRoom, Room, measure
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import Marks
from fsxwarm.engine.protection import Protection, Restored
from fsxwarm.engine.release import Released, Releaser
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry
from fsxwarm.model.release import Reason
from fsxwarm.model.s3 import CheckS3

_PATIENCE: Final = 10
"""After a round that could not make enough room, so many times are let pass: a round walks the whole file system."""


class LatelyRestored(Protocol):
    """Tells which files have been restored lately."""

    async def __call__(self) -> Restored:
        """Those known now, and those that are restored while the answer is held."""
        ...


class Keeper:
    """Makes room by itself. `told` hears of each round: its marks, what was released, and how much room there is.

    Nothing is released that cannot be looked up in S3, unless the marks say otherwise.
    """

    def __init__(
        self,
        means: Means,
        protection: Protection,
        restored: LatelyRestored,
        told: Callable[[Marks, Released, Room], None],
    ) -> None:
        self._tree = means.tree
        self._hsm = means.hsm
        self._archive = means.archive
        self._protection = protection
        self._restored = restored
        self._told = told
        self._waits: dict[bytes, int] = {}
        self.short: dict[bytes, Room] = {}
        """File systems on which the last round could not reach the high mark."""

    async def look(self, marks: Sequence[Marks]) -> None:
        """Measure each file system, and make room where free space is below the low mark.

        One that cannot be measured, or whose files cannot be checked, keeps no other one waiting; the first failure is
        raised when all are done.
        """
        for mount in self.short.keys() - {each.mount for each in marks}:
            del self.short[mount]
        done = await asyncio.gather(*map(self._look_after, marks), return_exceptions=True)
        for failure in done:
            if failure is not None:
                raise failure

    async def _look_after(self, marks: Marks) -> None:
        space = await measure(self._hsm, marks.mount)
        if space.free >= marks.low.of(space.total):
            self.short.pop(marks.mount, None)
            self._waits.pop(marks.mount, None)
        elif self._waits.get(marks.mount, 0) > 0:
            self._waits[marks.mount] -= 1
        else:
            await self._make_room(marks)

    async def _make_room(self, marks: Marks) -> None:
        restored = await self._restored()

        def reason(entry: Entry) -> Reason | None:
            return Reason.WANTED if entry.ino in restored else self._protection.reason(entry.path)

        def age(entry: Entry) -> int | None:
            return None if reason(entry) is not None else int(self._protection.used(entry))

        archive = self._archive
        releaser = Releaser(
            self._tree,
            self._hsm,
            dry_run=marks.dry_run,
            guard=reason,
            keeper=archive.guard(CheckS3.AUTO) if marks.unchecked else archive.strict_guard(),
        )
        room = await MakeRoom(
            self._hsm,
            releaser,
            lambda: Selection(self._tree, [marks.mount], whole=True),
            target=marks.high,
            mount=marks.mount,
            age=age,
        ).run()
        if room.reached and not marks.dry_run:
            self.short.pop(marks.mount, None)
        else:
            self._waits[marks.mount] = _PATIENCE
            if not room.reached:
                self.short[marks.mount] = room
        self._told(marks, releaser.result, room)
