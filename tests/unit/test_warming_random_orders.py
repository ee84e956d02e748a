"""The warming machine against a small world whose answers come in any order, late, wrong, twice removed or never."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.model.entry import Entry, Key, Trouble
from fsxwarm.model.hsm import IDLE, WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.model.messages import (
    Answered,
    Cancel,
    Cancelled,
    Event,
    Finish,
    Found,
    Instruction,
    Look,
    LookAt,
    Looked,
    Overdue,
    Room,
    Say,
    Sight,
    Stale,
    Stop,
    Submit,
    Tick,
    WalkEnded,
)
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.warming import Warming

COLD = Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED


class Fsx:
    """Files, and what FSx does with them: a restore ends some time after it was taken, or fails, or gets stuck.

    With `skips` one that somebody else has in flight may be asked for, once: then it is ours, too.
    """

    def __init__(self, rng: random.Random, count: int) -> None:
        self.rng = rng
        self.skips = False
        self.others: set[Key] = set()
        self.entries: dict[Key, Entry] = {}
        self.flags: dict[Key, Flags] = {}
        self.until: dict[Key, float] = {}
        self.wedged: set[Key] = set()
        self.fails: Counter[Key] = Counter()
        self.gone: set[Key] = set()
        self.unreadable: set[Key] = set()
        for number in range(count):
            ino = (0x200000402 << 24) + ((number % 2) << 54) + number + 1
            size = rng.choice([0, 100, 5000, 10**6, 10**9])
            entry = Entry(b"/f/%d" % number, 7, ino, size, 0, 1, 1, 1, 1, 0, 0o644)
            self.entries[entry.key] = entry
            self.flags[entry.key] = rng.choices(
                [COLD, Flags.EXISTS | Flags.ARCHIVED, COLD | Flags.LOST, Flags(0), Flags.RELEASED | Flags.EXISTS],
                [20, 2, 1, 1, 1],
            )[0]
            if rng.random() < 0.1:
                self.fails[entry.key] = rng.choice([1, 2, 9])
            if rng.random() < 0.05:
                self.unreadable.add(entry.key)

    def advance(self, now: float) -> None:
        for key in [key for key, when in self.until.items() if when <= now]:
            if key in self.wedged:
                continue
            del self.until[key]
            if self.fails[key] > 0:
                self.fails[key] -= 1
            else:
                self.flags[key] &= ~Flags.RELEASED

    def begin(self, key: Key, now: float) -> None:
        self.until[key] = now + self.rng.choice([0.1, 1.0, 8.0, 40.0])
        if self.rng.random() < 0.03:
            self.wedged.add(key)
            self.until[key] = now + 3600.0

    def ask(self, submit: Submit, now: float) -> Answered:
        for entry in submit.files:
            key = entry.key
            assert key not in self.until or (self.skips and key in self.others), "asked for while in flight"
            if key in self.gone:
                return Answered(submit.request, 2)
        if self.rng.random() < 0.05:
            return Answered(submit.request, 11)
        for entry in submit.files:
            flags = self.flags[entry.key]
            if flags.released and not flags.restorable:
                return Answered(submit.request, 1)
            if flags.restorable and entry.key not in self.until:
                self.begin(entry.key, now)
            self.others.discard(entry.key)
        return Answered(submit.request, 0)

    def look(self, how: Look, key: Key, now: float) -> Sight:
        if key in self.gone:
            return Sight(trouble=Trouble(b"", 2))
        if how is not Look.STAT and self.rng.random() < 0.02:
            return Sight(trouble=Trouble(b"", 110))
        flags = self.flags[key]
        if how is Look.RELEASED:
            return Sight(resident=not flags.released)
        if how is Look.STAT:
            return Sight(resident=not flags.released and self.entries[key].size > 512)
        if key in self.unreadable:
            return Sight(trouble=Trouble(b"", 13))
        action = IDLE
        if key in self.until:
            moved = WEDGED_MOVED if key in self.wedged else int(now)
            running = key in self.wedged or self.rng.random() < 0.5
            action = Action(Verb.RESTORE, running, moved if running else 0)
        return Sight(
            flags=None if how is Look.ACTION else flags,
            action=None if how is Look.STATE else action,
        )


class Run:
    """Drives the machine: pending instructions are carried out in random order, at random times."""

    def __init__(self, seed: int, **policy: object) -> None:
        self.rng = random.Random(seed)
        self.fsx = Fsx(self.rng, self.rng.randint(1, 120))
        self.window = self.rng.choice([1, 4, 60])
        self.machine = Warming(
            Policy(WindowPolicy(fixed=self.window), may_cancel=self.rng.random() < 0.5, **policy)  # type: ignore[arg-type]
        )
        self.now = 0.0
        self.pending: list[Instruction] = []
        self.hanging: list[Submit] = []
        self.finished: dict[Key, Finish] = {}

    def tell(self, event: Event) -> None:
        for instruction in self.machine.handle(event, self.now):
            if isinstance(instruction, Finish):
                assert instruction.entry.key not in self.finished, "settled twice"
                self.finished[instruction.entry.key] = instruction
            elif isinstance(instruction, Submit):
                assert 1 <= len(instruction.files) <= 50
                lanes = Counter(file.lane for file in self.machine._book.files.values() if file.at_fsx)
                assert all(count <= self.window for count in lanes.values()), "more in flight than the window"
                self.pending.append(instruction)
            elif not isinstance(instruction, Say):
                self.pending.append(instruction)
        self.machine.validate()

    def carry_out(self, instruction: Instruction) -> None:
        self.fsx.advance(self.now)
        if isinstance(instruction, LookAt):
            started = self.now
            sights = {e.key: self.fsx.look(instruction.how, e.key, self.now) for e in instruction.files}
            self.now += self.rng.choice([0.0, 0.0, 0.01, 3.0])
            self.tell(Looked(instruction.how, sights, started))
        elif isinstance(instruction, Submit):
            if instruction.fresh_until < self.now:
                self.tell(Stale(instruction.request))
            elif self.rng.random() < 0.03 or any(e.key in self.fsx.until for e in instruction.files if self._blind(e)):
                self.hanging.append(instruction)
                self.tell(Overdue(instruction.request))
            else:
                self.tell(self.fsx.ask(instruction, self.now))
        elif isinstance(instruction, Cancel):
            for entry in instruction.files:
                self.fsx.until.pop(entry.key, None)
                self.fsx.wedged.discard(entry.key)
            self.tell(Cancelled([entry.key for entry in instruction.files], 0))

    def _blind(self, entry: Entry) -> bool:
        """Its action cannot be seen before it is asked for: the call then hangs until its restore has ended."""
        return entry.key in self.fsx.unreadable

    def outside(self) -> None:
        """Somebody else does something."""
        key = self.rng.choice(list(self.fsx.entries))
        match self.rng.randint(0, 40):
            case 0:
                self.fsx.gone.add(key)
                self.fsx.until.pop(key, None)
            case 1 if self.fsx.flags[key].restorable and key not in self.fsx.until and not self._asked_next(key):
                self.fsx.begin(key, self.now)
                self.fsx.others.add(key)
            case 2 if self.hanging:
                submit = self.hanging.pop(self.rng.randrange(len(self.hanging)))
                if not any(entry.key in self.fsx.until for entry in submit.files):
                    self.tell(self.fsx.ask(submit, self.now))
                else:
                    self.hanging.append(submit)

    def _asked_next(self, key: Key) -> bool:
        """In the moment between our look and our request nobody may ask here: that case is a hanging call."""
        return any(isinstance(i, Submit) and any(e.key == key for e in i.files) for i in self.pending) or any(
            file.key == key and file.phase.value == "ready" for file in self.machine._book.files.values()
        )

    def go(self, steps: int = 60_000) -> None:
        entries = list(self.fsx.entries.values())
        while entries:
            count = self.rng.randint(1, len(entries))
            self.tell(Found(entries[:count]))
            entries = entries[count:]
            for _ in range(self.rng.randint(0, 5)):
                self.step()
        self.tell(WalkEnded())
        for _ in range(steps):
            if self.machine.idle:
                return
            self.step()
        raise AssertionError(f"not settled: {list(self.machine._book.files.values())[:3]}")

    def step(self) -> None:
        self.outside()
        if self.pending and self.rng.random() < 0.8:
            self.carry_out(self.pending.pop(self.rng.randrange(len(self.pending))))
        else:
            self.now = max(self.now, self.machine.wake_at(self.now)) + self.rng.choice([0.0, 0.0, 0.3])
            self.fsx.advance(self.now)
            self.tell(Tick())


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_every_file_settles_once_and_rightly(seed: int) -> None:
    run = Run(seed)
    run.go()
    assert set(run.finished) == set(run.fsx.entries)
    for key, finish in run.finished.items():
        if finish.outcome.warm:
            assert not run.fsx.flags[key].released
        if finish.outcome is Outcome.BLOCKED:
            assert not run.fsx.flags[key].restorable
        if finish.outcome is Outcome.VANISHED:
            assert key in run.fsx.gone


@given(seed=st.integers(0, 2**32), reason=st.sampled_from([Reason.INTERRUPTED, Reason.DEADLINE]))
@settings(max_examples=25, deadline=None)
def test_a_stop_settles_all_at_once(seed: int, reason: Reason) -> None:
    run = Run(seed)
    run.tell(Found(list(run.fsx.entries.values())))
    for _ in range(run.rng.randint(0, 30)):
        run.step()
    in_flight = set(run.fsx.until)
    run.tell(Stop(reason))
    assert run.machine.idle
    assert set(run.finished) == set(run.fsx.entries)
    for key, finish in run.finished.items():
        if finish.outcome is Outcome.CANCELLED and key in in_flight and finish.attempts:
            assert finish.in_flight


@given(seed=st.integers(0, 2**32), room=st.integers(0, 4 * 10**9))
@settings(max_examples=30, deadline=None)
def test_never_more_is_asked_for_than_there_is_room(seed: int, room: int) -> None:
    run = Run(seed)
    run.fsx.unreadable.clear()
    run.fsx.fails.clear()
    run.tell(Room(7, room))
    run.go()
    restored = sum(f.entry.size for f in run.finished.values() if f.outcome is Outcome.RESTORED and f.attempts)
    assert restored <= room


@pytest.mark.parametrize("window", [1, 50, 120])
def test_a_plain_warm_asks_for_each_file_once(window: int) -> None:
    run = Run(1)
    run.fsx.flags = dict.fromkeys(run.fsx.entries, COLD)
    run.fsx.fails.clear()
    run.fsx.unreadable.clear()
    run.fsx.rng = random.Random(99)
    run.machine = Warming(Policy(WindowPolicy(fixed=window)))
    run.window = window
    run.go()
    assert all(finish.outcome in {Outcome.RESTORED, Outcome.VANISHED} for finish in run.finished.values())
