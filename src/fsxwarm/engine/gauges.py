"""Reads how the daemon stands, for metrics: when it is asked, and in a time that does not grow with files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

from fsxwarm import __version__
from fsxwarm.engine.inventory import Inventory
from fsxwarm.engine.jobs import CONFIGURED
from fsxwarm.engine.make_room import Room
from fsxwarm.engine.measuring import lanes_of, restoring_of, space_of
from fsxwarm.engine.periodic import Errand
from fsxwarm.engine.plan import Health, ServicePlan
from fsxwarm.engine.shared import SharedWarming
from fsxwarm.engine.surroundings import Surroundings
from fsxwarm.engine.tracked import Tracked
from fsxwarm.errors import Exit
from fsxwarm.model.job import DEFAULT_PRIORITY, Job, Kind, Phase
from fsxwarm.model.measures import (
    Measures,
    RoundMeasure,
    ServiceMeasure,
    StockMeasure,
    label,
)
from fsxwarm.model.meter import Meter

_NO_RATE: Final = 60.0
"""Seconds after its start in which a job that restores nothing is not taken to be late."""
_KIND_AND_PHASE: Final = attrgetter("job.request.kind", "job.phase")
_RELEASED: Final = {"jobs": "released", "make_room": "made_room"}
_PRIORITIES: Final = ("low", "normal", "high")


class Gauges:
    """Reads the parts of a service."""

    def __init__(self, meter: Meter, warming: SharedWarming, inventory: Inventory, around: Surroundings) -> None:
        self._meter = meter
        self._warming = warming
        self._inventory = inventory
        self._around = around

    def read(
        self,
        health: Health,
        plan: ServicePlan,
        jobs: Iterable[Tracked],
        leases: int,
        short: Mapping[bytes, Room],
        errands: Iterable[Errand],
        now: float,
    ) -> Measures:
        """All measures at the moment `now` (seconds since the epoch)."""
        machine, mounts = self._warming.machine, self._warming.mounts
        jobs = list(jobs)
        return Measures(
            __version__,
            self._meter,
            abandoned=health.abandoned + self._around.abandoned(),
            restoring=restoring_of(machine, mounts),
            lanes=lanes_of(machine, mounts),
            spaces=[space_of(mount, space) for mount, space in sorted(self._around.spaces.items())],
            stocks=self._stocks(plan),
            rounds=list(_rounds(jobs)),
            links=self._around.links,
            limits=self._around.limits,
            aws=self._around.aws(),
            service=ServiceMeasure(
                started=health.started,
                stalled=health.stalled,
                problems=len(health.problems),
                jobs=_by_phase(jobs),
                ended=_ended(health.totals),
                behind=sum(_is_behind(job, now) for job in jobs),
                queued=self._queued(),
                leases=leases,
                released=_released(health.totals),
                short={label(marks.mount): _short(short.get(marks.mount)) for marks in plan.make_room},
                errands={errand.name: bool(errand.trouble) for errand in errands},
                scans={label(path): path in self._inventory.under_way for path in plan.inventory},
            ),
        )

    def _queued(self) -> dict[str, tuple[int, int]]:
        queued = {priority: [0, 0] for priority in _PRIORITIES}
        for walk in self._warming.walks.values():
            if walk.began is not None:
                left = walk.progress.remaining
                some = queued[_priority(walk.rank.priority)]
                some[0] += left.files
                some[1] += left.bytes
        return {priority: (files, size) for priority, (files, size) in queued.items()}

    def _stocks(self, plan: ServicePlan) -> list[StockMeasure]:
        stocks: list[StockMeasure] = []
        for path in plan.inventory:
            scan = self._inventory.done.get(path)
            if scan is None or scan.ended is None:
                continue
            stocks.append(
                StockMeasure(
                    scan.mount,
                    label(path),
                    scan.ended,
                    {"resident": scan.resident_files, "released": scan.released_files},
                    {"resident": scan.resident_bytes, "released": scan.released_bytes},
                    scan.archived_files,
                    scan.archived_bytes,
                    {
                        "dirty": scan.dirty_files,
                        "not_archived": scan.not_archived_files,
                        "pinned": scan.pinned_files,
                        "lost": scan.lost_files,
                    },
                    scan.unread_files,
                )
            )
        return stocks


def _by_phase(jobs: Iterable[Tracked]) -> dict[tuple[str, str], int]:
    counts = Counter(map(_KIND_AND_PHASE, jobs))
    return {(kind.value, phase.value): counts[kind, phase] for kind in Kind for phase in Phase}


def _ended(totals: Mapping[str, int]) -> dict[str, int]:
    return {status.name.lower(): totals.get(f"ended_{status.name.lower()}", 0) for status in Exit}


def _released(totals: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {by: (totals.get(f"{name}_files", 0), totals.get(f"{name}_bytes", 0)) for by, name in _RELEASED.items()}


def _short(room: Room | None) -> int:
    return 0 if room is None else max(0, room.wanted - room.after)


def _priority(priority: int) -> str:
    return _PRIORITIES[(priority >= DEFAULT_PRIORITY) + (priority > DEFAULT_PRIORITY)]


def _is_behind(it: Tracked, now: float) -> bool:
    """Whether a job will not make its deadline: what is left takes longer than there is time, or nothing comes in."""
    walk = it.walk
    if walk is None or walk.progress.scan_ended is None:
        return False
    deadline = it.job.request.options.deadline
    if deadline is None:
        return False
    left = it.job.created + deadline - now
    eta = walk.progress.eta()
    return left < (eta if eta is not None else float("inf") if now - (it.job.started or now) > _NO_RATE else 0.0)


def _rounds(jobs: Iterable[Tracked]) -> Iterable[RoundMeasure]:
    for it in jobs:
        job, last = it.job, it.last_round
        if last is not None and _is_configured(job):
            paths = ":".join(map(label, job.request.paths))
            yield RoundMeasure(paths, job.request.options.every, last.coverage, last.ended)


def _is_configured(job: Job) -> bool:
    return job.request.kind is Kind.KEEP_WARM and job.request.label == CONFIGURED and not job.phase.final
