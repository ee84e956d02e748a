"""Keeping account of a warming: what did not become resident and why, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.looks import GONE, Troubles
from fsxwarm.engine.report import Report
from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.model.entry import Trouble
from fsxwarm.model.mdt import LaneId, lane_of
from fsxwarm.model.messages import Finish, Say, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.tally import Tally

_NAMED: Final = 10


@dataclass(slots=True)
class Cold:
    """Files that did not become resident for one reason: how many, and the first of them.

    `errnos` counts the errors of those that had one, `detail` is what was said first of such an error.
    """

    tally: Tally = field(default_factory=Tally)
    first: list[bytes] = field(default_factory=list)
    errnos: Counter[int] = field(default_factory=Counter)
    detail: str = ""

    def add(self, finish: Finish) -> None:
        """Count one more."""
        self.tally.add(finish.entry.size)
        if len(self.first) < _NAMED:
            self.first.append(finish.entry.path)
        if finish.errno:
            self.errnos[finish.errno] += 1
            self.detail = self.detail or finish.detail


class Account:
    """Hears a `Warmer`: counts what it tells, and hands it on to a report and to whoever tells people.

    `cold` has the files that are not resident at the end, by outcome and reason; `troubles` what could not be looked
    at, without the list entries that the selection counts itself; `words` how often each word was said, by file;
    `lanes` the settled files that were asked for, by metadata target.
    """

    def __init__(
        self,
        *,
        report: Report | None = None,
        say: Callable[[Say], None] = lambda _: None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._report = report
        self._say = say
        self._ready = ready
        self.cold: dict[tuple[Outcome, Reason | None], Cold] = {}
        self.troubles = Troubles()
        self.words: Counter[Word] = Counter()
        self.lanes: Counter[LaneId] = Counter()
        self.is_ready = False

    def settled(self, finish: Finish) -> None:
        """A file has settled."""
        if finish.outcome is not Outcome.RESIDENT:
            self.lanes[lane_of(finish.entry.key)] += 1
        if not finish.outcome.warm:
            self.cold.setdefault((finish.outcome, finish.reason), Cold()).add(finish)
            if self._report is not None:
                self._report.settled(finish)

    def trouble(self, trouble: Trouble) -> None:
        """A folder or list entry could not be looked at."""
        if trouble.errno not in (*GONE, NOT_ON_LUSTRE):
            self.troubles.add(trouble)
        if self._report is not None:
            self._report.trouble(trouble)

    def said(self, say: Say) -> None:
        """Something of the whole is worth telling."""
        self.words[say.word] += max(1, len(say.files))
        self._say(say)

    def ready(self) -> None:
        """The share asked for is resident."""
        self.is_ready = True
        self._ready()
