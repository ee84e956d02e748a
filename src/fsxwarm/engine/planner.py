"""Planning a preload: how much, what S3 will refuse, whether it fits, and how long it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.atlas import Atlas, Chart
from fsxwarm.engine.estimate import Estimate, Estimator, Need
from fsxwarm.engine.folders import cut, parent
from fsxwarm.engine.intake import Sieve
from fsxwarm.engine.selection import Selection
from fsxwarm.model.association import FileSystem, may_be_fsx
from fsxwarm.model.entry import Entry
from fsxwarm.model.forecast import Forecast, Ran, forecast
from fsxwarm.model.hsm import MAX_REQUEST
from fsxwarm.model.tally import Tally
from fsxwarm.model.tier import write_rate
from fsxwarm.model.units import Amount
from fsxwarm.ports.hsm import Hsm

Seen = Callable[[bytes], Awaitable[Sequence[Ran]]]
"""Tells what earlier runs reached on the file system that is mounted at a path."""

_NOT_FSX: Final = "not mounted by the name or address of an FSx file system"


@dataclass(frozen=True, slots=True)
class Part:
    """The plan of one file system, by its mount point.

    `need` is None where free space could not be measured. `system` is None where FSx did not tell which it is, and
    `unknown` says why.
    """

    mount: bytes
    released: Tally
    need: Need | None
    system: FileSystem | None
    unknown: str
    forecast: Forecast

    @property
    def compressed(self) -> bool:
        """Whether sizes are an upper bound of the space needed."""
        return self.system is not None and self.system.compression not in {"", "NONE"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a preload would do. `folders` counts what would be restored, by folder."""

    estimate: Estimate
    folders: dict[bytes, Tally]
    parts: list[Part]

    @property
    def seconds(self) -> float:
        """How long it takes: several file systems restore side by side."""
        return max((part.forecast.seconds for part in self.parts), default=0.0)

    @property
    def requests(self) -> int:
        """Requests to Lustre that it takes at the least."""
        return sum(-(-part.released.files // MAX_REQUEST) for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether everything fits, as far as free space could be measured."""
        return self.estimate.fits

    def biggest(self, count: int) -> list[tuple[bytes, Tally]]:
        """The folders with the most to be restored, the biggest first."""
        return sorted(self.folders.items(), key=lambda item: (-item[1].bytes, -item[1].files, item[0]))[:count]


@dataclass(slots=True)
class _Folders:
    """Counts files by folder, `depth` levels below each path given."""

    selection: Selection
    depth: int
    counts: dict[bytes, Tally] = field(default_factory=dict)
    _roots: frozenset[bytes] = frozenset()
    _last: tuple[bytes, Tally] = (b"", Tally())

    async def begin(self) -> None:
        self._roots = frozenset(place.path for place in await self.selection.resolve() if place.is_dir)

    def count(self, entry: Entry) -> None:
        folder = parent(entry.path)
        if folder != self._last[0]:
            roots = self._roots | set(self.selection.mounts.values())
            self._last = (folder, self.counts.setdefault(cut(folder, roots, self.depth), Tally()))
        self._last[1].add(entry.size)


class Planner:
    """Makes a plan of a selection; `estimate` can be watched while `run` fills it.

    `atlas` knows the file systems behind mounts; None asks nothing of AWS. `sieve` finds out what S3 cannot give,
    `seen` what earlier runs reached. `reserve` is the space to leave free.
    """

    def __init__(
        self,
        hsm: Hsm,
        selection: Selection,
        *,
        reserve: Amount,
        depth: int,
        seen: Seen,
        atlas: Atlas | None = None,
        sieve: Sieve | None = None,
    ) -> None:
        self._selection = selection
        self._atlas = atlas
        self._seen = seen
        self._folders = _Folders(selection, depth)
        self._estimator = Estimator(hsm, selection, reserve=reserve, sieve=sieve, told=self._folders.count)
        self.estimate = self._estimator.estimate

    async def run(self) -> Plan:
        """Walk, look and measure; raises what resolving the selection raises, and HUNG."""
        await self._folders.begin()
        await self._estimator.run()
        by_mount = self._estimator.by_mount
        parts = await asyncio.gather(*(self._part(mount, released) for mount, released in by_mount.items()))
        return Plan(self.estimate, self._folders.counts, parts)

    async def _part(self, mount: bytes, released: Tally) -> Part:
        need = next((need for need in self.estimate.needs if need.mount == mount), None)
        chart = await self._chart(mount)
        system = None if isinstance(chart, str) else chart.system
        why = chart if isinstance(chart, str) else chart.complaint.what if chart.complaint is not None else ""
        tier_rate = None if system is None else write_rate(system)
        time = forecast(released, await self._seen(mount), tier_rate)
        return Part(mount, released, need, system, "" if system is not None else why, time)

    async def _chart(self, path: bytes) -> Chart | str:
        """What FSx says of the file system mounted at a path; a text says why it was not asked."""
        if self._atlas is None:
            return "AWS was not asked (--check-s3 never)"
        mount = self._atlas.mount_of(path)
        if mount is None or not may_be_fsx(mount.source):
            return _NOT_FSX
        return await self._atlas.chart(mount)
