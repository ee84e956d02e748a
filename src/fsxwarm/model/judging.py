"""Judging looks: what was seen of a file, and what follows from it."""

from __future__ import annotations

from typing import Final

from fsxwarm.model.asking import Asking
from fsxwarm.model.book import Book
from fsxwarm.model.diagnosis import FORBIDDEN, GONE, TOO_LONG, Verdict, diagnose, why_blocked
from fsxwarm.model.entry import Trouble
from fsxwarm.model.file import File, Phase
from fsxwarm.model.hsm import Flags
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import Cancel, Cancelled, Look, Looked, Say, Sight, Word
from fsxwarm.model.outcome import Outcome, Reason

_INSTANT: Final = 1e-3
"""Seconds after its patience has run out that a file is asked after: it is over by then."""


class Judging:
    """Takes in looks; each file that was looked at moves on, settles, or is due for another look."""

    def __init__(self, book: Book, asking: Asking) -> None:
        self._book = book
        self._asking = asking
        self._policy = book.policy

    def looked(self, event: Looked, now: float) -> None:
        """A look came back."""
        refused: dict[int, None] = {}
        lanes: set[LaneId] = set()
        for key, sight in event.sights.items():
            file = self._book.files.get(key)
            if file is None or file.looking is not event.how:
                continue
            file.looking = None
            lanes.add(file.lane)
            if event.started < file.not_before:
                self._book.rounds.schedule(file, now)
                continue
            if file.phase is Phase.REFUSED:
                refused[file.request] = None
            if sight.trouble is not None:
                self._troubled(file, sight.trouble, now)
                continue
            file.looks_failed = 0
            if sight.flags is not None:
                file.flags = sight.flags
                file.released |= sight.flags.released
            if sight.action is not None:
                file.released |= sight.action.restoring
            self._seen(file, event, sight, now)
        for lane_id in lanes:
            self._book.lanes[lane_id].diagnosing &= event.how is not Look.BOTH
        for number in refused:
            self._asking.regroup(number, now)

    def cancelled(self, event: Cancelled, now: float) -> None:
        """The server took, or refused, to cancel stuck requests: see what became of them."""
        for key in event.keys:
            file = self._book.files.get(key)
            if file is not None and file.phase is Phase.CURING:
                self._book.rounds.schedule(file, now + 1.0)

    def _seen(self, file: File, event: Looked, sight: Sight, now: float) -> None:
        match file.phase:
            case Phase.QUEUED:
                self._seen_first(file, sight)
            case Phase.LOOKING:
                self._seen_before_asking(file, event, sight, now)
            case Phase.IN_FLIGHT | Phase.WATCHED if event.how is not Look.BOTH:
                self._seen_in_flight(file, event, sight, now)
            case Phase.IN_FLIGHT | Phase.WATCHED:
                self._diagnosed(file, sight, now)
            case Phase.REFUSED | Phase.LIMBO:
                self._seen_unclear(file, sight, now)
            case Phase.CURING:
                self._seen_curing(file, sight, now)
            case _:
                pass

    def _seen_first(self, file: File, sight: Sight) -> None:
        if sight.flags is not None:
            self._book.doubt.read(file.entry.size, surprise=not sight.flags.restorable)
        if sight.resident is True or (sight.flags is not None and not sight.flags.released):
            self._book.finish(file, Outcome.RESIDENT)
        elif sight.flags is not None and not sight.flags.restorable:
            self._book.finish(file, Outcome.BLOCKED, why_blocked(sight.flags))
        elif file.barred is not None:
            self._book.finish(file, Outcome.BLOCKED, file.barred)
        else:
            self._book.lane(file).cold.put(file)

    def _seen_before_asking(self, file: File, event: Looked, sight: Sight, now: float) -> None:
        action = sight.action
        if action is None or action.idle:
            self._book.move(file, Phase.READY)
            file.fresh_until = event.started + self._policy.fresh
            self._book.lane(file).ready.append(file)
        elif action.restoring:
            self._book.watch(file, Phase.WATCHED, now)
        else:
            self._book.move(file, Phase.BACKOFF)
            self._book.rounds.schedule(file, now + self._policy.floor)

    def _seen_in_flight(self, file: File, event: Looked, sight: Sight, now: float) -> None:
        resident = sight.resident if sight.flags is None else not sight.flags.released
        self._book.rounds.polled(file, event.how, resident=bool(resident))
        if resident:
            self._book.restored(file, now)
        elif file.unreadable and now - file.asked > max(
            self._policy.cap, 20 * self._book.pace.deadline(file.entry.size)
        ):
            self._book.finish(
                file, Outcome.FAILED, Reason.UNREADABLE, detail="still released, and its action not visible"
            )
        else:
            self._book.rounds.again(file, now)

    def _diagnosed(self, file: File, sight: Sight, now: float) -> None:
        verdict = diagnose(sight, file.moved)
        if file.phase is Phase.IN_FLIGHT:
            self._book.pace.late_file_was(file.entry.size, failed=verdict is Verdict.IDLE)
        match verdict:
            case Verdict.RESIDENT:
                by_stat = self._book.rounds.by_stat(file)
                self._book.rounds.polled(file, Look.BOTH, resident=True, by_stat=sight.resident)
                self._resident(file, sight, now, by_stat=by_stat)
                return
            case Verdict.IDLE if file.phase is Phase.WATCHED:
                self._book.back_to_queue(file)
                return
            case Verdict.IDLE:
                self._book.attempt_failed(file, now)
                return
            case Verdict.HOPELESS if sight.flags is not None:
                self._blocked(file, sight.flags)
                return
            case _:
                self._goes_on(file, sight, verdict, now)
        if file.phase in {Phase.IN_FLIGHT, Phase.WATCHED} and file.key in self._book.files:
            self._book.rounds.again(file, now, diagnosed=True)
            patience = self._policy.cure_patience if file.strayed else self._policy.patience
            if (runs_out := file.moved_at + self._too_long(file, patience)) > now:
                file.late = min(file.late, runs_out + _INSTANT)

    def _goes_on(self, file: File, sight: Sight, verdict: Verdict, now: float) -> None:
        """A late file is on its way: note how far it has come, and whether it is stuck."""
        match verdict:
            case Verdict.QUEUED:
                lane = self._book.lane(file)
                file.moved_at = now
                lane.waiting_asked = file.asked
                lane.waiting_until = now + self._book.rounds.grace(file, now)
            case Verdict.MOVING if sight.action is not None:
                file.moved, file.moved_at = sight.action.moved, now
                starts = not sight.action.moved  # it may have begun just now, or long ago
                self._book.set_stuck(file, stuck=starts and self._book.pace.is_slow(file.entry.size, now - file.asked))
            case Verdict.WEDGED:
                self._stuck(file, Reason.WEDGED, now)
            case Verdict.FROZEN if now - file.moved_at > self._too_long(file, self._policy.patience):
                self._stuck(file, Reason.STALLED, now)
            case Verdict.FROZEN if self._book.pace.is_slow(file.entry.size, now - file.moved_at):
                self._book.set_stuck(file, stuck=True)
            case _:
                pass

    def _resident(self, file: File, sight: Sight, now: float, *, by_stat: bool) -> None:
        """Settle a file that has come to be resident, or has been all the time.

        Where a stat shows that files of its size have been restored, but does not show it of this one, whose flags
        nobody has seen released, there was nothing to restore: it is sparse, or so new that it has no blocks.
        """
        if by_stat and not (file.released or sight.resident):
            self._book.doubt.read(file.entry.size, surprise=True)
            self._book.finish(file, Outcome.RESIDENT)
        else:
            self._book.restored(file, now, on_time=not by_stat)

    def _blocked(self, file: File, flags: Flags) -> None:
        self._book.doubt.read(file.entry.size, surprise=True)
        self._book.finish(file, Outcome.BLOCKED, why_blocked(flags))

    def _stuck(self, file: File, reason: Reason, now: float) -> None:
        idle_for = now - file.moved_at
        if not file.stalled:
            self._book.has_stalled(file)
            word = Word.FILE_WEDGED if reason is Reason.WEDGED else Word.FILE_STALLED
            self._book.out.append(Say(word, (file.entry,), idle_for))
        curable = self._policy.may_cancel and file.cures < self._policy.cures
        if curable and (reason is Reason.WEDGED or idle_for > self._too_long(file, self._policy.cure_patience)):
            # Whoever asked for it: an earlier run perhaps, which is no more.
            file.cures += 1
            self._book.move(file, Phase.CURING)
            self._book.out.append(Cancel((file.entry,)))
        elif idle_for > self._policy.give_up:
            self._book.finish(file, Outcome.FAILED, reason)

    def _too_long(self, file: File, patience: float) -> float:
        return self._book.pace.frozen(file.entry.size, patience)

    def _seen_curing(self, file: File, sight: Sight, now: float) -> None:
        match diagnose(sight, file.moved):
            case Verdict.RESIDENT:
                self._book.restored(file, now)
            case Verdict.IDLE:
                file.attempts = max(0, file.attempts - 1)  # a request that got stuck was no attempt at a restore
                self._book.back_to_queue(file)
                self._book.out.append(Say(Word.CURED, (file.entry,)))
            case Verdict.HOPELESS if sight.flags is not None:
                self._blocked(file, sight.flags)
            case _ if now - file.moved_at > self._policy.give_up:
                self._book.finish(file, Outcome.FAILED, Reason.STALLED, detail="cancelled, and still in the queue")
            case _:
                self._book.rounds.schedule(file, now + 2.0)

    def _seen_unclear(self, file: File, sight: Sight, now: float) -> None:
        match diagnose(sight, file.moved):
            case Verdict.RESIDENT:
                self._resident(file, sight, now, by_stat=self._book.rounds.by_stat(file))
            case Verdict.QUEUED | Verdict.MOVING | Verdict.FROZEN | Verdict.WEDGED:
                self._book.watch(file, Phase.IN_FLIGHT, now)
            case Verdict.HOPELESS if sight.flags is not None:
                self._blocked(file, sight.flags)
            case _ if file.phase is Phase.LIMBO:
                self._limbo_goes_on(file, now)
            case _:
                pass  # refused and idle: _regroup decides, for all of its request together

    def _limbo_goes_on(self, file: File, now: float) -> None:
        if self._asking.held_up(file):
            file.moved_at = now
        if now - file.moved_at > self._policy.limbo:
            self._book.finish(file, Outcome.FAILED, Reason.HUNG)
        else:
            self._book.rounds.schedule(file, now + self._policy.floor)

    def _troubled(self, file: File, trouble: Trouble, now: float) -> None:
        if trouble.errno in GONE:
            if file.renamed():
                self._look_again(file, now)
            else:
                self._book.finish(file, Outcome.VANISHED, Reason.GONE, errno=trouble.errno)
            return
        if trouble.errno == TOO_LONG:
            self._book.finish(file, Outcome.FAILED, Reason.NAME_TOO_LONG, errno=trouble.errno)
            return
        if trouble.errno in FORBIDDEN and not file.unreadable:
            file.unreadable = True
            file.crowd = 1  # refused in company, nobody could tell whether it was queued before the refusal
            self._look_again(file, now)
            return
        file.looks_failed += 1
        if file.looks_failed >= 5:  # noqa: PLR2004 - five failures in a row are no accident
            reason = Reason.UNREADABLE if trouble.errno in FORBIDDEN else Reason.IO_ERROR
            self._book.finish(file, Outcome.FAILED, reason, errno=trouble.errno, detail=trouble.text)
        elif file.phase in {Phase.QUEUED, Phase.LOOKING, Phase.READY}:
            self._book.move(file, Phase.BACKOFF)
            self._book.rounds.schedule(file, now + file.looks_failed)
        else:
            self._book.rounds.schedule(file, now + file.looks_failed)

    def _look_again(self, file: File, now: float) -> None:
        """Look at a file at once, in another way or under another name."""
        if file.phase is Phase.LOOKING:
            self._book.back_to_queue(file)
        elif file.phase is Phase.QUEUED:
            self._book.lane(file).unseen.put(file, ahead=True)
        elif file.phase is not Phase.REFUSED:
            self._book.rounds.schedule(file, now)
