"""Hears what a preload says while it runs, and holds it against the truth."""

from __future__ import annotations

from errno import EAGAIN

from dst.ledger import SLACK, Check, Ledger
from dst.plan import Command, Plan
from dst.watch import Process
from fsxwarm.engine.warm import Warmer
from fsxwarm.errors import Exit, worst
from fsxwarm.model.diagnosis import why_blocked
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.mdt import LaneId, lane_of
from fsxwarm.model.messages import Answered, Event, Finish, Instruction, Say, Submit, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.model.warming import Warming

LEFT_ALONE = 1.0
"""Seconds for which a target that takes nothing is left alone at the least."""
NOT_WHILE_RESIDENT = {Reason.RESTORE_FAILED, Reason.STALLED, Reason.WEDGED}


class CheckedWarming(Warming):
    """The machine, validated after each event; tells at which window each request was decided on."""

    def __init__(self, policy: Policy, now: float, process: Process) -> None:
        super().__init__(policy, now)
        self._process = process
        self._lanes: dict[int, set[LaneId]] = {}
        self._refused: dict[LaneId, float] = {}

    def handle(self, event: Event, now: float) -> list[Instruction]:
        if isinstance(event, Answered) and event.errno == EAGAIN:
            self._refused.update(dict.fromkeys(self._lanes.get(event.request, ()), now))
        out = super().handle(event, now)
        self.validate()
        for instruction in out:
            if isinstance(instruction, Submit):
                lane = lane_of(instruction.files[0].key)
                self._lanes[instruction.request] = {lane_of(entry.key) for entry in instruction.files}
                since = now - self._refused.get(lane, -LEFT_ALONE)
                what = f"target {lane.mdt} is asked again {since:.3f} s after it took nothing (EAGAIN)"
                self._process.ledger.must(since >= LEFT_ALONE, Check.ASKS_RIGHTLY, what)
                size = self.policy.window.fixed or self.lanes[lane].window.size
                self._process.decided.append((now, lane, size))
        return out


class Hearing:
    """The listener of one preload. It fails when what is said does not agree with the world."""

    def __init__(self, plan: Plan, command: Command, process: Process) -> None:
        self._plan = plan
        self._command = command
        self._process = process
        self._ledger: Ledger = process.ledger
        self.finished: dict[Key, Finish] = {}
        self.was_ready = False

    # ---- the listener ------------------------------------------------------------------------------------------

    def settled(self, finish: Finish) -> None:
        if not self._process.alive:
            return
        entry = finish.entry
        self._ledger.tell(entry.key, f"{self._process.name} settles it: {finish.outcome} {finish.reason or ''}")
        self._must(entry.key not in self.finished, f"{entry.path!r} settled twice")
        self._must(entry.key in self._process.delivered, f"{entry.path!r} settled and was never found")
        self.finished[entry.key] = finish
        self._check_outcome(finish)
        self._process.given_up.add(entry.key)

    def _check_outcome(self, finish: Finish) -> None:
        entry = finish.entry
        match finish.outcome:
            case Outcome.RESIDENT | Outcome.RESTORED:
                self._check_warm(finish)
            case Outcome.FAILED:
                self._check_failed(finish)
            case Outcome.BLOCKED:
                self._check_blocked(finish)
            case Outcome.VANISHED:
                self._check_vanished(entry)
            case Outcome.CANCELLED:
                good = finish.reason in {Reason.INTERRUPTED, Reason.DEADLINE}
                self._must(good, f"{entry.path!r} cancelled: {finish.reason}")
                node = self._ledger.node(entry.key)
                ours = node is not None and self._process.in_flight(node)
                self._must(finish.in_flight or not ours, f"{entry.path!r} is in flight and let go without saying so")

    def said(self, say: Say) -> None:
        if self._process.alive and say.word is Word.RETRY:
            for entry in say.files:
                self._check_was_idle(entry, "tried again")

    def trouble(self, trouble: Trouble) -> None:
        pass

    def ready(self) -> None:
        if not self._process.alive:
            return
        self._must(not self.was_ready, "ready twice")
        self.was_ready = True
        items = self._process.items
        todo = (self._command.wish.ready or 0.0) * sum(_size(item) for item in items)
        for item in items:
            if todo <= 0:
                break
            todo -= _size(item)
            if isinstance(item, Entry) and not item.proves_resident:
                finish = self.finished.get(item.key)
                good = finish is not None and (finish.outcome.warm or finish.outcome is Outcome.VANISHED)
                self._must(good or not item.size, f"ready, and {item.path!r} is not: {finish}")

    # ---- against the truth -------------------------------------------------------------------------------------

    def _must(self, truth: object, what: str) -> None:
        self._ledger.must(truth, Check.SETTLES, f"{self._process.name}: {what}")

    def _check_warm(self, finish: Finish) -> None:
        entry, ledger = finish.entry, self._ledger
        since = self._process.born if entry.proves_resident else ledger.now - SLACK
        nodes = (ledger.node(entry.key), ledger.at(entry.path))
        warm = any(node is not None and ledger.was_resident(node, since) for node in nodes)
        self._must(warm, f"{entry.path!r} is {finish.outcome}, but its data is not there")

    def _check_failed(self, finish: Finish) -> None:
        entry, process, path = finish.entry, self._process, finish.entry.path
        node = self._ledger.node(entry.key)
        if finish.reason in NOT_WHILE_RESIDENT and node is not None:
            since = self._ledger.resident_since(node)
            good = since is None or since > self._ledger.now - SLACK
            self._must(good, f"{path!r} failed ({finish.reason}), but has been resident since {since} s")
        match finish.reason:
            case Reason.RESTORE_FAILED:
                attempts = self._command.policy.attempts
                tried = process.asked_times[path]
                self._must(attempts <= tried, f"{path!r} failed after {tried} of {attempts} requests")
                self._check_was_idle(entry, "failed")
            case Reason.HUNG:
                self._must(path in process.hung, f"{path!r} failed as hung, and no call of it hung")
            case Reason.REFUSED:
                alone = path in process.refused_alone
                self._must(alone, f"{path!r} failed as refused, and was never refused by itself")
            case Reason.IO_ERROR:
                self._must(process.failed_looks[path], f"{path!r} failed without an error")
            case Reason.REQUEST_FAILED:
                self._must(process.refused[path], f"{path!r} failed as asked for in vain, and no request of it failed")
            case Reason.UNREADABLE:
                self._must(process.failed_looks[path], f"{path!r} failed as unreadable, and was read")
            case Reason.STALLED | Reason.WEDGED:
                stuck = node is None or node.in_flight or not self._ledger.idle_since(node, SLACK)
                self._must(stuck, f"{path!r} failed as {finish.reason}, and is not in flight")
            case _:
                self._must(False, f"{path!r} failed without a reason: {finish.reason}")

    def _check_blocked(self, finish: Finish) -> None:
        path = finish.entry.path
        if finish.reason is Reason.NO_ROOM:
            small = self._plan.spec.ost_size < 10**14 and self._command.wish.reserve is not None
            self._must(small, f"{path!r} is blocked for lack of room, and there is plenty")
            return
        seen = self._process.states.get(path)
        flags = seen.answer if seen is not None else None
        good = isinstance(flags, Flags) and flags.released and not flags.restorable
        self._must(good, f"{path!r} is blocked ({finish.reason}), but {flags!r} was seen")
        if isinstance(flags, Flags):
            self._must(
                why_blocked(flags) is finish.reason, f"{path!r} is blocked as {finish.reason}, and has {flags!r}"
            )

    def _check_vanished(self, entry: Entry) -> None:
        node = self._ledger.node(entry.key)
        there = node is not None and self._ledger.at(entry.path) is node
        self._must(not there, f"{entry.path!r} is said to have vanished, and is there")

    def _check_was_idle(self, entry: Entry, what: str) -> None:
        """Only a file that was released and had no action at one and the same moment has failed to be restored."""
        process, path = self._process, entry.path
        if process.blind(path) or process.refused[path]:
            return
        recent = any(moment.at >= self._ledger.now - SLACK for moment in process.idle[path])
        self._must(recent, f"{path!r} {what}, but was never seen released and idle")

    def unsettled(self) -> list[bytes]:
        """Files that were found and have not settled."""
        process = self._process
        wanted = [entry for entry in process.entries.values() if not entry.proves_resident]
        return [entry.path for entry in wanted if entry.key not in self.finished]

    # ---- the end -----------------------------------------------------------------------------------------------

    def check_end(self, warmer: Warmer, status: Exit) -> None:
        """Check the numbers of a run that has ended by itself, or by being interrupted."""
        process, progress = self._process, warmer.progress
        wanted = {key for key in process.delivered if not process.entries[key].proves_resident}
        stopped = warmer.stopped is not None
        lost = wanted - self.finished.keys()
        self._must(stopped or not lost, f"never settled: {[process.entries[key].path for key in lost]}")
        for outcome, tally in progress.settled.items():
            mine = [finish.entry.size for finish in self.finished.values() if finish.outcome is outcome]
            files, size = len(mine), sum(mine)
            if outcome is Outcome.RESIDENT:
                if stopped:
                    continue
                proven = [process.entries[key].size for key in process.delivered if key not in wanted]
                files += len(proven) + process.residents
                size += sum(proven) + process.resident_bytes
            same = (tally.files, tally.bytes) == (files, size)
            self._must(same, f"{tally} counted as {outcome}, {files} files of {size} bytes are")
        if not stopped:
            found = len(process.delivered) + process.residents
            self._must(progress.found.files == found, f"{progress.found.files} files found, {found} are there")
            self._must(not progress.remaining.files, f"{progress.remaining} remain at the end")
        self._must(status is self._status(warmer), f"exit status {status!r} instead of {self._status(warmer)!r}")
        if self._command.wish.ready is not None and status is Exit.DONE:
            self._must(self.was_ready, "all is there, and it was never called ready")

    def _status(self, warmer: Warmer) -> Exit:
        finishes = self.finished.values()
        statuses = [Exit.DONE]
        if any(finish.outcome in {Outcome.FAILED, Outcome.BLOCKED} for finish in finishes) or self._process.troubles:
            statuses.append(Exit.INCOMPLETE)
        if any(finish.reason is Reason.NO_ROOM for finish in finishes) and not self._command.wish.fit:
            statuses.append(Exit.NO_ROOM)
        if warmer.stopped is Reason.INTERRUPTED:
            statuses.append(Exit.INTERRUPTED)
        if warmer.stopped is Reason.DEADLINE:
            statuses.append(Exit.DEADLINE)
        return worst(*statuses)


def _size(item: Entry | Resident) -> int:
    return item.bytes if isinstance(item, Resident) else item.size
