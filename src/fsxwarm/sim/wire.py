"""The simulator's socket protocol: frames that are lists of byte strings, all numbers big-endian 32 bit.

A frame is its number of parts, then each part's length and bytes. The executable `lfs` (client.py) speaks it without
importing anything but the interpreter's own modules, so that a call starts about as quickly as the real lfs.

To the server: `run cwd uid argv…` (uid empty: the peer's own), `content errno bytes` (the file list asked for),
`control json`, and `call uid name path number argument` (a system call, see syscalls.py). From it: `read path` (send
that file list), `done exit stdout stderr`, `told json`, and `done errno buffer` for a system call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import BinaryIO, Final

LIMIT: Final = 64 << 20
"""The longest frame accepted, in bytes: a long list of files fits."""


class WireError(Exception):
    """The other side does not speak the protocol."""


def frame(parts: Sequence[bytes]) -> bytes:
    """Encode a frame."""
    encoded = [len(parts).to_bytes(4, "big")]
    for part in parts:
        encoded += [len(part).to_bytes(4, "big"), part]
    return b"".join(encoded)


async def receive(reader: asyncio.StreamReader) -> list[bytes] | None:
    """Read a frame; None at a clean end. Raises `WireError` for one cut off or too long."""
    try:
        count = int.from_bytes(await reader.readexactly(4), "big")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise WireError("half a frame") from error
        return None
    parts: list[bytes] = []
    left = LIMIT
    try:
        for _ in range(count):
            size = int.from_bytes(await reader.readexactly(4), "big")
            left -= size + 4
            if left < 0:
                raise WireError("a frame too long")
            parts.append(await reader.readexactly(size))
    except asyncio.IncompleteReadError as error:
        raise WireError("half a frame") from error
    return parts


def read(stream: BinaryIO) -> list[bytes]:
    """Read a frame from a blocking stream. Raises `WireError` for one cut off."""

    def exactly(size: int) -> bytes:
        data = stream.read(size)
        if len(data) < size:
            raise WireError("half a frame")
        return data

    count = int.from_bytes(exactly(4), "big")
    return [exactly(int.from_bytes(exactly(4), "big")) for _ in range(count)]
