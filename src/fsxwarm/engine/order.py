"""The order in which files are wanted."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable
from typing import Final

from fsxwarm.model.entry import Entry, Resident
from fsxwarm.model.order import Order
from fsxwarm.ports.tree import Batch

__all__ = ["Order", "in_order"]

_BATCH: Final = 1000
_FIELDS: Final = struct.Struct(">QQQQqqqIII")
_KEY: Final = struct.Struct(">Q")
_TOP: Final = 2**64 - 1

_KEYS: Final[dict[Order, Callable[[Entry], int]]] = {
    Order.PATH: lambda _: 0,
    Order.LARGEST: lambda entry: _TOP - entry.size,
    Order.SMALLEST: lambda entry: entry.size,
    Order.NEWEST: lambda entry: _TOP - (entry.mtime + 2**63),
}


async def in_order(batches: AsyncIterator[Batch], order: Order) -> AsyncIterator[Batch]:
    """Sort a walk's files; equal ones by path.

    All but `Order.LISTED` hold each file that the walk yields as an entry in memory, about 200 bytes and its path.
    Runs of residents and troubles are handed on as they come.
    """
    if order is Order.LISTED:
        async for batch in batches:
            yield batch
        return
    key = _KEYS[order]
    records: list[bytes] = []
    async for batch in batches:
        rest = Batch(batch.folder, troubles=batch.troubles, skipped=batch.skipped)
        for item in batch.items:
            if isinstance(item, Resident):
                rest.items.append(item)
            else:
                records.append(_pack(key(item), item))
        if rest.items or rest.troubles or rest.skipped:
            yield rest
    records.sort(reverse=True)  # so that the end can be popped and memory shrinks while the files are used
    while records:
        batch = Batch(b"")
        while records and len(batch.items) < _BATCH:
            batch.items.append(_unpack(records.pop()))
        yield batch


def _pack(key: int, entry: Entry) -> bytes:
    path, dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode = entry
    fields = _FIELDS.pack(dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode)
    return b"".join((_KEY.pack(key), path, b"\0", fields))


def _unpack(record: bytes) -> Entry:
    path = record[_KEY.size : -_FIELDS.size - 1]
    dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode = _FIELDS.unpack(record[-_FIELDS.size :])
    return Entry(path, dev, ino, size, blocks, mtime, atime, ctime, nlink, uid, mode)
