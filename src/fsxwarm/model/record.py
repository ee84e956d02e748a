"""Walk items as compact bytes, for queues that may not fit into memory."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from fsxwarm.model.entry import Entry, Resident

_ENTRY: Final = struct.Struct("<HQQQQqqqIII")
_RUN: Final = struct.Struct("<HQQ")
_RUN_MARK: Final = 0xFFFF
"""In place of a path's length, which is below it (PATH_MAX is 4096, and deeper paths are refused by the kernel)."""


def pack_all(items: Iterable[Entry | Resident]) -> bytes:
    """Write items one after the other."""
    parts: list[bytes] = []
    for item in items:
        if isinstance(item, Resident):
            parts.append(_RUN.pack(_RUN_MARK, item.files, item.bytes))
        else:
            parts += (_ENTRY.pack(len(item.path), *item[1:]), item.path)
    return b"".join(parts)


def unpack_all(data: bytes) -> list[Entry | Resident]:
    """Read what `pack_all` wrote."""
    items: list[Entry | Resident] = []
    at = 0
    while at < len(data):
        if data[at : at + 2] == b"\xff\xff":
            _, files, size = _RUN.unpack_from(data, at)
            items.append(Resident(files, size))
            at += _RUN.size
            continue
        length, *fields = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode = fields
        items.append(Entry(data[at : at + length], dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode))
        at += length
    return items
