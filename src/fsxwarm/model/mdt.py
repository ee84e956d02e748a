"""Which metadata target (MDT) a file belongs to: requests are queued, and windows kept, per target."""

from __future__ import annotations

from typing import Final, NamedTuple

from fsxwarm.model.entry import Key

_FIRST_SEQUENCE: Final = 0x200000400
"""FID_SEQ_NORMAL, the first sequence given to a metadata target (lustre_fid.h)."""
_SEQUENCES_EACH: Final = 1 << 30
"""LUSTRE_SEQ_SUPER_WIDTH: how many sequences a target gets at once (lustre_fid.h)."""


class LaneId(NamedTuple):
    """A file system (by st_dev) and one of its metadata targets."""

    dev: int
    mdt: int


def lane_of(key: Key) -> LaneId:
    """Find a file's lane from its inode number, which Lustre's client makes from the FID (cl_fid_build_ino).

    The target is a good guess, not a promise: a target that used up its first range of sequences gets another.
    A wrong guess costs nothing but evenness. Inode numbers that are no Lustre FIDs all belong to target 0.
    """
    sequence = key.ino >> 24
    return LaneId(key.dev, max(0, (sequence - _FIRST_SEQUENCE) // _SEQUENCES_EACH))
