"""Releasing the oldest files until there is room."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from fsxwarm.engine.crew import Crew
from fsxwarm.engine.release import Releaser, named
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Entry, Key, Trouble
from fsxwarm.model.eviction import AgeHistogram, Cut
from fsxwarm.model.hsm import MAX_REQUEST
from fsxwarm.model.units import Amount
from fsxwarm.ports.hsm import CallHungError, Hsm, Space

_PARALLEL: Final = 4
_SETTLES: Final = 10.0
"""Seconds without more free space after which released space is taken to have shown up (OSTs destroy objects late)."""
_POLL: Final = 1.0


@dataclass(frozen=True, slots=True)
class Room:
    """How much space there was and is, and how much was wanted, in bytes. `gained` is what the releases brought."""

    total: int
    wanted: int
    before: int
    after: int
    gained: int

    @property
    def reached(self) -> bool:
        """Whether the wanted space is free, or will be once the servers have given back what was released."""
        return self.before + self.gained >= self.wanted


class MakeRoom:
    """Releases the oldest files of `selection` (a fresh one for each walk) until `target` is free.

    A round takes two walks: one fills an age histogram, from which the age is known that the files must have; the
    other releases them. Sizes say how much that should bring; sparse and compressed files bring less, and some files
    must be left alone, so free space is measured and another round begins among the next older ones if it falls short.
    `age` tells when a file was last of use (seconds since the epoch); None: not to be released now.
    """

    def __init__(
        self,
        hsm: Hsm,
        releaser: Releaser,
        selection: Callable[[], Selection],
        *,
        target: Amount,
        mount: bytes,
        used_before: int | None = None,
        age: Callable[[Entry], int | None] = lambda entry: entry.used,
    ) -> None:
        self._age = age
        self._hsm = hsm
        self._releaser = releaser
        self._selection = selection
        self._target = target
        self._mount = mount
        self._used_before = used_before
        self._after: int | None = None
        self._tried: set[Key] = set()
        self._surveyed = False

    async def run(self) -> Room:
        """Work until there is room or nothing more can be released. Raises what `measure` raises."""
        start = await measure(self._hsm, self._mount)
        wanted = self._target.of(start.total)
        gained = 0
        while (need := wanted - start.free - gained) > 0:
            released = self._releaser.result.released.bytes
            share = min(gained / released, 1.0) if gained and released else 1.0
            sizes = int(need / share)
            histogram = await self._survey()
            if not histogram.files:
                break
            await self._sweep(histogram.cut(sizes), sizes)
            gained = await self._settled(start, need + gained)
        end = await measure(self._hsm, self._mount)
        return Room(start.total, wanted, start.free, end.free, gained)

    async def _survey(self) -> AgeHistogram:
        histogram = AgeHistogram()
        async for entry, used in self._candidates():
            histogram.add(used, entry.size)
        return histogram

    async def _sweep(self, cut: Cut, sizes: int) -> None:
        """Release what the cut says: `sizes` bytes by the files' sizes, the oldest first where it matters."""
        tally = self._releaser.result.released
        goal = tally.bytes + sizes
        ready: list[Entry] = []
        held: list[tuple[int, bytes, Entry]] = []
        async with Crew(_PARALLEL) as crew:
            async for entry, used in self._candidates():
                if used < cut.first:
                    ready.append(entry)
                elif used <= cut.last:
                    held.append((used, entry.path, entry))
                if len(ready) == MAX_REQUEST:
                    await crew.start(self._releaser.release(ready))
                    ready = []
            if ready:
                await crew.start(self._releaser.release(ready))
        held.sort(reverse=True)
        tried: list[tuple[int, Key]] = []
        while held and tally.bytes < goal:
            some: list[Entry] = []
            while held and len(some) < MAX_REQUEST and sum(entry.size for entry in some) < goal - tally.bytes:
                used, _, entry = held.pop()
                some.append(entry)
                tried.append((used, entry.key))
            await self._releaser.release(some)
        self._after = held[-1][0] - 1 if held else cut.last
        self._tried = {key for used, key in tried if used > self._after}

    async def _candidates(self) -> AsyncIterator[tuple[Entry, int]]:
        result = self._releaser.result
        first = self._after is None and not self._surveyed
        self._surveyed = True
        async for batch in self._selection().batches():
            if first:
                result.vanished += result.troubles.take(batch)
            for entry in named(batch):
                if not entry.proves_resident or (used := self._age(entry)) is None:
                    continue
                if self._used_before is not None and used >= self._used_before:
                    if first:
                        result.recent.add(entry.size)
                elif (self._after is None or used > self._after) and entry.key not in self._tried:
                    yield entry, used

    async def _settled(self, start: Space, goal: int) -> int:
        """Wait until releases have brought `goal` bytes, or nothing more shows up; returns what they brought."""
        result = self._releaser.result
        if result.dry_run:
            return result.released.bytes
        goal = min(goal, result.released.bytes)
        loop = asyncio.get_running_loop()
        best, since = -1, loop.time()
        while True:
            free = (await measure(self._hsm, self._mount)).free
            gained = max(result.used, free - start.free)
            if gained > best:
                best, since = gained, loop.time()
            if gained >= goal or loop.time() - since >= _SETTLES:
                return gained
            await asyncio.sleep(_POLL)


async def measure(hsm: Hsm, mount: bytes) -> Space:
    """Measure free space; FsxwarmError when nobody tells."""
    try:
        space = await hsm.space(mount)
    except CallHungError as error:
        raise FsxwarmError(Kind.HUNG, str(error)) from None
    if isinstance(space, Trouble):
        raise FsxwarmError(Kind.UNREADABLE, f"free space cannot be measured: {space.text or os.strerror(space.errno)}")
    return space
