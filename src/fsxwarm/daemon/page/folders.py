"""How warm folders are: counted with the viewer's rights while he looks on, shown as a tree."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.daemon.page.charts import bar
from fsxwarm.daemon.page.markup import Markup, tag
from fsxwarm.daemon.page.parts import folders_address, percent
from fsxwarm.daemon.page.tables import cell, column, header, row, table
from fsxwarm.engine.status import Survey
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import Identity
from fsxwarm.model.lease import is_under
from fsxwarm.model.tally import Coverage, Tally
from fsxwarm.model.units import format_count, format_duration, format_size

_DEPTH: Final = 3
_KEPT: Final = 600.0
"""Seconds for which a count is shown before it is made anew."""
_UNWATCHED: Final = 300.0
"""Seconds after which a count that nobody looks at makes way for others."""
_MOST, _MOST_EACH = 8, 2
"""Counts at a time, in all and each user's."""
_ROWS: Final = 1000
SORTS: Final = {"name": "folder", "size": "size", "released": "released", "coverage": "coverage"}

Begin = Callable[[bytes, Identity, int], Survey]
"""Makes a survey of a path, with somebody's rights, by folders so many levels deep."""


@dataclass(slots=True)
class Count:
    """A count of a path, under way or done. `seen` is when it was last looked at."""

    survey: Survey
    task: asyncio.Task[str]
    started: float
    seen: float

    @property
    def done(self) -> bool:
        """Whether it has come to its end."""
        return self.task.done()

    @property
    def error(self) -> str:
        """Why it could not be made, once that is known."""
        return self.task.result() if self.task.done() else ""


async def _problem(survey: Survey) -> str:
    """Count; what was wrong, if anything."""
    try:
        await survey.run()
    except FsxwarmError as error:
        return error.message
    return ""


class Counts:
    """Makes counts, few at a time, and keeps them for a while. `now` in seconds."""

    def __init__(self, begin: Begin, now: Callable[[], float]) -> None:
        self._begin = begin
        self.now = now
        self._counts: dict[tuple[Identity, bytes], Count] = {}

    def of(self, path: bytes, identity: Identity) -> Count:
        """The count of a path with somebody's rights, begun if there is none. FsxwarmError TOO_MANY."""
        now = self.now()
        self._drop_old(now)
        known = self._counts.get((identity, path))
        if known is not None:
            known.seen = now
            return known
        going = [key for key, one in self._counts.items() if not one.done]
        if len(going) >= _MOST or sum(who.uid == identity.uid for who, _ in going) >= _MOST_EACH:
            raise FsxwarmError(Kind.TOO_MANY, "other folders are being counted", hint="look again when they are done")
        survey = self._begin(path, identity, _DEPTH)
        task = asyncio.create_task(_problem(survey), name="page count")
        count = self._counts[identity, path] = Count(survey, task, now, now)
        return count

    def _drop_old(self, now: float) -> None:
        """Forget counts that are old, and end those at which nobody looks any more."""
        for key, one in list(self._counts.items()):
            if one.done and now - one.started >= _KEPT:
                del self._counts[key]
            elif not one.done and now - one.seen >= _UNWATCHED:
                one.task.cancel()
                del self._counts[key]

    async def close(self) -> None:
        """End those under way."""
        tasks = [one.task for one in self._counts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class Branch:
    """A folder, with all below it."""

    path: bytes
    name: bytes
    coverage: Coverage = field(default_factory=Coverage)
    below: dict[bytes, Branch] = field(default_factory=dict)


def tree(root: bytes, folders: Mapping[bytes, Coverage]) -> Branch:
    """Folders by path as a tree in which each counts what is below it. Where `root` is a link, from where it leads."""
    if not all(is_under(path, root) for path in folders):
        root = os.path.commonpath(folders)
    top = Branch(root, root)
    base = root.rstrip(b"/")
    for path, coverage in folders.items():
        branch = top
        _add(branch.coverage, coverage)
        place = base
        for name in path[len(base) :].split(b"/"):
            if name:
                place += b"/" + name
                branch = branch.below.setdefault(name, Branch(place, name))
                _add(branch.coverage, coverage)
    return top


def _total(coverage: Coverage) -> Tally:
    return coverage.resident + coverage.released


def _add(into: Coverage, more: Coverage) -> None:
    into.resident.add(more.resident.bytes, more.resident.files)
    into.released.add(more.released.bytes, more.released.files)


def show(path: bytes, count: Count, sort: str, now: float) -> Markup:
    """A count as a table of folders, sorted within each; the parts of a tree fold."""
    status = count.survey.status
    ago = format_duration(max(0.0, now - count.started))
    found = format_count(status.total.files, "file")
    if count.error:
        said = count.error
    elif count.done:
        said = f"{found}, {format_size(status.total.bytes)}; counted {ago} ago"
    else:
        said = f"counting for {ago}: {found} so far"
    if status.troubles.count:
        said += f"; {format_count(status.troubles.count, 'path')} could not be read"
    rows: list[Markup] = []
    _rows(tree(path, status.folders), 0, sort, rows, "0")
    more = len(rows) - _ROWS
    heads = [_head(path, key, title, sort) for key, title in SORTS.items()]
    return tag(
        "section",
        tag("h2", tag("bdi", path.decode("utf-8", "surrogateescape")), id="folders-title"),
        tag("p", said, role="status"),
        table("Folders", heads, rows[:_ROWS], style="folders"),
        tag("p", f"and {format_count(more, 'folder')} more") if more > 0 else Markup(""),
        id="folders",
        aria_labelledby="folders-title",
        data_done="yes" if count.done else "no",
    )


def _head(path: bytes, key: str, title: str, sort: str) -> Markup:
    order = None if key != sort else "ascending" if key in {"name", "coverage"} else "descending"
    return column(tag("a", title, href=folders_address(path, sort=key)), sort=order)


def _order(sort: str) -> Callable[[Branch], tuple[float, bytes]]:
    orders: dict[str, Callable[[Branch], float]] = {
        "name": lambda _: 0.0,
        "size": lambda one: -float(_total(one.coverage).bytes),
        "released": lambda one: -float(one.coverage.released.bytes),
        "coverage": lambda one: one.coverage.share,
    }
    key = orders[sort]
    return lambda one: (key(one), one.name)


def _rows(branch: Branch, level: int, sort: str, rows: list[Markup], place: str) -> None:
    rows.append(_row(branch, level, place))
    for number, below in enumerate(sorted(branch.below.values(), key=_order(sort))):
        _rows(below, level + 1, sort, rows, f"{place}.{number}")


def _row(branch: Branch, level: int, place: str) -> Markup:
    coverage, name = branch.coverage, branch.name.decode("utf-8", "surrogateescape")
    part, total = coverage.share, _total(coverage)
    said = percent(part)
    return row(
        header(
            tag("bdi", name),
            class_=f"level{level}",
            data_place=place,
            data_folds="yes" if branch.below else "no",
        ),
        cell("", format_size(total.bytes), tag("small", f" {format_count(total.files, 'file')}")),
        cell("released", format_size(coverage.released.bytes)),
        cell("", bar(part, f"{said} resident"), " ", said, class_="share"),
        id=f"f{place}",
    )
