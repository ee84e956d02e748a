"""Lustre's HSM by system calls: what a helper process does for `fsxwarm.lustre.native`.

It uses nothing but the interpreter's own modules and `abi`, and only helper processes run it: a call may hang in the
kernel for ever.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fsxwarm.lustre import abi

T = TypeVar("T")

Answer = tuple[Any, ...] | int
"""What one file's call gave; a number is the errno that it failed with."""

STAND_IN = "FSXWARM_SYSTEM_CALLS"
"""The variable that names what stands in for the kernel's calls; `fsxwarm sim` sets it."""

_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECTORY | os.O_CLOEXEC
_AT_EMPTY_PATH = 0x1000


class SystemCalls:
    """The calls to the kernel that are Lustre's. All raise OSError.

    `ctypes.CDLL` lets other threads run during a call; `fcntl.ioctl` does not for buffers over 1,024 bytes.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
        self._libc.name_to_handle_at.argtypes = (
            ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
        )  # fmt: skip

    def open(self, path: bytes, flags: int) -> int:
        """Open; with O_PATH it asks for no rights on the file and sends nothing but the look-up of the name."""
        return os.open(path, flags)

    def close(self, fd: int) -> None:
        """Close."""
        os.close(fd)

    def ioctl(self, fd: int, number: int, argument: bytes) -> bytes:
        """Call an ioctl with a buffer; returns the buffer as the kernel left it."""
        buffer = ctypes.create_string_buffer(argument, len(argument))
        if self._libc.ioctl(fd, number, buffer) < 0:
            raise _failure()
        return buffer.raw

    def fid(self, fd: int) -> bytes:
        """Return the FID of what an O_PATH descriptor stands for. ENODATA for what is not on Lustre, as lfs says."""
        handle = ctypes.create_string_buffer(abi.EMPTY_HANDLE, len(abi.EMPTY_HANDLE))
        mount = ctypes.c_int()
        if self._libc.name_to_handle_at(fd, b"", handle, ctypes.byref(mount), _AT_EMPTY_PATH) < 0:
            raise _failure()
        fid = abi.fid_of(handle.raw)
        if fid is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        return fid

    def layout(self, path: bytes) -> bytes:
        """Return a file's layout, which needs no rights on the file; ENODATA for one without."""
        return os.getxattr(path, b"lustre.lov", follow_symlinks=False)


def load(environ: Mapping[str, str]) -> SystemCalls:
    """Return the kernel's calls, or those of a simulated FSx: `Calls` in the Python file that STAND_IN names."""
    stand_in = environ.get(STAND_IN)
    if not stand_in:
        return SystemCalls()
    import runpy  # noqa: PLC0415 - the kernel's own calls don't need it

    calls: SystemCalls = runpy.run_path(stand_in)["Calls"]()
    return calls


Work = Callable[..., Any]
"""Does one job: called with a mark, whose first item says how many paths have been dealt with, and its arguments."""


class Native:
    """Does the jobs that `NativeHsm` gives to helpers, each in whatever thread takes it."""

    def __init__(self, calls: SystemCalls) -> None:
        self._calls = calls
        self.jobs: dict[str, Work] = {
            "states": self._states,
            "actions": self._actions,
            "released": self._released,
            "pin": self._pin,
            "request": self._request,
            "probe": self._probe,
        }

    # ---- looking -----------------------------------------------------------------------------------------------

    def _states(self, mark: list[int], paths: list[bytes]) -> list[Answer]:
        def flags(fd: int) -> Answer:
            return (abi.flags_of(self._calls.ioctl(fd, abi.STATE_GET, abi.EMPTY_STATE)),)

        return _each(mark, paths, lambda path: self._opened(path, _LOOK, flags))

    def _actions(self, mark: list[int], paths: list[bytes]) -> list[Answer]:
        def progress(fd: int) -> Answer:
            return tuple(abi.progress_of(self._calls.ioctl(fd, abi.ACTION, abi.EMPTY_ACTION)))

        return _each(mark, paths, lambda path: self._opened(path, _LOOK, progress))

    def _released(self, mark: list[int], paths: list[bytes]) -> list[Answer]:
        return _each(mark, paths, self._is_released)

    def _is_released(self, path: bytes) -> Answer:
        try:
            layout = self._calls.layout(path)
        except OSError as error:
            if error.errno == errno.ENODATA:  # nothing was ever written into it
                return (False,)
            raise
        try:
            return (abi.released(layout),)
        except ValueError:
            return errno.EPROTO

    def _pin(self, mark: list[int], paths: list[bytes], set_flags: int, clear_flags: int) -> list[Answer]:
        change = abi.change(set_flags, clear_flags)

        def pin(fd: int) -> Answer:
            self._calls.ioctl(fd, abi.STATE_SET, change)
            return ()

        return _each(mark, paths, lambda path: self._opened(path, _CHANGE, pin))

    def _opened(self, path: bytes, flags: int, then: Callable[[int], T]) -> T:
        fd = self._calls.open(path, flags)
        try:
            return then(fd)
        finally:
            self._calls.close(fd)

    # ---- asking ------------------------------------------------------------------------------------------------

    def _request(self, _mark: list[int], paths: list[bytes], action: int, mounts: list[bytes]) -> tuple[int, str]:
        """Send one request for files of one file system: its errno and words. One bad name, and nothing is sent."""
        fids: dict[bytes, None] = {}
        dev = mount = None
        for path in paths:
            try:
                fid, found, above = self._opened(path, _NAME, lambda fd: self._identify(fd, mounts))
            except OSError as error:
                return error.errno or errno.EIO, f"{_text(path)}: {error.strerror}"
            if dev is None:
                dev, mount = found, above
            if found != dev:
                return errno.EXDEV, f"{_text(path)} is on another file system than {_text(paths[0])}"
            fids[fid] = None
        if mount is None:
            return errno.ENODEV, f"{_text(paths[0])}: no Lustre mount is known there"
        argument = abi.request(action, list(fids))
        try:
            self._opened(mount, _FOLDER, lambda fd: self._calls.ioctl(fd, abi.REQUEST, argument))
        except OSError as error:
            return error.errno or errno.EIO, f"request for {len(fids)} files refused: {error.strerror}"
        return 0, ""

    def _identify(self, fd: int, mounts: Sequence[bytes]) -> tuple[bytes, int, bytes | None]:
        """FID, st_dev and mount point of a regular file."""
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            number = errno.ELOOP if stat.S_ISLNK(info.st_mode) else errno.EINVAL
            raise OSError(number, "is no regular file")
        return self._calls.fid(fd), info.st_dev, mount_above(_real_path(fd), mounts)

    # ---- can it be done at all? --------------------------------------------------------------------------------

    def _probe(self, _mark: list[int], mount: bytes) -> str:
        """Try on a mount point what a look-up needs; returns why it does not work, or nothing."""
        machine = os.uname().machine
        if machine not in abi.MACHINES:
            return f"the ioctls are not known for {machine}"
        try:
            self._opened(mount, _NAME, self._calls.fid)
            self._opened(mount, _FOLDER, lambda fd: self._calls.ioctl(fd, abi.STATE_GET, abi.EMPTY_STATE))
        except OSError as error:
            if error.errno == errno.ENOTTY:  # what Lustre says for a folder
                return ""
            return f"a call on {_text(mount)} failed: {error.strerror}"
        return f"{_text(mount)} answers as no folder on Lustre does"


def mount_above(path: bytes, mounts: Sequence[bytes]) -> bytes | None:
    """Find the mount point that a path without symlinks lies below: the longest one."""
    above = [mount for mount in mounts if path.startswith(mount.rstrip(b"/") + b"/")]
    return max(above, key=len, default=None)


def _each(mark: list[int], paths: Sequence[bytes], call: Callable[[bytes], Answer]) -> list[Answer]:
    answers: list[Answer] = []
    for path in paths:
        try:
            answers.append(call(path))
        except OSError as error:
            answers.append(error.errno or errno.EIO)
        except ValueError:  # a NUL in a name
            answers.append(errno.EINVAL)
        mark[0] += 1
    return answers


def _real_path(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 - bytes


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _text(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
