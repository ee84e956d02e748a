"""Why a file keeps its space when space is given back: a closed set of words."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a file is left alone."""

    DIRTY = "dirty"
    NEVER_ARCHIVED = "never_archived"
    PINNED = "pinned"
    LEASED = "leased"
    WANTED = "wanted"
    LOST = "lost"
    RESTORING = "restoring"
    BUSY = "busy"
    CHANGED = "changed"
    NOT_YOURS = "not_yours"
    UNREADABLE = "unreadable"
    HUNG = "hung"
    NO_OBJECT = "no_object"
    OTHER_SIZE = "other_size"
    UNCHECKED = "unchecked"


ALARMING: Final = frozenset({Reason.HUNG, Reason.NO_OBJECT, Reason.OTHER_SIZE, Reason.UNCHECKED})
"""Those that somebody should look into."""
