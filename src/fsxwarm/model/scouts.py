"""Who is looked at while it is on its way: the first stat of a file in flight costs a call, unless it has ended.

The coordinator serves requests in their order (mdt_coordinator.c), so one file in several tells when its neighbours
are worth a look: what was asked for before a file that is resident, and is no larger, will be, too, or soon.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import Final

from fsxwarm.model.file import File, Phase
from fsxwarm.model.pace import class_of

_SHARE: Final = 16
_MOST: Final = 5
"""Of as many as one in so many of those in flight, and of so many at the most, one is a scout."""


class Scouts:
    """One lane's files that have not been looked at since they were asked for, in that order, by size class.

    The more are in flight, the fewer are scouts, down to one in five: the others are known of that much later.
    """

    def __init__(self) -> None:
        self._behind: defaultdict[int, deque[tuple[int, File]]] = defaultdict(deque)
        self._led: Counter[int] = Counter()
        self._asked = 0

    def leads(self, file: File, in_flight: int, *, all_do: bool) -> bool:
        """Enter a file that has just been asked for, with so many in flight; whether it is a scout.

        Where `all_do`, each is: nobody comes after the last ones, and while a window is measured delays would tell.
        """
        self._asked += 1
        file.order = self._asked
        alike = class_of(file.entry.size)
        self._led[alike] += 1
        if all_do or self._led[alike] >= min(in_flight // _SHARE, _MOST):
            self._led[alike] = 0
            return True
        behind = self._behind[alike]
        while behind and not _unseen(*behind[0]):
            behind.popleft()
        behind.append((file.order, file))
        return False

    def ended(self, file: File) -> list[File]:
        """A file is resident: return those no larger, asked for before it, that nobody has looked at yet."""
        ahead: list[File] = []
        largest = class_of(file.entry.size)
        for behind in [behind for alike, behind in self._behind.items() if alike <= largest]:
            while behind and behind[0][0] < file.order:
                order, one = behind.popleft()
                if _unseen(order, one):
                    ahead.append(one)
        return ahead

    def release(self) -> list[File]:
        """Return all that nobody has looked at yet: the last ones, for whom no news would come."""
        left = [one for behind in self._behind.values() for order, one in behind if _unseen(order, one)]
        self._behind.clear()
        return left


def _unseen(order: int, file: File) -> bool:
    return file.order == order and file.phase is Phase.IN_FLIGHT and file.polls == 0
