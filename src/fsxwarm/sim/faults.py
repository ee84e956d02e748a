"""The one hook by which things go wrong in the simulated FSx."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from fsxwarm.sim.nodes import Node


class Fault(StrEnum):
    """What can go wrong with one restore, as FSx's own log names it, and what can go wrong with a call."""

    OBJECT_MISSING = "object missing"
    UNSUPPORTED_CLASS = "unsupported class"
    ACCESS_DENIED = "access denied"
    BUCKET_MISSING = "bucket missing"
    DISK_FULL = "disk full"
    STUCK = "stuck"
    """Its agent dies at once: running for ever, without a byte."""
    DIES = "dies"
    """Its agent dies in the middle: running for ever, half of its bytes moved."""
    WEDGED = "wedged"
    """Counted as running, never sent."""


class CallFault(StrEnum):
    """What can go wrong with a call of a client."""

    HANG = "hang"
    """It never comes back, and does nothing."""
    HANG_AFTER = "hang after"
    """It does its work and then never comes back."""
    EIO = "eio"
    EAGAIN = "eagain"


@dataclass(slots=True)
class Faults:
    """Asked at each point where something can go wrong. Give it rules; a rule that returns None lets it pass.

    `restore` rules see the file whose transfer is about to begin and how often it was tried before; `call` rules see
    the kind of call (`state`, `action`, `find`, `restore`, `release`, `cancel`, `pin`, `space`, `version`, `resolve`,
    `walk`, `stat`; in process also `file`, one file of a look, which EIO alone can befall) and the time.

    What befalls the servers as a whole is the world's: `set_control`, `stop_coordinators`, `set_agents`, `kill_agents`,
    `freeze_agents`; `World.at` puts it into a schedule.
    """

    restore: list[Callable[[Node, int], Fault | None]] = field(default_factory=list)
    call: list[Callable[[str, float], CallFault | None]] = field(default_factory=list)

    def on_restore(self, node: Node) -> Fault | None:
        """What goes wrong with this transfer, if anything."""
        return next((fault for rule in self.restore if (fault := rule(node, node.tries)) is not None), None)

    def on_call(self, kind: str, now: float) -> CallFault | None:
        """What goes wrong with this call, if anything."""
        return next((fault for rule in self.call if (fault := rule(kind, now)) is not None), None)


def share_of_files(
    share: float, fault: Fault, *, seed: int = 0, tries: int = 10**9
) -> Callable[[Node, int], Fault | None]:
    """A rule: a share (0 to 1) of the files, always the same ones, has this fault for its first `tries` tries."""

    def rule(node: Node, tried: int) -> Fault | None:
        chosen = random.Random(f"{seed}/{node.fid}").random() < share  # noqa: S311 - chance, not secrets
        return fault if chosen and tried < tries else None

    return rule


def files(wanted: Callable[[Node], bool], fault: Fault, *, tries: int = 10**9) -> Callable[[Node, int], Fault | None]:
    """A rule: the files that are `wanted` have this fault for their first `tries` tries."""
    return lambda node, tried: fault if tried < tries and wanted(node) else None


def share_of_calls(
    share: float, fault: CallFault, *, kinds: frozenset[str] | None = None, seed: int = 0
) -> Callable[[str, float], CallFault | None]:
    """A rule: each call of these kinds (None: of all) has this fault with this chance (0 to 1).

    The same seed makes the same sequence.
    """
    chance = random.Random(seed)  # noqa: S311 - chance, not secrets
    return lambda kind, _: fault if (kinds is None or kind in kinds) and chance.random() < share else None


def calls_between(
    start: float, end: float, fault: CallFault, *, kinds: frozenset[str]
) -> Callable[[str, float], CallFault | None]:
    """A rule: calls of these kinds have this fault from `start` to `end` (seconds)."""
    return lambda kind, now: fault if kind in kinds and start <= now < end else None
