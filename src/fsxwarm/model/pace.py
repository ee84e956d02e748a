"""What is to be expected of a restore, learnt from those seen: when to look first, and when to worry.

Files are told apart by size, in classes of a factor of 16: a 4 KB file that takes as long as a 2 GB one is late.
"""

from __future__ import annotations

from typing import Final

_CLASS_BITS: Final = 4
_HIT: Final = 0.995
_MISS: Final = 1.015
"""A first look that finds the file resident shortens the next wait by half a percent, one too early lengthens it by
one and a half: the wait settles where three looks in four are hits."""

_PROOFS: Final = 8
"""How much evidence it takes to change our mind about what a stat can prove."""


def class_of(size: int) -> int:
    """The class of a size in bytes: files of one class are expected to behave alike."""
    return size.bit_length() // _CLASS_BITS


class Expectation:
    """Restore times of one size class, in seconds."""

    __slots__ = ("deviation", "first_look", "mean", "proofs", "samples")

    def __init__(self, first_look: float) -> None:
        self.first_look = first_look
        self.mean = 0.0
        self.deviation = 0.0
        self.samples = 0
        self.proofs = 0

    def observed(self, took: float) -> None:
        """Learn from a restore that took so long, smoothed as TCP smooths round trips (RFC 6298)."""
        if self.samples == 0:
            self.mean, self.deviation = took, took / 2
        else:
            self.deviation += (abs(took - self.mean) - self.deviation) / 4
            self.mean += (took - self.mean) / 8
        self.samples += 1


class Pace:
    """Expectations for all size classes.

    Parameters, in seconds: `first_look` before anything is known; `floor` and `cap` bound a file's own deadline.
    """

    def __init__(self, *, first_look: float = 1.0, floor: float = 5.0, cap: float = 600.0) -> None:
        self._first_look = first_look
        self._floor = floor
        self._cap = cap
        self._classes: dict[int, Expectation] = {}

    def _of(self, size: int) -> Expectation:
        name = class_of(size)
        known = self._classes.get(name)
        if known is None:
            nearest = min(self._classes, key=lambda other: abs(other - name), default=None)
            first = self._first_look if nearest is None else self._classes[nearest].first_look
            known = self._classes[name] = Expectation(first)
        return known

    def restored(self, size: int, took: float) -> None:
        """Learn that a file of `size` bytes was seen resident `took` seconds after it was asked for."""
        self._of(size).observed(took)

    def first_look_was(self, size: int, *, hit: bool) -> None:
        """Learn whether the first look at a file of `size` bytes came late enough to find it resident."""
        known = self._of(size)
        known.first_look = min(max(known.first_look * (_HIT if hit else _MISS), 0.25), self._cap)

    def first_look(self, size: int) -> float:
        """Seconds to wait before the first look at a file of `size` bytes."""
        return self._of(size).first_look

    def typical(self, size: int) -> float:
        """Seconds that a restore of `size` bytes usually takes; the first look's wait while nothing was seen."""
        known = self._of(size)
        return known.mean if known.samples else known.first_look

    def deadline(self, size: int) -> float:
        """Seconds after which a restore of `size` bytes is late enough to ask what it is doing."""
        known = self._of(size)
        if not known.samples:
            return min(max(4 * known.first_look, 2 * self._floor), self._cap)
        return min(max(known.mean + 4 * known.deviation, self._floor), self._cap)

    def proved_by_stat(self, size: int) -> None:
        """Learn that a stat alone showed a file of `size` bytes to be resident."""
        known = self._of(size)
        known.proofs = min(known.proofs + 1, _PROOFS)

    def missed_by_stat(self, size: int) -> None:
        """Learn that a file of `size` bytes was resident while its stat did not show it (sparse, compressed, tiny)."""
        self._of(size).proofs -= 2

    def stat_blind(self, size: int) -> bool:
        """Whether files of about `size` bytes are better looked at by their flags."""
        return self._of(size).proofs <= -_PROOFS
