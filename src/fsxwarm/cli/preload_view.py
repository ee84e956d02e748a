"""How `fsxwarm preload` looks at its end, as text and as JSON."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.padding import Padding

from fsxwarm.cli.output import console, name_errors, name_some, safe
from fsxwarm.cli.s3_view import checked_document, checked_lines
from fsxwarm.cli.schema import Cold as ColdDocument
from fsxwarm.cli.schema import PreloadDocument, Short, errnos, issues, json_path, tally, unusable
from fsxwarm.cli.snapshot import limit_of
from fsxwarm.cli.tables import add_tallies, plain_table, show_leftovers
from fsxwarm.cli.thaw import thaw_document, thaw_lines
from fsxwarm.cli.unlinked import unlinked_line
from fsxwarm.engine.account import Account, Cold
from fsxwarm.engine.advice import advice
from fsxwarm.engine.preflight import Preflight
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer
from fsxwarm.errors import Exit
from fsxwarm.model.outcome import Meaning, Outcome, Reason
from fsxwarm.model.shard import Shard
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_TITLES = {
    Outcome.RESIDENT: "resident already",
    Outcome.RESTORED: "restored",
    Outcome.FAILED: "failed",
    Outcome.BLOCKED: "blocked",
    Outcome.VANISHED: "vanished",
    Outcome.CANCELLED: "cancelled",
}
_ALWAYS = (Outcome.RESIDENT, Outcome.RESTORED)
_EXPLAINED = (Outcome.FAILED, Outcome.BLOCKED)


class Ended:
    """A warming that has ended, to be shown: `again` is the command line that resumes it, `report` its report.

    `fit` tells that it was to leave out what did not fit; `shard` is the part of the files that it was about.
    """

    def __init__(
        self,
        warmer: Warmer,
        account: Account,
        selection: Selection,
        preflight: Preflight,
        *,
        again: str,
        fit: bool,
        report: Path | None,
        shard: Shard | None = None,
    ) -> None:
        self.warmer = warmer
        self.selection = selection
        self.report = report
        self._shard = shard
        self._account = account
        self._checked = preflight.found
        self._thawing = preflight.thawing
        self._again = again
        self._fit = fit
        self.unlinked: list[bytes] = []
        """Paths that had nothing to restore and lie outside every association."""

    @property
    def waited_for_thaws(self) -> bool:
        """Whether it took longer than FSx needed."""
        return self._thawing is not None and self._thawing.thawed.files > 0

    @property
    def not_reached(self) -> Tally:
        """Files found, of which nobody had taken care when the run was stopped."""
        left = self.warmer.progress.remaining
        return Tally(max(0, left.files), max(0, left.bytes))

    # ---- text --------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Print it for people."""
        out = console()
        table = plain_table("", ["files", "size"])
        rows = [
            (_TITLES[outcome], some)
            for outcome, some in self.warmer.progress.settled.items()
            if some.files or outcome in _ALWAYS
        ]
        if self.not_reached.files:
            rows.append(("not reached", self.not_reached))
        add_tallies(table, rows)
        if self._shard is not None:
            out.print(f"shard {self._shard}")
        out.print(table)
        out.print()
        for line in self._effort():
            out.print(line)
        for line in checked_lines(self._checked):
            out.print(line)
        if self._thawing is not None:
            for line in thaw_lines(self._thawing):
                out.print(line)
        for (outcome, reason), cold in sorted(self._account.cold.items(), key=lambda item: -item[1].tally.files):
            if outcome in _EXPLAINED and reason is not None:
                _explain(out, outcome, advice(reason, fit=self._fit), cold)
        show_leftovers(out, self.selection, self._account.troubles)
        if self.unlinked:
            out.print(unlinked_line(self.unlinked), style="yellow")
        self._show_room(out)
        for line in self._next():
            out.print(line)

    def _effort(self) -> list[str]:
        progress = self.warmer.progress
        ended = progress.ended or progress.started
        scan = format_duration((progress.scan_ended or ended) - progress.started)
        unfinished = "" if progress.scan_ended is not None else ", not finished"
        if progress.first_asked is None:
            return [f"scan {scan}{unfinished}; nothing was asked for"]
        files, size = progress.mean_rate(ended)
        took = format_duration(ended - progress.first_asked)
        looks = format_count(self.warmer.looker.cost.total(), "look")
        requests = format_count(self.warmer.requests, "request")
        return [
            f"scan {scan}{unfinished}; restore {took}, {files:,.0f} files/s, {format_rate(size)}; {requests}, {looks}"
        ]

    def _show_room(self, out: Console) -> None:
        short = self._short()
        if short is None:
            return
        bound = self.warmer.short_of is not None and self.warmer.short_of.bound_by_ost
        why = "the fullest OST allows no more" if bound else "less the reserve"
        out.print(
            f"not enough room: {format_size(short['blocked'])} more wanted,"
            f" {format_size(short['available'])} may be used of {format_size(short['free'])} free ({why})",
            style="yellow",
        )

    def _next(self) -> list[str]:
        progress = self.warmer.progress
        lines = []
        if progress.left_in_flight.files:
            left = progress.left_in_flight
            lines.append(  # of a request that hangs nobody knows whether it has reached FSx
                f"{format_count(left.files, 'file')}, {format_size(left.bytes)}, still in flight: FSx goes on with what"
                " has reached it, without fsxwarm"
            )
        if self.warmer.stopped in {Reason.INTERRUPTED, Reason.DEADLINE}:
            lines.append(f"to resume: {safe(self._again)}")
        elif progress.settled[Outcome.FAILED].files:
            if self.report is None:
                lines.append("to have them all listed: run again with --report FILE")
            else:
                lines.append(f"to try these again: fsxwarm preload --retry-failed {safe(str(self.report))}")
        if self.report is not None:
            lines.append(f"report: {safe(str(self.report))}")
        return lines

    # ---- JSON --------------------------------------------------------------------------------------------------

    def document(self, code: Exit) -> PreloadDocument:
        """Write it as the object that `--json` prints."""
        warmer, progress = self.warmer, self.warmer.progress
        ended = progress.ended or progress.started
        files, size = progress.mean_rate(ended)
        lanes = sorted(warmer.machine.lanes.items())
        document: PreloadDocument = {
            "schema": "fsxwarm.preload/1",
            "exit": int(code),
            "found": tally(progress.found),
            "outcomes": {outcome.value: tally(some) for outcome, some in progress.settled.items()},
            "cold": [self._cold(outcome, reason, cold) for (outcome, reason), cold in self._account.cold.items()],
            "not_reached": tally(self.not_reached),
            "in_flight": tally(progress.left_in_flight),
            "skipped": progress.skipped,
            "scan_complete": progress.scan_ended is not None,
            "requests": warmer.requests,
            "look_ups": {look.value: count for look, count in warmer.looker.cost.items()},
            "scan_seconds": (progress.scan_ended or ended) - progress.started,
            "restore_seconds": 0.0 if progress.first_asked is None else ended - progress.first_asked,
            "rates": {"files_per_second": files, "bytes_per_second": size},
            "window": {
                "size": sum(lane.window.size for _, lane in lanes),
                "limit": limit_of([lane for _, lane in lanes]),
                "targets": [{"dev": name.dev, "mdt": name.mdt, "window": lane.window.size} for name, lane in lanes],
            },
            "s3": checked_document(self._checked),
            "missing": unusable(self.selection.missing),
            "outside": unusable(self.selection.outside),
            "troubles": issues(self._account.troubles),
        }
        if self._shard is not None:
            document["shard"] = str(self._shard)
        if self._thawing is not None:
            document["thaw"] = thaw_document(self._thawing)
        if (short := self._short()) is not None:
            document["short"] = short
        if self.report is not None:
            document["report"] = json_path(bytes(self.report))
        if self.unlinked:
            document["unlinked"] = [json_path(path) for path in self.unlinked]
        if self._account.is_ready:
            document["ready"] = True
        return document

    def _short(self) -> Short | None:
        blocked = self._account.cold.get((Outcome.BLOCKED, Reason.NO_ROOM))
        measure = self.warmer.short_of
        if measure is None or blocked is None:
            return None
        return {"free": measure.space.free, "available": measure.available, "blocked": blocked.tally.bytes}

    def _cold(self, outcome: Outcome, reason: Reason | None, cold: Cold) -> ColdDocument:
        meaning = None if reason is None else advice(reason, fit=self._fit)
        return {
            **tally(cold.tally),
            "outcome": outcome.value,
            "reason": None if reason is None else reason.value,
            "first": [json_path(path) for path in cold.first],
            "errnos": errnos(cold.errnos),
            "what": "" if meaning is None else meaning.what,
            "todo": "" if meaning is None else meaning.todo,
        }


def _explain(out: Console, outcome: Outcome, meaning: Meaning, cold: Cold) -> None:
    out.print(f"{format_count(cold.tally.files, 'file')} {outcome.value}: {meaning.what}", style="yellow")
    out.print(_indented(name_some(cold.first, cold.tally.files)))
    if cold.errnos:
        out.print(_indented(name_errors(cold.errnos, cold.detail)))
    out.print(_indented(f"→ {meaning.todo}"))


def _indented(text: str) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)
