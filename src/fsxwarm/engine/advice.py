"""What a reason means and what to do about it, for who has done some of that already."""

from __future__ import annotations

from typing import Final

from fsxwarm.model.outcome import MEANINGS, Meaning, Reason

_FITTED: Final = Meaning(MEANINGS[Reason.NO_ROOM].what, "release something first, or warm less")


def advice(reason: Reason, *, fit: bool) -> Meaning:
    """The meaning of a reason, for a warming that left out (`fit`) or did not leave out what did not fit."""
    return _FITTED if fit and reason is Reason.NO_ROOM else MEANINGS[reason]
