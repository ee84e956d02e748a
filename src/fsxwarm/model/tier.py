"""What a file system's tier lets through, from the throughput tables of the FSx for Lustre user guide."""

from __future__ import annotations

from typing import Final, NamedTuple

from fsxwarm.model.association import FileSystem

_MB: Final = 1_000_000
_TIB: Final = 2**40


class Tier(NamedTuple):
    """Baselines in MB/s for each TiB of capacity: towards clients, and to the disks, which bound restores.

    `write` differs from `read` on SCRATCH_2 only.
    """

    network: int
    read: int
    write: int


_TIERS: Final[dict[tuple[str, str, int], Tier]] = {
    ("SCRATCH_1", "SSD", 0): Tier(200, 200, 100),
    ("SCRATCH_2", "SSD", 0): Tier(200, 200, 100),
    ("PERSISTENT_2", "SSD", 125): Tier(320, 125, 125),
    ("PERSISTENT_2", "SSD", 250): Tier(640, 250, 250),
    ("PERSISTENT_2", "SSD", 500): Tier(1300, 500, 500),
    ("PERSISTENT_2", "SSD", 1000): Tier(2600, 1000, 1000),
    ("PERSISTENT_1", "SSD", 50): Tier(250, 50, 50),
    ("PERSISTENT_1", "SSD", 100): Tier(500, 100, 100),
    ("PERSISTENT_1", "SSD", 200): Tier(750, 200, 200),
    ("PERSISTENT_1", "HDD", 12): Tier(40, 12, 12),
    ("PERSISTENT_1", "HDD", 40): Tier(150, 40, 40),
}


def tier_of(system: FileSystem) -> Tier | None:
    """The tier of a file system; None for one that the tables do not have."""
    return _TIERS.get((system.deployment, system.storage, system.throughput))


def write_rate(system: FileSystem) -> float | None:
    """Bytes per second that a file system's disks take in at least: what bounds restores of large files."""
    tier = tier_of(system)
    return None if tier is None else tier.write * _MB * system.capacity / _TIB
