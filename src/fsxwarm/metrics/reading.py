"""Where metrics are read from: what each finds in the measures, with the values of its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fsxwarm.model.measures import Measures
from fsxwarm.model.messages import Word
from fsxwarm.model.meter import SIZE_CLASSES, Histogram
from fsxwarm.model.outcome import Outcome, Reason

Value = float | Histogram
Samples = Iterable[tuple[tuple[str, ...], Value]]
Read = Callable[[Measures], Samples]
"""Finds the values of one metric, each with those of its labels."""


def one(value: float | None) -> Samples:
    """A value without labels; None is no value."""
    return () if value is None else (((), value),)


def of_word(word: Word) -> Read:
    """How often the warming has said a word."""
    return lambda now: one(now.meter.words[word])


def service(name: str) -> Read:
    """What the daemon alone tells, by the name of its field."""
    return lambda now: one(None if now.service is None else float(getattr(now.service, name)))


def run(name: str) -> Read:
    """What a run alone tells, by the name of its field."""

    def read(now: Measures) -> Samples:
        value = None if now.run is None else getattr(now.run, name)
        return one(None if value is None else float(value))

    return read


def lanes(name: str) -> Read:
    """A number of each metadata target, by mount and target."""
    return lambda now: [((lane.mount, str(lane.mdt)), getattr(lane, name)) for lane in now.lanes]


def spaces(name: str) -> Read:
    """A number of each file system, by mount."""
    return lambda now: [((space.mount,), getattr(space, name)) for space in now.spaces]


def fullest(part: int) -> Read:
    """Of each file system with OSTs that are known: free space (0) or size (1) of the fullest, by mount."""
    return lambda now: [((s.mount,), s.fullest[part]) for s in now.spaces if s.fullest is not None]


def stocks(name: str) -> Read:
    """A number of each path of the inventory, by mount and path."""
    return lambda now: [((stock.mount, stock.path), getattr(stock, name)) for stock in now.stocks]


def stocks_by(name: str) -> Read:
    """Numbers of each path of the inventory, by mount, path and what they are kept by."""
    return lambda now: [
        ((stock.mount, stock.path, key), value) for stock in now.stocks for key, value in getattr(stock, name).items()
    ]


def rounds(name: str) -> Read:
    """A number of each keep-warm entry, by path."""
    return lambda now: [((round_.path,), getattr(round_, name)) for round_ in now.rounds]


def failed_because(outcome: Outcome) -> Read:
    """Files with an outcome, by reason; all reasons, so that each is there before it happens."""
    return lambda now: [((reason.value,), now.meter.reasons[outcome, reason]) for reason in Reason]


def settled(now: Measures) -> Samples:
    """Files that have settled, by outcome."""
    return [((outcome.value,), tally.files) for outcome, tally in now.meter.settled_files.items()]


def restored_bytes(now: Measures) -> Samples:
    """Bytes that became resident."""
    return one(now.meter.settled_files[Outcome.RESTORED].bytes)


def restore_times(now: Measures) -> Samples:
    """Times that restores took, by class of size."""
    return [((size,), times) for size, times in zip(SIZE_CLASSES, now.meter.restores, strict=True)]


def calls(now: Measures) -> Samples:
    """Times that calls took, by kind of call."""
    return [((call,), times) for call, times in now.meter.calls.items()]


def call_errors(now: Measures) -> Samples:
    """Failures of calls, by kind of call and error."""
    return list(now.meter.call_errors.items())


def jobs(now: Measures) -> Samples:
    """Jobs of the daemon, by kind and phase."""
    return () if now.service is None else list(now.service.jobs.items())


def service_by(name: str) -> Read:
    """Numbers that the daemon alone tells, by the one thing that they are kept by."""
    return lambda now: [] if now.service is None else [((key,), v) for key, v in getattr(now.service, name).items()]


def service_pair(name: str, part: int) -> Read:
    """One `part` of the pairs that the daemon alone tells, by what they are kept by."""
    return lambda now: (
        [] if now.service is None else [((key,), pair[part]) for key, pair in getattr(now.service, name).items()]
    )


def loop_lag(now: Measures) -> Samples:
    """By how much the daemon's loop was late."""
    return () if now.service is None else (((), now.meter.loop_lag),)


def links(now: Measures) -> Samples:
    """Whether each association is usable, by mount, path and lifecycle."""
    return [((link.mount, link.path, link.lifecycle), link.usable) for link in now.links]


def aws_calls(now: Measures) -> Samples:
    """Calls to AWS, by IAM action and result."""
    return list(now.aws.calls.items())


def aws_throttled(now: Measures) -> Samples:
    """Answers that asked for fewer calls, by IAM action."""
    return [((action,), count) for action, count in now.aws.throttled.items()]
