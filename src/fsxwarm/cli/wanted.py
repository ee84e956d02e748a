"""Which files a command line asks for: as a selection here, or as a wish to the daemon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fsxwarm.app import App
from fsxwarm.cli.options import absolute, expanded, here, read
from fsxwarm.cli.output import complain
from fsxwarm.client import naming, wire
from fsxwarm.engine.order import Order
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.patterns import compile_globs
from fsxwarm.model.shard import Shard
from fsxwarm.model.units import format_count
from fsxwarm.ports.tree import Filters

Listed = AsyncIterator[Sequence[bytes]]
"""Absolute names, in their order."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options by which every command is told its files, as they were given."""

    paths: Sequence[str] | None
    files_from: str | None = None
    nul: bool = False
    include: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    braces: bool = False

    def select(
        self,
        app: App,
        *,
        listed: Listed | None = None,
        whole: bool = False,
        order: Order = Order.LISTED,
        shard: Shard | None = None,
    ) -> Selection:
        """Make the selection. FsxwarmError USAGE when it asks for nothing; `listed` is a list from elsewhere."""
        names, listed = self._named(listed)
        for option, globs in (("--include", self.include), ("--exclude", self.exclude)):
            for glob in globs or ():
                read(lambda glob: compile_globs([glob]), glob, option)
        return Selection(
            app.tree,
            [absolute(name) for name in names],
            listed=listed,
            filters=Filters(tuple(self.include or ()), tuple(self.exclude or ()), shard),
            whole=whole,
            order=order,
            addresses=app.addresses,
        )

    def wish(self, listed: Listed | None = None) -> wire.JobWish:
        """Make the wish for a job, of no other kind than a preload yet. Lists are read here, as this user."""
        names, listed = self._named(listed)
        return {
            "kind": "preload",
            "paths": [naming.wish(absolute(name)) for name in names],
            "files": [] if listed is None else [naming.wish(path) for path in asyncio.run(_all(listed))],
            "include": list(self.include or ()),
            "exclude": list(self.exclude or ()),
        }

    def must_name_something(self) -> None:
        """FsxwarmError USAGE where neither a PATH nor a list was given."""
        if not self.paths and self.files_from is None:
            raise FsxwarmError(Kind.USAGE, "there is nothing to do", hint="name a PATH, or a list with --files-from")

    def _named(self, listed: Listed | None) -> tuple[Sequence[str], Listed | None]:
        """The PATHs and the list. FsxwarmError USAGE for nothing."""
        if listed is None:
            self.must_name_something()
        if self.nul and self.files_from is None:
            raise FsxwarmError(
                Kind.USAGE, "-0 says how a list is separated, but there is no list", hint="add --files-from"
            )
        if self.files_from is not None:
            from fsxwarm.engine.manifest import read_manifest  # noqa: PLC0415 - only who has a list waits for it

            listed = read_manifest(os.fsencode(self.files_from), folder=here(), nul=self.nul)
        return expanded(self.paths or (), braces=self.braces), listed


async def to_retry(report: Path) -> Listed:
    """The files of a report that may become resident yet; says so if it is not whole, or has none. FsxwarmError."""
    from fsxwarm.engine.report import check_report, files_to_retry  # noqa: PLC0415 - only who has one waits for it

    summary = await check_report(report)
    if summary is None:
        complain(f"{report} is unfinished: the files that it names are taken, there may be more")
    elif unlisted := summary.get("unlisted"):
        complain(not_whole(report, unlisted))
    if not [chunk async for chunk in files_to_retry(report)]:
        complain(f"{report} names no file to try again")
    return files_to_retry(report)


def not_whole(report: Path, unlisted: int) -> str:
    """What there is to say of a report in which files have no line."""
    return f"{report} is not whole: {format_count(unlisted, 'more file')} did not become resident and have no line"


async def _all(chunks: Listed) -> list[bytes]:
    return list(chain.from_iterable([chunk async for chunk in chunks]))
