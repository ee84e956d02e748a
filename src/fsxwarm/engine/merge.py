"""The reports of several shards as one: what came of all files, and which shards are missing or unfinished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from fsxwarm.engine.report import Report, bad_line, documents, path_of
from fsxwarm.errors import Exit, FsxwarmError, Kind, worst
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.shard import Shard, parse_shard
from fsxwarm.model.tally import Tally

_NAMED: Final = 10
_UNREAD: Final = ("unreadable", "missing", "outside")


@dataclass(slots=True)
class Left:
    """Files that are not resident for one reason: how many, the first of them, and the errors of those that had one."""

    tally: Tally = field(default_factory=Tally)
    first: list[bytes] = field(default_factory=list)
    errnos: Counter[int] = field(default_factory=Counter)

    def add(self, tally: Tally, paths: Iterable[bytes], errnos: Mapping[int, int]) -> None:
        """Count more."""
        self.tally += tally
        self.errnos.update(errnos)
        self.first += list(paths)[: _NAMED - len(self.first)]


@dataclass(slots=True)
class ShardReport:
    """What one shard's report says. Times in seconds since the epoch; `exit` is None while it is unfinished.

    `outcomes` is what the summary counts; `left` what the lines name, by outcome and reason; `unread` the paths that
    could not be looked at, by outcome: each shard that came across one tells it; `unlisted` counts what has no line.
    """

    source: Path
    shard: Shard
    arguments: list[str]
    started: float
    ended: float | None = None
    exit: Exit | None = None
    error: str = ""
    unlisted: int = 0
    found: Tally = field(default_factory=Tally)
    outcomes: dict[Outcome, Tally] = field(default_factory=dict)
    left: dict[tuple[Outcome, str], Left] = field(default_factory=dict)
    unread: dict[bytes, str] = field(default_factory=dict)


class Merged:
    """All shards together. Of several reports of one shard, that of the latest run counts.

    FsxwarmError USAGE where they are not shards of one whole.
    """

    def __init__(self, reports: Sequence[ShardReport]) -> None:
        first = reports[0]
        self.count = first.shard.count
        for one in reports:
            if one.shard.count != self.count:
                raise FsxwarmError(
                    Kind.USAGE,
                    f"{one.source} is shard {one.shard}, {first.source} is shard {first.shard}",
                    hint="merge the reports of one run only",
                )
        latest: dict[int, ShardReport] = {}
        for one in sorted(reports, key=lambda one: one.started):
            latest[one.shard.index] = one
        self.reports = [latest[index] for index in sorted(latest)]
        self.superseded = [one.source for one in reports if latest[one.shard.index] is not one]
        """Reports that a later one of the same shard takes the place of."""

    @property
    def finished(self) -> list[ShardReport]:
        """Reports with a summary."""
        return [one for one in self.reports if one.exit is not None]

    @property
    def unfinished(self) -> list[Shard]:
        """Shards whose report has no summary: they were killed, or it was torn."""
        return [one.shard for one in self.reports if one.exit is None]

    @property
    def missing(self) -> list[Shard]:
        """Shards without a report."""
        there = {one.shard.index for one in self.reports}
        return [Shard(index, self.count) for index in range(1, self.count + 1) if index not in there]

    @property
    def to_run_again(self) -> list[Shard]:
        """Shards that did not come to their end: without a whole report, interrupted, out of time or room, given up."""
        ended = {Exit.DONE, Exit.INCOMPLETE}
        stopped = [one.shard for one in self.finished if one.exit not in ended]
        return [*self.unfinished, *self.missing, *stopped]

    @property
    def exit(self) -> Exit:
        """The one status for all."""
        holes = [Exit.INCOMPLETE] if self.missing or self.unfinished else []
        return worst(*holes, *(one.exit for one in self.finished if one.exit is not None))

    @property
    def alike(self) -> bool:
        """Whether all shards were run with the same arguments, as far as they are not about the shard."""
        return len({tuple(without_shard(one.arguments)) for one in self.reports}) == 1

    @property
    def found(self) -> Tally:
        """Files that were found."""
        return sum((one.found for one in self.finished), Tally())

    @property
    def outcomes(self) -> dict[Outcome, Tally]:
        """What came of them."""
        return {
            outcome: sum((one.outcomes.get(outcome, Tally()) for one in self.finished), Tally()) for outcome in Outcome
        }

    @property
    def left(self) -> dict[tuple[Outcome, str], Left]:
        """What did not become resident, by outcome and reason, the most first."""
        left: dict[tuple[Outcome, str], Left] = {}
        for one in self.finished:
            for why, some in one.left.items():
                left.setdefault(why, Left()).add(some.tally, some.first, some.errnos)
        return dict(sorted(left.items(), key=lambda item: -item[1].tally.files))

    @property
    def unlisted(self) -> int:
        """Files that are not resident and have no line in any report."""
        return sum(one.unlisted for one in self.finished)

    @property
    def unread(self) -> dict[str, list[bytes]]:
        """Paths that could not be looked at, each once, by what they are: unreadable, missing or outside."""
        unread = {path: what for one in self.finished for path, what in one.unread.items()}
        return {what: sorted(path for path in unread if unread[path] == what) for what in _UNREAD}


def without_shard(arguments: Sequence[str]) -> list[str]:
    """A command's arguments without `--shard`."""
    rest = iter(arguments)
    kept = []
    for argument in rest:
        if argument == "--shard":
            next(rest, None)
        elif not argument.startswith("--shard="):
            kept.append(argument)
    return kept


async def read_report(source: Path) -> ShardReport:
    """Read one report through; FsxwarmError names what is wrong with it."""
    report: ShardReport | None = None
    async for number, document in documents(source):
        try:
            if report is None:
                report = _begun(source, document)
            elif "summary" in document:
                _end(report, document["summary"])
            else:
                report.exit = None  # a line after the summary: two runs wrote here
                _take(report, document, path_of(document, source, number))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise bad_line(source, number, f"it does not say what it should: {error}") from None
    if report is None:
        raise bad_line(source, 1, "the file is empty")
    return report


async def write_merged(merged: Merged, target: Path, version: str) -> str | None:
    """Write one report of all finished ones; returns what kept it from being written, as `Report.problem` does.

    FsxwarmError USAGE when there cannot be one at `target`.
    """
    first = merged.reports[0]
    started = min(one.started for one in merged.reports)
    header = {"version": version, "started": started, "arguments": without_shard(first.arguments)}
    report = await Report.begin(target, header)
    try:
        told: set[bytes] = set()
        for one in merged.finished:
            async for number, document in documents(one.source):
                if number == 1 or "summary" in document:
                    continue
                if document["outcome"] in _UNREAD:
                    path = path_of(document, one.source, number)
                    if path in told:
                        continue
                    told.add(path)
                report.copied(document)
        outcomes = {outcome.value: asdict(some) for outcome, some in merged.outcomes.items()}
        ended = max((one.ended for one in merged.finished if one.ended is not None), default=started)
        found = {"found": asdict(merged.found), "outcomes": outcomes}
        await report.end({"exit": int(merged.exit), "ended": ended, **found, "unlisted": merged.unlisted})
    finally:
        await report.discard()
    return report.problem


def _begun(source: Path, header: Mapping[str, Any]) -> ShardReport:
    shard = parse_shard(header["shard"], {})
    return ShardReport(source, shard, [str(one) for one in header["arguments"]], float(header["started"]))


def _take(report: ShardReport, line: Mapping[str, Any], path: bytes) -> None:
    outcome = line["outcome"]
    if outcome in _UNREAD:
        report.unread[path] = outcome
        return
    why = (Outcome(outcome), str(line["reason"] or ""))
    code = _whole(line.get("errno", 0))
    report.left.setdefault(why, Left()).add(Tally(1, _whole(line["size"])), [path], {code: 1} if code else {})


def _end(report: ShardReport, summary: Mapping[str, Any]) -> None:
    report.exit = Exit(summary["exit"])
    report.ended = float(summary["ended"]) if "ended" in summary else None
    report.error = str(summary.get("error", ""))
    report.unlisted = _whole(summary.get("unlisted", 0))
    report.found = _tally(summary.get("found", {"files": 0, "bytes": 0}))
    report.outcomes = {Outcome(name): _tally(some) for name, some in summary.get("outcomes", {}).items()}


def _tally(document: Mapping[str, Any]) -> Tally:
    return Tally(_whole(document["files"]), _whole(document["bytes"]))


def _whole(number: object) -> int:
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{number!r} is no count")
    return number
