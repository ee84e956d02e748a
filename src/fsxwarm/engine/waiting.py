"""Waiting, by looking, until files are resident that somebody else restores. Asks for nothing."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from fsxwarm.engine.looks import AT_ONCE, GONE, Looks, Troubles, is_released
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Key, Resident, Trouble, stat_proves_resident
from fsxwarm.model.hsm import Action
from fsxwarm.model.tally import Tally
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Stat

_STATS: Final = 2000
"""Files that one round looks at: those that come first, for without them it is not ready."""
_SOONEST, _LATEST = 1.0, 10.0
"""Seconds between two rounds: soon after something moved, late when nothing does."""
_DOUBT: Final = 60.0
"""Seconds without any file becoming resident after which it is worth saying whether somebody restores them."""
_ASKED: Final = 50


class _Cold(NamedTuple):
    """A file that is not known to be resident, and the bytes that come before it."""

    offset: int
    path: bytes
    key: Key
    size: int


class Waiting:
    """Waits until the first `share` (0 to 1) of a selection's bytes, in its order, is resident.

    The tree is walked once; then only files that are not resident yet are looked at, which are held in memory. With
    `stat_settles` a stat is a cheap sign that a restore ended (on clients from 2.15, measured); otherwise it may block.
    `say` is told, at times, when nothing moves.
    """

    def __init__(
        self, hsm: Hsm, selection: Selection, share: float, *, stat_settles: bool, say: Callable[[str], None]
    ) -> None:
        self._tree = selection.tree
        self._looks = Looks(hsm, selection.tree)
        self._selection = selection
        self._share = share
        self._stat_settles = stat_settles
        self._say = say
        self._cold: deque[_Cold] = deque()
        self._cold_bytes = 0
        self.found = Tally()
        """All files of the selection."""
        self.wanted = 0
        """Bytes of the share that is waited for; 0 until the walk has ended."""
        self.walked = False
        """Whether all files have been found, so that `left` says something."""
        self.vanished = 0
        self.troubles = Troubles()
        """Folders that could not be read: nobody knows whether what is in them is resident."""

    @property
    def left(self) -> Tally:
        """Files of the share that are not resident yet, as far as is known."""
        return Tally(len(self._cold), self._cold_bytes)

    async def run(self) -> None:
        """Return once the share is resident. Raises what resolving the selection raises, and HUNG."""
        await self._walk()
        self.walked = True
        now = asyncio.get_running_loop().time
        pause, moved, told = _SOONEST, now(), _DOUBT
        await self._round()
        while self._cold:
            await asyncio.sleep(pause)
            before = len(self._cold)
            await self._round()
            if len(self._cold) < before:
                pause, moved, told = _SOONEST, now(), _DOUBT
                continue
            pause = min(2 * pause, _LATEST)
            if now() - moved >= told:
                told *= 2
                await self._doubt(now() - moved)

    async def _walk(self) -> None:
        async for batch in self._selection.batches():
            self.vanished += self.troubles.take(batch)
            for item in batch.items:
                if isinstance(item, Resident):
                    self.found.add(item.bytes, item.files)
                    continue
                if not item.proves_resident:
                    self._cold.append(_Cold(self.found.bytes, item.path, item.key, item.size))
                self.found.add(item.size)
        self.wanted = round(self._share * self.found.bytes)
        while self._share < 1 and self._cold and self._cold[-1].offset >= self.wanted:
            self._cold.pop()
        self._cold_bytes = sum(cold.size for cold in self._cold)

    # ---- rounds ------------------------------------------------------------------------------------------------

    async def _round(self) -> None:
        """Look at files in their order, as far as all of them turn out to be resident."""
        while self._cold:
            some = [self._cold.popleft() for _ in range(min(_STATS, len(self._cold)))]
            rest = some
            try:
                rest = await self._look(some)
            finally:
                self._cold.extendleft(reversed(rest))
            self._cold_bytes -= sum(cold.size for cold in some) - sum(cold.size for cold in rest)
            if rest:
                return

    async def _look(self, some: Sequence[_Cold]) -> list[_Cold]:
        """Those of some files that are not resident. Stats prove most to be; flags are read of the others, in order."""
        unproven = await self._unproven(some) if self._stat_settles else list(some)
        for start in range(0, len(unproven), AT_ONCE):
            released = await self._released(unproven[start : start + AT_ONCE])
            if released:
                return released + unproven[start + AT_ONCE :]
        return []

    async def _unproven(self, some: Sequence[_Cold]) -> list[_Cold]:
        unproven = []
        stats = await self._tree.stat([cold.path for cold in some])
        for cold, stat in zip(some, stats, strict=True):
            if isinstance(stat, Stat):
                gone = (stat.dev, stat.ino) != cold.key
                resident = stat_proves_resident(stat.size, stat.blocks)
            else:
                gone, resident = stat.errno in GONE, False
            self.vanished += gone
            if not gone and not resident:
                unproven.append(cold)
        return unproven

    async def _released(self, some: Sequence[_Cold]) -> list[_Cold]:
        """Those that their flags do not show to be resident."""
        released: list[_Cold] = []
        states = await self._looks.states_or_released([cold.path for cold in some], [cold.key for cold in some])
        for cold, state in zip(some, states, strict=True):
            if isinstance(state, Trouble) and state.errno in (*GONE, errno.ESTALE):
                self.vanished += 1
            elif isinstance(state, Trouble) or is_released(state):
                released.append(cold)
        return released

    async def _doubt(self, seconds: float) -> None:
        """Say whether anybody restores what is waited for."""
        some = list(islice(self._cold, _ASKED))
        actions = await self._looks.actions([cold.path for cold in some], [cold.key for cold in some])
        if not any(isinstance(action, Action) and action.restoring for action in actions):
            self._say(
                f"nothing became resident for {seconds:.0f}s, and none of the first {len(some)} files that are missing"
                " is being restored: does a preload run?"
            )
