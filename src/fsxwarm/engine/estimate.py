"""What a preload would have to do, and how long that may take, without asking for anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fsxwarm.engine.crew import Crew
from fsxwarm.engine.intake import Sieve
from fsxwarm.engine.looks import AT_ONCE, GONE, Looks, Troubles, is_released
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.space import Measure, measure_mount
from fsxwarm.model.diagnosis import why_blocked
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.outcome import Reason
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import Amount
from fsxwarm.ports.hsm import Hsm

_PARALLEL: Final = 8


@dataclass(frozen=True, slots=True)
class Need:
    """What a file system (by its mount point) would have to take in, and the room that it has for that."""

    mount: bytes
    released: Tally
    measure: Measure

    @property
    def bytes(self) -> int:
        """Bytes to take in."""
        return self.released.bytes

    @property
    def fits(self) -> bool:
        """Whether all of it fits, less the reserve."""
        return self.bytes <= self.measure.available


@dataclass(slots=True)
class Estimate:
    """What was found, also while it is looked for.

    `released` could be restored; `blocked` could not, by reason; `unknown` are files of which nobody would say.
    """

    resident: Tally = field(default_factory=Tally)
    released: Tally = field(default_factory=Tally)
    blocked: dict[Reason, Tally] = field(default_factory=dict)
    unknown: Tally = field(default_factory=Tally)
    vanished: int = 0
    skipped: int = 0
    troubles: Troubles = field(default_factory=Troubles)
    needs: list[Need] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        """Whether everything released fits, as far as free space could be measured."""
        return all(need.fits for need in self.needs)


class Speed(NamedTuple):
    """What FSx can do: files and bytes restored per second, 0 where it is not known."""

    files: float
    bytes: float

    def seconds(self, tally: Tally) -> float:
        """How long restoring some files takes: below about 9 MB a file, files per second are the limit, not bytes."""
        by_files = tally.files / self.files if self.files else 0.0
        by_bytes = tally.bytes / self.bytes if self.bytes else 0.0
        return max(by_files, by_bytes)


def best(speeds: Iterable[Speed]) -> Speed | None:
    """The most that earlier runs reached: runs of small files tell the files per second, of large ones the bytes."""
    files, nbytes = 0.0, 0.0
    for speed in speeds:
        files, nbytes = max(files, speed.files), max(nbytes, speed.bytes)
    return Speed(files, nbytes) if files and nbytes else None


class Estimator:
    """Makes an estimate of a selection; `estimate` can be watched while `run` fills it.

    `reserve` is the space to leave free; None: free space is not looked at. `sieve` finds out what S3 cannot give;
    `told` hears of each file that could be restored.
    """

    def __init__(
        self,
        hsm: Hsm,
        selection: Selection,
        *,
        reserve: Amount | None,
        sieve: Sieve | None = None,
        told: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._hsm = hsm
        self._looks = Looks(hsm, selection.tree)
        self._selection = selection
        self._reserve = reserve
        self._sieve = sieve
        self._told = told
        self._barred: dict[Key, Reason] = {}
        self._by_dev: dict[int, Tally] = {}
        self.estimate = Estimate()

    @property
    def by_mount(self) -> dict[bytes, Tally]:
        """What each file system would have to take in."""
        return {mount: self._by_dev.get(dev, Tally()) for dev, mount in self._selection.mounts.items()}

    async def run(self) -> Estimate:
        """Walk, look and measure; raises what resolving the selection raises, and HUNG."""
        pending: list[Entry] = []
        async with Crew(_PARALLEL) as crew:
            batches = self._selection.batches()
            async for batch in batches if self._sieve is None else self._sieve.checked(batches):
                self._barred |= batch.barred
                self.estimate.skipped += batch.skipped
                self.estimate.vanished += self.estimate.troubles.take(batch)
                for item in batch.items:
                    if isinstance(item, Resident):
                        self.estimate.resident.add(item.bytes, item.files)
                    elif item.proves_resident:
                        self.estimate.resident.add(item.size)
                    else:
                        pending.append(item)
                while len(pending) >= AT_ONCE:
                    await crew.start(self._look(pending[:AT_ONCE]))
                    del pending[:AT_ONCE]
            if pending:
                await crew.start(self._look(pending))
        await self._measure()
        return self.estimate

    async def _look(self, entries: Sequence[Entry]) -> None:
        answers = await self._looks.states_or_released([entry.path for entry in entries])
        for entry, answer in zip(entries, answers, strict=True):
            if isinstance(answer, Trouble):
                self._unclear(entry, answer)
            elif not is_released(answer):
                self.estimate.resident.add(entry.size)
            elif isinstance(answer, Flags) and not answer.restorable:
                self.estimate.blocked.setdefault(why_blocked(answer), Tally()).add(entry.size)
            else:
                self._released(entry)

    def _released(self, entry: Entry) -> None:
        reason = self._barred.pop(entry.key, None)
        if reason is not None:
            self.estimate.blocked.setdefault(reason, Tally()).add(entry.size)
            return
        self.estimate.released.add(entry.size)
        self._by_dev.setdefault(entry.dev, Tally()).add(entry.size)
        self._told(entry)

    def _unclear(self, entry: Entry, trouble: Trouble) -> None:
        if trouble.errno in GONE:
            self.estimate.vanished += 1
        else:
            self.estimate.unknown.add(entry.size)
            self.estimate.troubles.add(trouble)

    async def _measure(self) -> None:
        if self._reserve is None:
            return
        for mount, released in self.by_mount.items():
            measure = await measure_mount(self._hsm, mount, self._reserve)
            if isinstance(measure, Measure):
                self.estimate.needs.append(Need(mount, released, measure))
            else:
                self.estimate.troubles.add(measure)
