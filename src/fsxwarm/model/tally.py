"""Counting files and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Some files, and the sum of their sizes in bytes."""

    files: int = 0
    bytes: int = 0

    def add(self, size: int, files: int = 1) -> None:
        """Count `files` more, of `size` bytes together."""
        self.files += files
        self.bytes += size

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.files + other.files, self.bytes + other.bytes)


@dataclass(slots=True)
class Coverage:
    """How much of something is resident."""

    resident: Tally = field(default_factory=Tally)
    released: Tally = field(default_factory=Tally)

    @property
    def share(self) -> float:
        """Resident bytes of all bytes, between 0 and 1; of nothing, all is resident."""
        total = self.resident.bytes + self.released.bytes
        return self.resident.bytes / total if total else 1.0 if not self.released.files else 0.0
