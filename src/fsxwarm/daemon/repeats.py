"""Keeps a log readable: the first few lines of a kind, then one now and then with how many were left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FULL: Final = 5
"""Lines of a kind that are let through in a row."""
_FIRST: Final = 60.0
"""Seconds until the next one after that; the wait doubles each time."""
_LONGEST: Final = 86400.0
_MOST: Final = 10_000
"""Kinds remembered; beyond, the one heard of least recently is forgotten."""


@dataclass(slots=True)
class _Heard:
    shown: int = 0
    left_out: int = 0
    until: float = 0.0
    wait: float = _FIRST
    heard: float = 0.0


class Repeats(Generic[K]):
    """Tells which lines to show. `now` is a steady clock in seconds.

    A kind that was silent for as long as its wait would be starts anew.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kinds: dict[K, _Heard] = {}

    def admit(self, kind: K) -> int | None:
        """How many lines of a kind were left out before this one, which is to be shown; None: leave it out."""
        now = self._now()
        seen = self._kinds.pop(kind, None)
        if seen is None or now - seen.heard > seen.wait:
            left_out = 0 if seen is None else seen.left_out
            seen = _Heard(left_out=left_out)
        if len(self._kinds) >= _MOST:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = seen
        seen.heard = now
        if seen.shown >= FULL:
            if now < seen.until:
                seen.left_out += 1
                return None
            seen.wait = min(2 * seen.wait, _LONGEST)
        seen.shown += 1
        seen.until = now + seen.wait
        before, seen.left_out = seen.left_out, 0
        return before

    def forget(self, ends: Callable[[K], bool]) -> Iterator[tuple[K, int]]:
        """Forget the kinds that have come to an end; those of which some were left out, and how many."""
        for kind in [kind for kind in self._kinds if ends(kind)]:
            left_out = self._kinds.pop(kind).left_out
            if left_out:
                yield kind, left_out
