"""Data on a local disk that is there or not: blocks given and taken without anybody seeing the times change."""

from __future__ import annotations

import ctypes
import os
from typing import Final

FIRST_BLOCK: Final = 4096
"""Bytes that a resident file really holds: enough for st_blocks to be more than 1, whatever the file's size."""

_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
_AT_FDCWD: Final = -100
_HANDLE_ROOM: Final = 128

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class _Handle(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * _HANDLE_ROOM))


def give(path: bytes) -> None:
    """Allocate the first block of a file, as a restore gives it its data back; keeps size and times."""
    fd, before = _open(path)
    try:
        if before.st_size:
            os.posix_fallocate(fd, 0, min(before.st_size, FIRST_BLOCK))
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
    finally:
        os.close(fd)


def take(path: bytes) -> None:
    """Punch a file to a hole of its size, as a release leaves it; keeps size and times."""
    fd, before = _open(path)
    try:
        # To the end of the last block: of a part of one only the bytes are zeroed.
        length = before.st_size + before.st_blksize
        if before.st_size and _libc.fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, 0, length):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
    finally:
        os.close(fd)


def identity(path: bytes) -> bytes:
    """What tells a file from a later one with the same inode number: the kernel's file handle.

    Where the file system gives none (overlayfs), the inode number has to do.
    """
    handle = _Handle(size=_HANDLE_ROOM)
    mount = ctypes.c_int()
    if _libc.name_to_handle_at(_AT_FDCWD, path, ctypes.byref(handle), ctypes.byref(mount), 0):
        return os.lstat(path).st_ino.to_bytes(8, "big")
    return bytes(handle.data[: handle.size])


def _open(path: bytes) -> tuple[int, os.stat_result]:
    """Open for writing, even a file whose owner took that right away: the simulation is not its user."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        mode = os.lstat(path).st_mode & 0o7777
        os.chmod(path, mode | 0o200)  # noqa: PTH101 - a path of bytes
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        os.fchmod(fd, mode)
    return fd, os.fstat(fd)
