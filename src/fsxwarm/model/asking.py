"""Asking for files: whose turn it is, in which company, and what a refusal means."""

from __future__ import annotations

import math
from typing import Final

from fsxwarm.model.book import Book
from fsxwarm.model.diagnosis import AGAIN, REFUSED
from fsxwarm.model.file import File, Phase
from fsxwarm.model.lane import Lane
from fsxwarm.model.messages import Answered, Look, Overdue, Say, Stale, Submit, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.schedule import Turns

_LOOK_AHEAD: Final = 1.0
"""Seconds ahead of its turn that a file's action is looked at; less than a look stays fresh."""
_LINGER: Final = 5.0
"""Seconds for which room in a window waits for more room, so that requests are large, or for a look that is out."""


class Request:
    """Files that were asked for in one call, in its order; kept until the call is answered and each file placed."""

    __slots__ = ("errno", "files", "text")

    def __init__(self, files: list[File]) -> None:
        self.files = files
        self.errno = 0
        self.text = ""


class Asking:
    """Fills the windows, and places the files of requests that came back."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._policy = book.policy
        self.requests: dict[int, Request] = {}
        self._number = 0
        self._taken_once = False
        self._lone_refusals = 0

    def fill(self, lane: Lane, now: float) -> None:
        """Look ahead, look before asking, ask: as far as the lane's window allows."""
        self._look_ahead(lane)
        self._look_before_asking(lane, now)
        self._ask(lane, now)

    def held_up(self, file: File) -> bool:
        """Whether another file of the same request is on its way at FSx, so that the call may yet go on."""
        request = self.requests.get(file.request)
        return request is not None and any(
            self._book.has(other) and other.phase in {Phase.IN_FLIGHT, Phase.WATCHED} for other in request.files
        )

    def _look_ahead(self, lane: Lane) -> None:
        """Learn the flags of found files ahead of their turn, in batches as large as can be; pass on the believed."""
        batch = self._policy.look_batch
        while lane.unseen and lane.looking_ahead < 4 * batch:
            if not lane.unseen.leads(lane.cold):  # else it would not get its turn before those that are ahead of it
                company = len(lane.unseen) >= batch or not self._book.walking or len(lane.cold) <= lane.window.size
                if not company or len(lane.cold) >= 2 * max(batch, lane.window.size):
                    return
            first = self._book.doubt.first
            if first is not None and lane.looking_ahead:
                return
            blind = lane.unseen.peek().unreadable
            taken = self._take(lane.unseen, min(batch, first or batch), blind=blind)
            doubtful: list[File] = []
            for file in taken:
                if blind or self._is_doubtful(file):
                    doubtful.append(file)
                else:
                    lane.cold.put(file)
            self._book.doubt.looked(len(taken), len(doubtful))
            self._book.look(Look.RELEASED if blind else Look.STATE, doubtful)

    def _is_doubtful(self, file: File) -> bool:
        """Whether a look at a file's flags may tell something new."""
        known = file.barred is None and not file.aged and self._book.rounds.by_stat(file)
        return not known or self._book.doubt.about(file.entry.size)

    @staticmethod
    def _take(queue: Turns[File], most: int, *, blind: bool) -> list[File]:
        taken: list[File] = []
        while queue and len(taken) < most and queue.peek().unreadable is blind:
            taken.append(queue.pop())
        return taken

    def _look_before_asking(self, lane: Lane, now: float) -> None:
        """Look at the actions of those whose turn comes within a second, in batches larger than requests."""
        window = lane.window
        lane.limited_by_window = window.size - lane.at_fsx < len(lane.cold)
        if not lane.cold or self._book.stopped or now < window.paused_until:
            return
        if lane.counts[Phase.WATCHED] >= self._policy.watched:
            return
        pending = lane.counts[Phase.LOOKING] + lane.counts[Phase.READY] - lane.held_up(now)
        turnover = min(window.rate_files * _LOOK_AHEAD, float(self._policy.ask_ahead))
        wanted = window.size - lane.at_fsx - pending + int(turnover)
        if wanted <= 0 or (pending + lane.at_fsx and wanted < max(self._worthwhile(lane, now), 0.7 * turnover)):
            return
        taken = self._affordable(lane, min(wanted, self._policy.ask_ahead))
        doubtful: list[File] = []
        for file in taken:
            if file.unreadable or self._is_skipped(file):
                self._book.move(file, Phase.READY)
                file.fresh_until = math.inf
                lane.ready.append(file)
            else:
                doubtful.append(file)
        if doubtful:
            lane.looks.append((now + _LINGER, doubtful))
            self._book.look(Look.ACTION, doubtful)

    def _is_skipped(self, file: File) -> bool:
        """Whether a request for a file does no harm if somebody else has it in flight; ours may be another matter."""
        return file.entry.dev in self._policy.skip_duplicates and not file.request

    def _worthwhile(self, lane: Lane, now: float) -> int:
        """How many files are worth a request: half of a small window, so that the other half keeps FSx busy.

        One, where nothing has come of that half for a while.
        """
        if now > lane.quiet_since + _LINGER:
            return 1
        least = min(self._policy.request, max(1, lane.window.moving // 2))
        if not self._book.walking and not lane.unseen and not lane.looking_ahead:
            return min(least, max(1, len(lane.cold) + len(lane.ready)))
        return least

    def _affordable(self, lane: Lane, most: int) -> list[File]:
        """Take files whose turn it is, as far as free space goes."""
        taken: list[File] = []
        while lane.cold and len(taken) < most:
            file = lane.cold.peek()
            dev, size = file.entry.dev, file.entry.size
            if dev in self._book.room and self._book.claimed[dev] + size > self._book.room[dev]:
                if not self._book.claimed[dev]:  # nothing of ours on its way that could explain it: it does not fit
                    self._book.block_the_rest(dev, size)
                break
            lane.cold.pop()
            self._book.move(file, Phase.LOOKING)
            taken.append(file)
        return [file for file in taken if self._book.has(file)]  # empty ones that were taken may be among the blocked

    def _ask(self, lane: Lane, now: float) -> None:
        filling = False
        while lane.ready and not self._book.stopped and now >= lane.window.paused_until:
            room = lane.window.size - lane.at_fsx
            if room <= 0 or not (filling or self._is_worth_it(lane, room, now)):
                break
            most = self._policy.request
            if lane.window.moving < 2 * most:
                # To the brim: files that end together would never leave room for a request of the rest.
                filling = True
                todo = min(room, len(lane.ready))
                most = math.ceil(todo / math.ceil(todo / most))
            batch = self._next_request(lane, min(room, most), now)
            if batch:
                self._submit(lane, batch, now)
        for file in [file for file in lane.ready if file.fresh_until < now]:
            lane.ready.remove(file)
            self._book.back_to_queue(file)

    def _is_worth_it(self, lane: Lane, room: int, now: float) -> bool:
        """Whether to ask now, or to wait for more room or more company."""
        if not lane.at_fsx:
            return True
        least = self._worthwhile(lane, now)
        more_to_come = lane.counts[Phase.LOOKING] or lane.cold
        return room >= least and (len(lane.ready) >= least or not more_to_come)

    def _next_request(self, lane: Lane, most: int, now: float) -> list[File]:
        batch: list[File] = []
        while lane.ready and len(batch) < most:
            file = lane.ready[0]
            if file.fresh_until < now:
                lane.ready.popleft()
                self._book.back_to_queue(file)
                continue
            if batch and (file.crowd <= len(batch) or batch[0].unreadable is not file.unreadable):
                break
            lane.ready.popleft()
            batch.append(file)
            most = min(most, file.crowd)
        return batch

    def _submit(self, lane: Lane, batch: list[File], now: float) -> None:
        self._number += 1
        number = self._number
        for file in batch:
            self._book.move(file, Phase.SUBMITTED)
            file.request = number
            file.attempts += 1
            file.asked = now
            file.looking = None
            file.strayed = False
        self.requests[number] = Request(batch)
        lane.quiet_since = now
        lane.window.submitted(len(batch), lane.at_fsx, now)
        self._book.out.append(
            Submit(number, tuple(file.entry for file in batch), min(file.fresh_until for file in batch))
        )

    def _members(self, number: int, *phases: Phase) -> list[File]:
        request = self.requests.get(number)
        if request is None:
            return []
        return [f for f in request.files if self._book.has(f) and f.request == number and f.phase in phases]

    def answered(self, event: Answered, now: float) -> None:
        """A request came back."""
        request = self.requests.get(event.request)
        if request is None:
            return
        members = self._members(event.request, Phase.SUBMITTED, Phase.LIMBO)
        if event.errno == 0:
            self._taken_once = True
            for file in members:
                self._book.watch(file, Phase.IN_FLIGHT, now)
            del self.requests[event.request]
            return
        request.errno, request.text = event.errno, event.text
        if event.errno == AGAIN:
            for lane_id in {file.lane for file in members}:
                window = self._book.lanes[lane_id].window
                window.refused(now)
                self._book.out.append(Say(Word.PAUSED, seconds=window.paused_until - now))
        for file in members:
            self._book.move(file, Phase.REFUSED)
            file.not_before = now
            self._book.rounds.schedule(file, now)
        if not members:
            del self.requests[event.request]

    def regroup(self, number: int, now: float) -> None:
        """Place what is left of a refused request, now that each of its files has been looked at.

        The server takes items in order and stops at the first it refuses, so the first file that is neither queued
        nor explained by its flags is the culprit: it is asked for alone, the others in smaller company.
        """
        left = self._members(number, Phase.REFUSED)
        if any(file.looking is not None or file.due is not None for file in left):
            return
        request = self.requests.pop(number, None)
        if request is None:
            return
        alone = len(request.files) == 1
        for position, file in enumerate(reversed(left)):
            if request.errno == AGAIN:
                file.attempts -= 1
            elif alone:
                self._refused_alone(file, request, now)
                return
            else:
                file.attempts -= 1
                first = position == len(left) - 1
                file.crowd = 1 if first else max(1, min(file.crowd, len(request.files)) // 2)
            self._book.back_to_queue(file)

    def _refused_alone(self, file: File, request: Request, now: float) -> None:
        if file.unreadable and request.errno != REFUSED:
            self._book.watch(file, Phase.IN_FLIGHT, now)  # it may have been queued before the error: nobody can tell
            return
        self._book.move(file, Phase.BACKOFF)  # it was looked at after the refusal: nothing is queued
        if request.errno != REFUSED:
            if file.attempts >= self._policy.attempts:
                self._book.finish(file, Outcome.FAILED, Reason.REQUEST_FAILED, errno=request.errno, detail=request.text)
            else:
                self._book.attempt_failed(file, now)
            return
        self._lone_refusals += 1
        self._book.finish(file, Outcome.FAILED, Reason.REFUSED, errno=request.errno, detail=request.text)
        if self._lone_refusals >= self._policy.hopeless and not self._taken_once:
            self._book.out.append(Say(Word.NOT_ALLOWED))

    def overdue(self, event: Overdue, now: float) -> None:
        """A request hangs: its files may be queued or not, now or later."""
        members = self._members(event.request, Phase.SUBMITTED)
        for file in members:
            self._book.move(file, Phase.LIMBO)
            self._book.set_stuck(file, stuck=True)
            file.moved_at = now
            self._book.rounds.schedule(file, now)
        if members:
            self._book.out.append(Say(Word.CALL_HUNG, tuple(file.entry for file in members)))

    def stale(self, event: Stale) -> None:
        """A request was not sent: its files wait for another look."""
        for file in reversed(self._members(event.request, Phase.SUBMITTED)):
            file.attempts -= 1
            self._book.back_to_queue(file)
        self.requests.pop(event.request, None)
