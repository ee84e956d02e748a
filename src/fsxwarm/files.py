"""Reading small files whole, that somebody else names."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO, Final

MOST: Final = 16 << 20
"""Bytes that such a file may have: more than any configuration or mount table needs, and no strain on any machine."""


def read_whole(path: str | Path, most: int = MOST) -> bytes:
    """Read a file of at most `most` bytes. OSError, with EFBIG for one that has more or does not end (/dev/zero)."""
    with Path(path).open("rb") as file:
        return read_rest(file, most)


def read_rest(file: BinaryIO, most: int = MOST) -> bytes:
    """Read what is left of an open file, as `read_whole` does."""
    data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data
