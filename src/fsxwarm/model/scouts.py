"""Who is looked at while it is on its way: the first stat of a file in flight costs a call, unless it has ended.

The coordinator serves requests in their order (mdt_coordinator.c), so one file in several tells when its neighbours
are worth a look: what was asked for before a file that is resident will be, too, or soon.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fsxwarm.model.file import File, Phase

_SHARE: Final = 16
_MOST: Final = 4


class Scouts:
    """One lane's files that have not been looked at since they were asked for, in that order.

    The more are in flight, the fewer are scouts, down to one in four: the others are known of that much later.
    """

    def __init__(self) -> None:
        self._behind: deque[tuple[int, File]] = deque()
        self._asked = 0
        self._led = 0

    def leads(self, file: File, in_flight: int) -> bool:
        """Enter a file that has just been asked for, with so many in flight; whether it is a scout."""
        self._asked += 1
        file.order = self._asked
        self._led += 1
        if self._led >= min(in_flight // _SHARE, _MOST):
            self._led = 0
            return True
        while self._behind and not _unseen(*self._behind[0]):
            self._behind.popleft()
        self._behind.append((file.order, file))
        return False

    def ended(self, file: File) -> list[File]:
        """A file is resident: return those asked for before it that nobody has looked at yet."""
        ahead: list[File] = []
        while self._behind and self._behind[0][0] < file.order:
            order, one = self._behind.popleft()
            if _unseen(order, one):
                ahead.append(one)
        return ahead


def _unseen(order: int, file: File) -> bool:
    return file.order == order and file.phase is Phase.IN_FLIGHT and file.polls == 0
