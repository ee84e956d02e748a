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

_STREAM: Final = 100e6
"""Bytes per second that a large object comes at, about, while nothing else is known (AWS's S3 performance guidelines
have 85-90 MB/s for one request)."""

_SURE: Final = 20
_SLOW: Final = 5.0
_FROZEN: Final = 20.0
"""Once so many restores were seen, one is slow that has not moved for so many times what they took, and has stalled
after so many times that."""

_FAILED: Final = 0.8
_HEALTHY: Final = 1.12
_HASTE: Final = 0.1
"""A late file that has failed brings the next ones' time forward by a fifth, one that is all right pushes it back by an
eighth: where none fails nobody is asked after early, else two files that are all right are, for each that has failed.
The least share of the usual wait."""

_QUICK: Final = 0.7
_RECENT: Final = 16
"""Where such a share of the recent first stats find the file resident, stats that wait for news save little."""

_PROOFS: Final = 8
"""How much evidence it takes to change our mind about what a stat can prove."""


def class_of(size: int) -> int:
    """The class of a size in bytes: files of one class are expected to behave alike."""
    return size.bit_length() // _CLASS_BITS


class Expectation:
    """Restore times of one size class, in seconds."""

    __slots__ = ("deviation", "first_look", "haste", "hits", "mean", "proofs", "samples")

    def __init__(self, first_look: float) -> None:
        self.first_look = first_look
        self.mean = 0.0
        self.deviation = 0.0
        self.samples = 0
        self.proofs = 0
        self.haste = 1.0
        self.hits = 0.0

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

    Parameters, in seconds: `first_look` before anything is known; `floor` and `cap` bound a file's own deadline;
    the floor sinks as restores turn out to fail.
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

    def without_news(self, size: int) -> float:
        """Seconds to wait for news of others before the first stat of a file of `size` bytes: twice what it takes.

        0 where files are resident so soon that hardly a stat comes too early.
        """
        known = self._of(size)
        if known.hits > _QUICK:
            return 0.0
        return 2 * known.mean if known.samples else known.first_look

    def first_stat_was(self, size: int, *, hit: bool) -> None:
        """Learn whether a first stat that had not waited for news found a file of `size` bytes resident."""
        known = self._of(size)
        known.hits += (hit - known.hits) / _RECENT

    def deadline(self, size: int) -> float:
        """Seconds after which a restore of `size` bytes is late enough to ask what it is doing."""
        known = self._of(size)
        floor = self._floor * known.haste
        if not known.samples:
            return min(max(4 * known.first_look * known.haste, 2 * floor) + size / _STREAM, self._cap)
        return min(max((known.mean + 4 * known.deviation) * known.haste, floor), self._cap)

    def frozen(self, size: int, patience: float) -> float:
        """Seconds without progress that are too many for `size` bytes: `patience`, or less where restores are quick."""
        known = self._of(size)
        if known.samples < _SURE:
            return patience
        return min(max(_FROZEN * known.mean, patience / 4), patience)

    def is_slow(self, size: int, waited: float) -> bool:
        """Whether so many seconds without progress are far more than files of about `size` bytes take in all."""
        known = self._of(size)
        return known.samples >= _SURE and waited > _SLOW * known.mean

    def late_file_was(self, size: int, *, failed: bool) -> None:
        """Learn what had become of a file of `size` bytes that was late."""
        known = self._of(size)
        known.haste = min(max(known.haste * (_FAILED if failed else _HEALTHY), _HASTE), 1.0)

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
