"""Walk items as compact bytes, for queues that may not fit into memory."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from fsxwarm.model.entry import Entry, Resident
from fsxwarm.model.outcome import Reason

_ENTRY: Final = struct.Struct("<HQQQQqqqIII")
_RUN: Final = struct.Struct("<HQQ")
_RUN_MARK: Final = 0xFFFF
"""In place of a path's length, which is below it (PATH_MAX is 4096, and deeper paths are refused by the kernel)."""

_BARRED_MARK: Final = 0xFFFE
_BARRED: Final = struct.Struct("<HB")
_REASONS: Final = tuple(Reason)


class Barred(NamedTuple):
    """A file that S3 was found unable to give, and why: it is blocked if it turns out to be released."""

    entry: Entry
    reason: Reason


Item = Entry | Resident | Barred


def pack_all(items: Iterable[Item]) -> bytes:
    """Write items one after the other."""
    parts: list[bytes] = []
    for item in items:
        if isinstance(item, Resident):
            parts.append(_RUN.pack(_RUN_MARK, item.files, item.bytes))
            continue
        if isinstance(item, Barred):
            parts.append(_BARRED.pack(_BARRED_MARK, _REASONS.index(item.reason)))
            item = item.entry  # noqa: PLW2901 - what follows its mark
        parts += (_ENTRY.pack(len(item.path), *item[1:]), item.path)
    return b"".join(parts)


def unpack_all(data: bytes) -> list[Item]:
    """Read what `pack_all` wrote."""
    items: list[Item] = []
    at = 0
    barred: Reason | None = None
    while at < len(data):
        if data[at : at + 2] == b"\xff\xff":
            _, files, size = _RUN.unpack_from(data, at)
            items.append(Resident(files, size))
            at += _RUN.size
            continue
        if data[at : at + 2] == b"\xfe\xff":
            barred = _REASONS[data[at + 2]]
            at += _BARRED.size
        length, *fields = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode = fields
        entry = Entry(data[at : at + length], dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode)
        items.append(entry if barred is None else Barred(entry, barred))
        barred = None
        at += length
    return items
