"""What a look at a file that should be on its way means."""

from __future__ import annotations

from enum import Enum
from typing import Final

from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.messages import Sight
from fsxwarm.model.outcome import Reason


class Verdict(Enum):
    """What has become of a file that was asked for."""

    RESIDENT = "resident"
    QUEUED = "queued"
    MOVING = "moving"
    FROZEN = "frozen"
    """Running, and no byte more than at the last look."""
    WEDGED = "wedged"
    BUSY = "busy"
    """Another action than a restore holds it."""
    IDLE = "idle"
    """No action and still released: not asked for, failed, or cancelled."""
    HOPELESS = "hopeless"
    """No action, and its flags forbid a restore."""
    UNKNOWN = "unknown"


def diagnose(sight: Sight, moved: int) -> Verdict:
    """Judge a look at a file's action and, unless a restore of it waits, at its flags, in this order.

    `moved` are the bytes that the look before saw moved.
    """
    if sight.resident or (sight.flags is not None and not sight.flags.released):
        return Verdict.RESIDENT
    action = sight.action
    if action is not None and action.restoring:
        return _restoring(action, moved)
    if action is None or sight.flags is None:
        return Verdict.UNKNOWN
    if not action.idle:
        return Verdict.BUSY
    return Verdict.IDLE if sight.flags.restorable else Verdict.HOPELESS


def _restoring(action: Action, moved: int) -> Verdict:
    if action.wedged:
        return Verdict.WEDGED
    if not action.running:
        return Verdict.QUEUED
    return Verdict.MOVING if action.moved > moved else Verdict.FROZEN


_EPERM: Final = 1
_ENOENT: Final = 2
_EACCES: Final = 13
_ENOTDIR: Final = 20
_EISDIR: Final = 21
_ENOTTY: Final = 25
_ENAMETOOLONG: Final = 36
_ELOOP: Final = 40
_ESTALE: Final = 116

GONE: Final = frozenset({_ENOENT, _ENOTDIR, _ELOOP, _ESTALE, _EISDIR, _ENOTTY})
"""Errors that mean: under this name there is no such file any more (hsm_state says ENOTTY of a folder)."""
FORBIDDEN: Final = frozenset({_EPERM, _EACCES})
"""Errors that mean: the state may not be read. The layout may."""
TOO_LONG: Final = _ENAMETOOLONG
REFUSED: Final = _EPERM
AGAIN: Final = 11
"""EAGAIN: the coordinator is shut down and takes nothing."""


def why_blocked(flags: Flags) -> Reason:
    """Say why a released file cannot be restored, by its flags."""
    if flags & Flags.LOST:
        return Reason.LOST
    if flags & Flags.DIRTY:
        return Reason.DIRTY
    return Reason.NOT_ARCHIVED
