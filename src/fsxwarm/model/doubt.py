"""Whether a file that looks released has its flags read before it is asked for.

A stat that shows no blocks leaves little doubt: the file is released, and S3 holds it. Reading its flags costs the
servers an open, a request and a close. So the flags of files of one size class are read until they have told nothing
new often enough, and now and then from then on; each surprise brings the reading back. A file that was asked for in
vain costs a look or two more, and no harm: FSx does nothing for one that is resident, and refuses one that it cannot
restore.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from fsxwarm.model.pace import class_of

_SAMPLE: Final = 100
"""Of so many files that are believed, the flags of one are read."""

_FIRST: Final = 5
"""So many looks come one after another at the most; with files of several sizes each tells of some."""


class Doubt:
    """What the flags read so far have told; `convinced` in a row without surprise are enough."""

    def __init__(self, convinced: int) -> None:
        self._convinced = convinced
        self._calm: Counter[int] = Counter()
        self._believed: Counter[int] = Counter()
        self.first: int | None = max(1, convinced)
        """How many files one of the first looks is for, which the others wait for; None when they have told enough."""
        self._to_come = _FIRST * convinced

    def about(self, size: int) -> bool:
        """Whether to read the flags of the next file of `size` bytes. Counts it as believed if not."""
        name = class_of(size)
        if self._calm[name] < self._convinced:
            return True
        self._believed[name] += 1
        return self._believed[name] % _SAMPLE == 0

    def looked(self, files: int, doubtful: int) -> None:
        """Of so many files so many were doubted; where most are believed, looks need not wait for each other."""
        if 2 * doubtful < files:
            self.first = None

    def read(self, size: int, *, surprise: bool) -> None:
        """Learn what a file of `size` bytes turned out to be: released and restorable, or a surprise."""
        self._to_come -= 1
        if self._to_come <= 0:
            self.first = None
        name = class_of(size)
        self._calm[name] = 0 if surprise else self._calm[name] + 1
