"""Object storage targets and their room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_ONE_OST: Final = 1 << 30
"""A file up to 1 GiB lies on one OST (AWS's default layout)."""


@dataclass(slots=True)
class Ost:
    """One target: bytes in total and used."""

    total: int
    used: int = 0

    @property
    def free(self) -> int:
        """Bytes left."""
        return self.total - self.used


class Osts:
    """All targets of a file system. New data goes to the emptiest."""

    def __init__(self, count: int, size: int) -> None:
        self.all = [Ost(size) for _ in range(count)]
        self._late: list[tuple[float, int, int]] = []

    def place(self, size: int) -> int | None:
        """Find room for a file: the number of its OST, -1 for all of them, None for no room."""
        if size > _ONE_OST and len(self.all) > 1:
            share = -(-size // len(self.all))
            return -1 if all(ost.free >= share for ost in self.all) else None
        number = self.emptiest
        return number if self.all[number].free >= size else None

    @property
    def emptiest(self) -> int:
        """The number of the target with the most room."""
        return max(range(len(self.all)), key=lambda ost: self.all[ost].free)

    def use(self, number: int, size: int) -> None:
        """Take up `size` bytes (negative: give back) where `place` said."""
        if number >= 0:
            self.all[number].used += size
            return
        share = -(-abs(size) // len(self.all))
        for ost in self.all:
            ost.used += share if size > 0 else -share

    def free_later(self, number: int, size: int, when: float) -> None:
        """Give space back at a later time, as destroyed objects do."""
        self._late.append((when, number, size))

    def settle(self, now: float) -> None:
        """Give back what is due."""
        if self._late and any(when <= now for when, _, _ in self._late):
            for when, number, size in self._late:
                if when <= now:
                    self.use(number, -size)
            self._late = [late for late in self._late if late[0] > now]
