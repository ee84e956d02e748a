"""A file as the walk found it."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """Identity of a file, the same for all its hard links."""

    dev: int
    ino: int


class Entry(NamedTuple):
    """A regular file and what one stat said of it.

    Sizes in bytes, `blocks` in units of 512 bytes as stat counts them, times in whole seconds since the epoch.
    The path is absolute, as bytes: names need not be UTF-8.
    """

    path: bytes
    dev: int
    ino: int
    size: int
    blocks: int
    mtime: int
    atime: int
    ctime: int
    nlink: int
    uid: int
    mode: int

    @property
    def key(self) -> Key:
        """What the file is known by, whatever name it was found under."""
        return Key(self.dev, self.ino)

    @property
    def proves_resident(self) -> bool:
        """Whether this stat alone proves that the data is on the OSTs; see `stat_proves_resident`."""
        return stat_proves_resident(self.size, self.blocks)

    @property
    def used(self) -> int:
        """When the file was last read, written or changed, in seconds since the epoch."""
        return max(self.atime, self.mtime, self.ctime)


def stat_proves_resident(size: int, blocks: int) -> bool:
    """Tell whether size (bytes) and blocks (512 bytes each) prove that a file has data on the OSTs.

    A released file has 0 or 1 blocks in every layout (measured on 2.15.8). The converse does not hold: new,
    sparse, compressed and tiny files show 0 or 1 too, and need a look at their flags.
    """
    return size > 0 and blocks > 1


class Resident(NamedTuple):
    """A run of files in a walk whose stat alone proves them resident: nobody needs their names."""

    files: int
    bytes: int


class Trouble(NamedTuple):
    """A path at which a call failed: `errno` as the system gives it, `text` what the tool said (may be empty)."""

    path: bytes
    errno: int
    text: str = ""
