"""Lustre's system calls on a simulated FSx: each is sent to the server beside this file.

The server puts a copy of this file at `<sim>/bin/syscalls.py`; what makes such calls (fsxwarm without `lfs`) takes it
in place of the kernel's when FSXWARM_SYSTEM_CALLS names it. It may use nothing but the interpreter's own modules. A
call that blocks in the simulated kernel waits here, in its thread. FSXWARM_SIM_UID is as for the simulated `lfs`.
"""

from __future__ import annotations

import os
import socket
import stat
import threading


class Calls:
    """The calls: open and close are the disk's, without rights on files, which each call is then asked for."""

    def __init__(self) -> None:
        self._folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib is slow
        self._uid = os.environ.get("FSXWARM_SIM_UID", "").encode()
        self._own = threading.local()

    def open(self, path: bytes, flags: int) -> int:
        """Stand for what is at a path; ELOOP for a symlink that is not to be followed."""
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | flags & (os.O_NOFOLLOW | os.O_DIRECTORY))
        if not flags & os.O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(40, os.strerror(40), path)
        return fd

    def close(self, fd: int) -> None:
        """Close."""
        os.close(fd)

    def ioctl(self, fd: int, number: int, argument: bytes) -> bytes:
        """An ioctl with a buffer."""
        return self._call(b"ioctl", _path(fd), b"%d" % number, argument)

    def fid(self, fd: int) -> bytes:
        """The FID, as name_to_handle_at tells it."""
        return self._call(b"fid", _path(fd), b"0", b"")

    def layout(self, path: bytes) -> bytes:
        """The xattr lustre.lov."""
        return self._call(b"layout", path, b"0", b"")

    def _call(self, name: bytes, path: bytes, number: bytes, argument: bytes) -> bytes:
        stream = getattr(self._own, "stream", None)
        if stream is None:  # a thread's own: a call that blocks keeps nobody else waiting
            stream = self._own.stream = self._connected().makefile("rwb")
        stream.write(_frame([b"call", self._uid, name, path, number, argument]))
        stream.flush()
        count = int.from_bytes(stream.read(4), "big")
        answer = [stream.read(int.from_bytes(stream.read(4), "big")) for _ in range(count)]
        if len(answer) != 3:  # noqa: PLR2004 - done, errno, buffer
            raise OSError(108, os.strerror(108))  # ESHUTDOWN: the simulated FSx went away
        error = int(answer[1])
        if error:
            raise OSError(error, os.strerror(error), path)
        data: bytes = answer[2]
        return data

    def _connected(self) -> socket.socket:
        # By the folder's descriptor: a socket's path may have 107 bytes, a folder's many more.
        where = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(f"/proc/self/fd/{where}/sim.sock")
        finally:
            os.close(where)
        return sock


def _path(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 - bytes


def _frame(parts: list[bytes]) -> bytes:
    return len(parts).to_bytes(4, "big") + b"".join([len(part).to_bytes(4, "big") + part for part in parts])
