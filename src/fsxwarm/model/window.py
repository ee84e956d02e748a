"""How many files may be in flight at one metadata target: learnt from how fast they become resident.

Capacity is the highest delivery rate times the shortest service time, as TCP BBR has it; Little's law gives it without
measuring rates: with `f` files in flight that take `s` times as long as they do when none waits, `f / s` would be
enough. That is the *knee*. The window is the knee and some headroom, which keeps agents fed, makes the window rise by
itself while nothing waits, and lets it fall when restore times rise without more being delivered. The headroom's share
is the smaller the larger the window, so that two clients of one file system become equal.

Now and then the window is drained until less is delivered, to relearn the service time, which a queue that always
stands hides. Clients drain at the same moments, because each one's queue hides it from the other. A drain that makes
files look several times quicker is put to a trial, for they may only have had bandwidth to themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fsxwarm.model.policy import WindowPolicy
from fsxwarm.model.rates import InFlight, Sample, ServiceTimes, Throughput

_PAUSES: Final = (2.0, 60.0)
"""Seconds to leave a coordinator alone that takes no requests: doubled from the first to the second."""
_SILENCE: Final = 5.0
_FEWEST: Final = 4
_ALIKE: Final = 8
_MIXED: Final = 24
"""How many files of like and of unlike sizes tell enough."""
_QUEUEING: Final = 1.3
_SAME: Final = (0.9, 1.1)
"""Slowdowns: from the first on files wait for others; between the other two they do not."""
_SLOW_START: Final = 10.0
"""Seconds; before a window is doubled whose files take longer, it is halved to see whether half of it would do."""
_STILL_FALLING: Final = 1.5
_DRAIN_GRID: Final = 30.0
_DRAIN_EVERY: Final = 24.0
_DRAIN_COST: Final = 12.0
"""Drains fall on multiples of so many seconds times a power of two; so many service times, and so many times what a
drain takes, lie between them at least."""
_SUSPICIOUS: Final = 1 / 3
_TRIAL: Final = 3
_AS_MUCH: Final = 0.95
"""A drain that cuts service times to less than such a share is put to a trial: the window that follows from it must
deliver, after so many rounds, such a share of what the larger one did."""


class _Phase(Enum):
    START = "start"
    """Doubles while nothing waits."""
    CRUISE = "cruise"
    """Follows the knee."""
    DRAIN = "drain"
    """Holds fewer in flight, to see how long files take then."""


@dataclass(slots=True)
class _Trial:
    """What a smaller window must deliver, as a knee; by what factor service times changed, and the window before."""

    knee: float
    factor: float
    size: float
    rounds: int = 0


def _headroom(knee: float) -> float:
    """The share of the knee to hold on top of it: 1.0 of 4, 0.4 of 5,000."""
    return 1.2 / math.pow(max(knee, 1.0), 0.13)


class Window:
    """The window of one metadata target. Times in seconds on one steady clock; `now` never goes back."""

    def __init__(self, policy: WindowPolicy, now: float) -> None:
        self._policy = policy
        self.stuck = 0
        """Files in flight whose restores do not move."""
        self._size = float(policy.start)
        self._paused_until = now
        self._pause = _PAUSES[0]
        self._in_flight = InFlight(now)
        self._service = ServiceTimes()
        self._throughput = Throughput(now)
        self._hungry = True
        self._last_settled = now
        self._patience = 0.0
        self._silent = True
        self._probing = 0

        self._phase = _Phase.START
        self._sample = Sample()
        self._count_from = now
        self._skip_generation = False

        self._drained_to: float | None = None
        self._drain_until = now
        self._coming_down = False
        self._low_since = now
        self._afterwards = _Phase.CRUISE
        self._knee_before = 0.0
        self._changed = 1.0
        self._drained_once = False
        self._stages = 0
        self._drain_grid = _DRAIN_GRID
        self._delivered = 0.0
        self._trial: _Trial | None = None

        self._cruised = Sample()
        self._rounds = 0
        self._drain_due = now

    @property
    def moving(self) -> int:
        """Files that may be in flight beside those that are stuck."""
        if self._policy.fixed is not None:
            return self._policy.fixed
        return int(self._size if self._drained_to is None else self._drained_to)

    @property
    def size(self) -> int:
        """Files that may be in flight. For those that are stuck others may go past them, as long as some get through.

        Where nobody does, up to twice the window, and then a few from time to time: to ask for more would only make the
        queue longer.
        """
        if self._policy.fixed is not None:
            return self._policy.fixed
        past = min(self.stuck, max(self.moving, self._probing)) if self._silent else self.stuck
        return max(self.moving, min(self.moving + past, self._policy.ceiling))

    @property
    def measures(self) -> bool:
        """Whether it is about to learn how long files take, and wants to know of each one's end at once."""
        return self._policy.fixed is None and self._phase is not _Phase.CRUISE

    @property
    def paused_until(self) -> float:
        """Until when nothing may be asked for."""
        return self._paused_until

    @property
    def rate_files(self) -> float:
        """Files that became resident per second, of late."""
        return self._throughput.files

    @property
    def rate_bytes(self) -> float:
        """Bytes that became resident per second, of late."""
        return self._throughput.bytes

    @property
    def service_time(self) -> float:
        """Seconds that a restore takes when it need not wait for others; 0 while nothing was seen."""
        return self._service.typical

    @property
    def limit(self) -> str:
        """What binds: "files/s", "bytes/s", or "unknown" while little was seen."""
        return self._service.limit

    # ---- what happens ------------------------------------------------------------------------------------------

    def submitted(self, files: int, in_flight: int, now: float) -> None:
        """A request for `files` files is on its way; `in_flight` counts them already."""
        if in_flight <= files:  # nothing was in flight: that none settled meant nothing
            self._last_settled = now
        self._in_flight.becomes(in_flight - self.stuck, now)

    def settled(self, *, nbytes: int, took: float, in_flight: int, now: float, alike: bool = True) -> None:
        """A file of `nbytes` bytes was seen resident `took` seconds after it was asked for.

        Not `alike`: it was stuck in between, and tells nothing of how long files take.
        """
        self._throughput.add(nbytes)
        self._service.saw(nbytes)
        self._pause = _PAUSES[0]
        if self._service.longest and now - self._last_settled > self._long_silence:
            self._count_from = now  # the servers had stopped: what waited meanwhile tells nothing of their speed
        self._last_settled, self._patience, self._probing = now, 0.0, 0
        self._in_flight.becomes(in_flight - self.stuck, now)
        if alike and self._counts(now - took, in_flight, now):
            size_class = self._service.class_of(nbytes)
            so_far = self._sample.slowdown if self._sample.files >= _FEWEST else 1.0
            expected = self._service.expected(size_class, took, so_far)
            self._sample.add(size_class, max(took, 1e-3), expected, self._in_flight.mean(now - took, now))
            self._conclude(now)

    def refused(self, now: float) -> None:
        """The coordinator takes no requests (EAGAIN): leave it alone for a while, and ask for less afterwards."""
        if now < self._paused_until:
            return
        self._paused_until = now + self._pause
        self._pause = min(2 * self._pause, _PAUSES[1])
        self._size = self._clamp(self._size / 2)
        self._end_drain(_Phase.CRUISE, now)

    def tick(self, in_flight: int, hungry: bool, now: float) -> None:  # noqa: FBT001 - a fact beside two others
        """About a second has passed. `hungry`: there is more to ask for, and the window is what holds it back."""
        self._in_flight.becomes(in_flight - self.stuck, now)
        self._hungry = hungry
        self._throughput.settle(self._service.typical, now)
        self._silent = not self._service.longest or now - self._last_settled > self._long_silence
        if self._phase is _Phase.DRAIN and (self._silent or now > self._drain_until):
            self._end_drain(_Phase.CRUISE, now)
        cruising = self._phase is _Phase.CRUISE and self._drained_once and self._cruised.files > 0
        if cruising and hungry and now >= self._drain_due:
            self._begin_drain(self._cruised.knee, _Phase.CRUISE, now)
        patience = max(self._patience, 2 * self._long_silence)
        if self._service.longest and in_flight >= self.size and now - self._last_settled > patience:
            # What is in flight may be stuck for good, and fill the window: see whether others get through.
            self._patience = 2 * patience
            self._size = self._clamp(max(self._size, in_flight - self.stuck + self._policy.floor))
            self._probing = in_flight + self._policy.floor - self.moving

    # ---- learning ----------------------------------------------------------------------------------------------

    @property
    def _long_silence(self) -> float:
        """Seconds without a file settling after which the servers must have stopped."""
        return _SILENCE + 3 * self._service.longest

    def _clamp(self, size: float) -> float:
        return min(max(size, self._policy.floor), self._policy.ceiling)

    def _counts(self, asked: float, in_flight: int, now: float) -> bool:
        """Whether a file's time tells of the present phase: it must have been asked for under its conditions."""
        if self._coming_down and in_flight <= self.size:
            self._coming_down = False
            self._count_from = now
            if not self._stages:
                self._low_since = now
        if self._coming_down or asked < self._count_from:
            return False
        if self._skip_generation:  # the first files of a larger window find the queue of the smaller one
            self._skip_generation = False
            self._count_from = now
            return False
        return True

    def _conclude(self, now: float) -> None:
        """When enough files were seen, draw conclusions from them."""
        sample = self._sample
        few = _FEWEST if self._phase is _Phase.START else _ALIKE if len(sample.by_class) == 1 else _MIXED
        enough = max(few, sample.in_flight / 2)
        if self._phase is _Phase.START and sample.took > _SLOW_START * sample.files:
            enough = 0.9 * sample.in_flight  # a first wave does not feel the queue behind it
        if sample.files < enough:
            return
        self._sample = Sample()
        if self._policy.fixed is not None:
            if sample.slowdown < _SAME[1]:
                self._service.learn(sample)
            return
        match self._phase:
            case _Phase.START:
                self._start(sample, now)
            case _Phase.CRUISE:
                self._cruise(sample, now)
            case _Phase.DRAIN:
                self._drain(sample, now)

    def _start(self, sample: Sample, now: float) -> None:
        if sample.slowdown > _QUEUEING:
            self._phase = _Phase.CRUISE
            self._cruise(sample, now)
            return
        if sample.slowdown < _SAME[1]:
            self._service.learn(sample)
        if not self._hungry:
            return
        if not self._drained_once and sample.took / sample.files > _SLOW_START:
            # Agents that share their bandwidth make all files slow alike, and no queue shows: look down before up.
            self._begin_drain(sample.knee, _Phase.START, now)
            return
        full = sample.in_flight > 0.7 * self._size
        self._size = self._clamp(max(self._size, 2 * (self._size if full else sample.in_flight)))

    def _cruise(self, sample: Sample, now: float) -> None:
        if sample.slowdown < _SAME[1]:
            factor = self._service.learn(sample)
            sample.expected *= factor
            self._cruised.expected *= factor
        self._cruised.take_in(sample, 0.5 if sample.files > 30 else 0.7)  # noqa: PLR2004 - fewer files, longer memory
        queueing = self._cruised.slowdown > _QUEUEING
        if not (self._hungry or queueing):
            return
        if self._trial is not None and self._fails(self._trial):
            return
        self._follow(self._cruised)
        if not self._hungry or sample.in_flight > _STILL_FALLING * self._size:
            return
        self._rounds += 1
        if not self._drained_once and self._rounds > 1:
            self._begin_drain(self._cruised.knee, _Phase.CRUISE, now)

    def _fails(self, trial: _Trial) -> bool:
        """Whether the window that followed from a drain delivers less: then what was learnt from it is taken back.

        Little in flight need not be restored as one after another is: bandwidth that all share lies idle between them.
        """
        trial.rounds += 1
        if trial.rounds < _TRIAL:
            return False
        self._trial = None
        if self._cruised.knee > _AS_MUCH * trial.knee:
            return False
        self._service.scale(1 / trial.factor)
        self._size = trial.size
        self._cruised = Sample()
        self._drain_grid *= 2
        return True

    def _follow(self, sample: Sample) -> None:
        """Move towards the knee and its headroom: all the way while nothing waits, else half the way."""
        target = self._target(sample.knee)
        if sample.slowdown > _SAME[1]:
            target = math.sqrt(target * self._size)
        self._size = self._clamp(min(max(target, self._size / 2), 2 * self._size))

    def _target(self, knee: float) -> float:
        return knee * (1 + _headroom(knee))

    # ---- draining ----------------------------------------------------------------------------------------------

    def _begin_drain(self, knee: float, afterwards: _Phase, now: float) -> None:
        self._phase = _Phase.DRAIN
        self._afterwards = afterwards
        self._knee_before = self._delivered = knee
        self._trial = None
        self._changed = 1.0
        self._stages = 0
        took = self._cruised.took / self._cruised.files if self._cruised.files else 0.0
        self._drain_until = now + 30.0 + 20 * max(self._service.longest, took)
        self._come_down(min(self._size, self._target(knee)) / 2)

    def _come_down(self, size: float) -> None:
        """Hold no more than `size`, and count no file until that few are in flight."""
        self._drained_to = self._clamp(size)
        self._coming_down = True

    def _end_drain(self, phase: _Phase, now: float) -> None:
        self._phase = phase
        self._drained_to = None
        self._coming_down = False
        self._skip_generation = phase is _Phase.CRUISE
        self._count_from = now
        self._sample = Sample()

    def _next_drain(self, low_for: float, now: float) -> float:
        """When to drain next: with the others, that is when the wall clock shows a multiple of some power of two.

        A mix of sizes takes long to drain: then the more seldom, the longer little was in flight (`low_for` seconds).
        """
        every = self._drain_grid
        while every < max(_DRAIN_EVERY * self._service.lasting, _DRAIN_COST * low_for):
            every *= 2
        epoch = self._policy.epoch
        return every * math.ceil((now + epoch + every / 4) / every) - epoch

    def _drain(self, sample: Sample, now: float) -> None:
        """Fewer were in flight: if as much was delivered, there was a queue even now, and the knee is lower still."""
        confirmed = _SAME[0] <= sample.slowdown <= _SAME[1]
        saturated = sample.knee > _SAME[0] * self._knee_before
        quick = sample.took < _SLOW_START * sample.files
        unsure = not (self._drained_once or self._stages or (confirmed and quick))
        self._stages += 1
        if saturated or unsure:
            self._knee_before = sample.knee
        if unsure and not saturated:
            self._delivered = sample.knee
        level = self._drained_to or 0.0
        deeper = (saturated or unsure) and level > self._policy.floor
        if not deeper or sample.slowdown < _SAME[0]:
            factor = self._service.learn(sample)
            self._changed *= factor
            self._knee_before *= factor
            self._delivered *= factor
        if deeper:
            self._come_down(level / 2)
            return
        self._drained_once = True
        if not 0.8 < self._changed < 1.25:  # noqa: PLR2004 - within these no news
            self._trial = _Trial(self._delivered, self._changed, self._size) if self._changed < _SUSPICIOUS else None
            self._size = self._clamp(self._target(self._knee_before))
        self._cruised = Sample()
        self._drain_due = self._next_drain(now - self._low_since if len(sample.by_class) > 1 else 0.0, now)
        starting = self._afterwards is _Phase.START and not saturated
        self._end_drain(_Phase.START if starting else _Phase.CRUISE, now)
        if starting:
            self._size = self._clamp(2 * self._size)
