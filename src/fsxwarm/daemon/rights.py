"""Who is at the other end of a unix socket, as the kernel knows it. Nothing that a client says counts."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import Final, Protocol

from fsxwarm.model.job import Identity

_PEERGROUPS: Final = 59
"""SO_PEERGROUPS, since Linux 4.13; Python 3.11 has no name for it."""
_UCRED: Final = struct.Struct("iII")
_GID: Final = 4
_MOST_THROUGH_PYTHON: Final = 1024
_MOST_GROUPS: Final = 65536
"""NGROUPS_MAX."""


class Socket(Protocol):
    """What is needed of a socket, or of asyncio's stand-in for one."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...

    def getsockopt(self, level: int, option: int, length: int, /) -> bytes:
        """Read an option."""
        ...


def peer(sock: Socket) -> Identity:
    """The user who connected, with the groups that the connecting process had: the primary one first.

    They are those of the moment of `connect`, and hold for the connection. OSError where the kernel does not tell.
    """
    _, uid, gid = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    try:
        data = sock.getsockopt(socket.SOL_SOCKET, _PEERGROUPS, _MOST_THROUGH_PYTHON)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        data = _many_groups(sock)
    groups = [group for (group,) in struct.iter_unpack("I", data)]
    return Identity(uid, (gid, *(group for group in dict.fromkeys(groups) if group != gid)))


def _many_groups(sock: Socket) -> bytes:
    """Read the groups of a user in more than 256 of them: beyond what Python's own call takes."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_MOST_GROUPS * _GID)
    length = ctypes.c_uint32(len(buffer))
    if libc.getsockopt(sock.fileno(), socket.SOL_SOCKET, _PEERGROUPS, buffer, ctypes.byref(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return buffer.raw[: length.value]
