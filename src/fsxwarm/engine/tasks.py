"""Releasing by FSx itself: data repository tasks, one after another, followed to their end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.atlas import Atlas, Chart, cannot_ask
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.association import is_linked, parse_source
from fsxwarm.model.entry import Trouble
from fsxwarm.model.release_task import Unreleased, in_tasks, inner_path, outermost, read_report, report_of
from fsxwarm.model.s3 import Uri, parse_uri
from fsxwarm.ports.cloud import Cloud, CloudError, Fault, Task
from fsxwarm.ports.tree import Tree

_SOON: Final = 1.0
_LATER: Final = 30.0
_PASSING: Final = frozenset({Fault.THROTTLED, Fault.UNREACHABLE, Fault.OTHER})
_DEAF: Final = 20
"""Looks at a task in a row that may fail before it is no longer followed."""
_READS: Final = 4
"""Looks for a report: it may come a moment after the task has ended."""
_FINER: Final = "leave --service out: fsxwarm then releases file by file"


@dataclass(frozen=True, slots=True)
class Order:
    """One task to be begun: paths within the file system, whole days since last use, where its report goes (or "")."""

    system: str
    paths: tuple[str, ...]
    days: int
    report: str = ""


@dataclass(slots=True)
class Run:
    """What has become of an order. `asked`: a task may have been begun; `task`: it has been, and is as last seen.

    `error` is why it could not be begun or followed. `unreleased` is from its report, which `report_error` says why
    it could not be read; `report_cut`: only its beginning was, and what it names further on is not known.
    """

    order: Order
    asked: bool = False
    task: Task | None = None
    error: CloudError | None = None
    unreleased: list[Unreleased] = field(default_factory=list)
    report_error: CloudError | None = None
    report_cut: bool = False


async def plan_tasks(atlas: Atlas, tree: Tree, paths: Sequence[bytes], days: int, report: str) -> list[Order]:
    """Find out which tasks release what lies at some paths. FsxwarmError for what FSx cannot be asked to release."""
    inside: dict[str, list[str]] = {}
    for path in paths:
        system, inner = await _place(atlas, tree, path, report)
        inside.setdefault(system, []).append(inner)
    return [
        Order(system, some, days, report.rstrip("/"))
        for system, named in inside.items()
        for some in in_tasks(outermost(named))
    ]


class ReleaseTasks:
    """Begins the tasks of some orders and follows them. FSx runs one at a time; the others wait for their turn.

    `token` makes up names, by which FSx knows a task that it is asked for again; `say` tells the user a line.
    """

    def __init__(
        self, cloud: Cloud, orders: Sequence[Order], *, token: Callable[[], str], say: Callable[[str], None]
    ) -> None:
        self._cloud = cloud
        self._token = token
        self._say = say
        self.runs = [Run(order) for order in orders]

    async def run(self) -> None:
        """Run them all, up to the first that cannot be begun or followed. Cancelled, it leaves FSx's tasks alone."""
        for run in self.runs:
            try:
                await self._begin(run)
                await self._follow(run)
            except CloudError as error:
                run.error = error
                return
            await self._read_report(run)

    @property
    def current(self) -> Run | None:
        """What is being waited for."""
        return next((run for run in self.runs if run.task is None or not run.task.state.ended), None)

    async def _begin(self, run: Run) -> None:
        order, token, told = run.order, self._token(), False
        async for _ in _waits():
            run.asked = True
            try:
                run.task = await self._cloud.release_task(order.system, order.paths, order.days, token, order.report)
            except CloudError as error:
                run.asked = error.fault in _PASSING
                if error.fault is not Fault.BUSY:
                    raise
            if run.task is not None:
                return
            if not told:
                told = True
                self._say(f"another task runs on {order.system}: waiting for its end")

    async def _follow(self, run: Run) -> None:
        assert run.task is not None  # noqa: S101 - it was begun
        deaf = 0
        async for _ in _waits():
            try:
                run.task = await self._cloud.task(run.task.id)
            except CloudError as error:
                deaf += 1
                if error.fault not in _PASSING or deaf >= _DEAF:
                    raise
                if deaf == 1:
                    self._say(f"how {run.task.id} is doing is not known for now: {error}")
                continue
            deaf = 0
            if run.task.state.ended:
                return

    async def _read_report(self, run: Run) -> None:
        assert run.task is not None  # noqa: S101 - it was followed
        if not run.task.failed or not run.order.report:
            return
        where = parse_uri(report_of(run.order.report, run.task.id))
        left = _READS
        async for _ in _waits():
            left -= 1
            try:
                report = await self._cloud.read_object(*where)
            except CloudError as error:
                if error.fault is Fault.NOT_FOUND and left:
                    continue
                run.report_error = error
                return
            run.unreleased = read_report(report.body.decode("utf-8", "replace"), whole=report.whole)
            run.report_cut = not report.whole
            return


async def _waits() -> AsyncIterator[None]:
    """At once, and then in longer and longer intervals."""
    pause = _SOON
    while True:
        yield
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LATER)


async def _place(atlas: Atlas, tree: Tree, path: bytes, report: str) -> tuple[str, str]:
    """The file system that a path is on, and its path there."""
    name = os.fsdecode(path)
    place = await tree.resolve(path)
    if isinstance(place, Trouble):
        raise FsxwarmError(Kind.NO_SUCH_PATH, f"{name}: {place.text or os.strerror(place.errno)}")
    chart = await atlas.chart_of(place.path)
    if chart is None:
        raise FsxwarmError(Kind.NOT_LUSTRE, f"{name} is not on FSx for Lustre")
    system = _able(chart, name)
    if not is_linked(place.path, chart.links):
        raise FsxwarmError(
            Kind.USAGE,
            f"{name} is in no association: FSx has no copy in S3 of what is there",
            hint="`fsxwarm associations` lists what is linked",
        )
    if report:
        _must_take(chart, parse_uri(report))
    source = parse_source(chart.mount.source)
    try:
        return system, inner_path(place.path, chart.mount.path, "" if source is None else source.below)
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, f"{name} cannot be named to FSx: {error}", hint=_FINER) from None


def _able(chart: Chart, name: str) -> str:
    """The id of a mount's file system, if it knows release tasks."""
    if chart.failure is not None:
        raise cannot_ask(chart.failure, "FSx cannot be asked to release")
    if chart.system is None:
        what = "" if chart.complaint is None else f": {chart.complaint.what}"
        raise FsxwarmError(
            Kind.CLOUD,
            f"which file system {name} is on is not known{what}",
            hint="" if chart.complaint is None else chart.complaint.todo,
        )
    if chart.system.version == "2.10":
        raise FsxwarmError(
            Kind.CLOUD, f"{chart.system.id} is of Lustre 2.10, which knows no release tasks", hint=_FINER
        )
    return chart.system.id


def _must_take(chart: Chart, report: Uri) -> None:
    """FSx writes reports only to where the file system is linked to."""
    links = [link.association.uri for link in chart.links]
    folder = f"{report.key.rstrip('/')}/" if report.key else ""
    if not any(report.bucket == uri.bucket and folder.startswith(uri.key) for uri in links):
        linked = ", ".join(map(str, links)) or "nothing"
        raise FsxwarmError(
            Kind.USAGE,
            f"FSx writes reports only below what the file system is linked to ({linked}), not to {report}",
            hint="name a folder below it",
        )
