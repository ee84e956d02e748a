"""Lustre's HSM by system calls: what a helper process does for `fsxwarm.lustre.native`.

It uses nothing but the interpreter's own modules and `abi`, and only helper processes run it: a call may hang in the
kernel for ever.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from functools import partial

from fsxwarm.lustre import abi

TYPE_CHECKING = False  # as typing's, which is not worth its import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

    Answer = tuple[Any, ...] | int
    """What one file's call gave; a number is the errno that it failed with."""

    Named = tuple[bytes, tuple[int, int] | None]
    """A path, and the st_dev and st_ino of the file that it must mean; None: whatever it means."""

    Work = Callable[..., Any]
    """Does one job: called with a mark, whose first item says how many paths are dealt with, and its arguments."""

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


class NoCalls(SystemCalls):
    """What stands in for calls that could not be loaded: each fails with the reason."""

    def __init__(self, why: str) -> None:
        self._why = why

    def open(self, *_: object) -> int:
        """Fail; every other call needs a descriptor or is made by a path."""
        raise OSError(errno.ENOSYS, self._why)

    def layout(self, *_: object) -> bytes:
        """Fail."""
        raise OSError(errno.ENOSYS, self._why)


def load(environ: Mapping[str, str]) -> SystemCalls:
    """Return the kernel's calls, or those of a simulated FSx: `Calls` in the Python file that STAND_IN names.

    Whatever is wrong with that file, the calls returned tell: a helper that dies of it would tell nobody.
    """
    stand_in = environ.get(STAND_IN)
    if not stand_in:
        return SystemCalls()
    import runpy  # noqa: PLC0415 - the kernel's own calls don't need it

    try:
        calls: SystemCalls = runpy.run_path(stand_in)["Calls"]()
    except Exception as error:  # noqa: BLE001 - it may be any file, which may do anything
        said = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return NoCalls(f"{STAND_IN} names {stand_in}, which cannot be loaded ({said})")
    return calls


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

    def _states(self, mark: list[int], names: list[Named]) -> list[Answer]:
        def flags(fd: int) -> Answer:
            return (abi.flags_of(self._calls.ioctl(fd, abi.STATE_GET, abi.EMPTY_STATE)),)

        return _each(mark, names, lambda name: self._looked(name, flags))

    def _actions(self, mark: list[int], names: list[Named]) -> list[Answer]:
        def progress(fd: int) -> Answer:
            return abi.progress_of(self._calls.ioctl(fd, abi.ACTION, abi.EMPTY_ACTION))

        return _each(mark, names, lambda name: self._looked(name, progress))

    def _looked(self, name: Named, look: Callable[[int], T]) -> T:
        """Look at the very file that is meant: it is told by its descriptor, whatever its name means meanwhile.

        Where a descriptor does not tell (see `_inode`), the look is let through: it changes nothing.
        """
        path, key = name

        def same(fd: int) -> T:
            if key is not None and _inode(fd) not in {None, key[1]} and _key(os.fstat(fd)) != key:
                raise _replaced()
            return look(fd)

        return self._opened(path, _LOOK, same)

    def _released(self, mark: list[int], names: list[Named]) -> list[Answer]:
        return _each(mark, names, self._is_released)

    def _is_released(self, name: Named) -> Answer:
        path, _ = name
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

    def _pin(self, mark: list[int], names: list[Named], set_flags: int, clear_flags: int) -> list[Answer]:
        change = abi.change(set_flags, clear_flags)

        def pin(fd: int) -> Answer:
            self._calls.ioctl(fd, abi.STATE_SET, change)
            return ()

        return _each(mark, names, lambda name: self._opened(name[0], _CHANGE, pin))

    def _opened(self, path: bytes, flags: int, then: Callable[[int], T]) -> T:
        fd = self._calls.open(path, flags)
        try:
            return then(fd)
        finally:
            self._calls.close(fd)

    # ---- asking ------------------------------------------------------------------------------------------------

    def _request(self, _mark: list[int], names: list[Named], action: int, mounts: list[bytes]) -> tuple[int, str]:
        """Send one request for files of one file system: its errno and words. One bad name, and nothing is sent.

        Names are looked up once: from then on the servers are told of FIDs, which mean one file for ever.
        """
        first, _ = names[0]
        fids: dict[bytes, None] = {}
        dev = mount = None
        for path, key in names:
            try:
                fid, found, above = self._opened(path, _NAME, partial(self._identify, key, mounts))
            except OSError as error:
                return error.errno or errno.EIO, f"{_text(path)}: {error.strerror}"
            if dev is None:
                dev, mount = found, above
            if found != dev:
                return errno.EXDEV, f"{_text(path)} is on another file system than {_text(first)}"
            fids[fid] = None
        if mount is None:
            return errno.ENODEV, f"{_text(first)}: no Lustre mount is known there"
        argument = abi.request(action, list(fids))
        try:
            self._opened(mount, _FOLDER, lambda fd: self._calls.ioctl(fd, abi.REQUEST, argument))
        except OSError as error:
            return error.errno or errno.EIO, f"request for {len(fids)} files refused: {error.strerror}"
        return 0, ""

    def _identify(
        self, key: tuple[int, int] | None, mounts: Sequence[bytes], fd: int
    ) -> tuple[bytes, int, bytes | None]:
        """FID, st_dev and mount point of a regular file, the one that `key` says; all by its descriptor."""
        info = os.fstat(fd)
        if key is not None and _key(info) != key:
            raise _replaced()
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


def _each(mark: list[int], names: Sequence[Named], call: Callable[[Named], Answer]) -> list[Answer]:
    answers: list[Answer] = []
    for name in names:
        try:
            answers.append(call(name))
        except OSError as error:
            answers.append(error.errno or errno.EIO)
        except ValueError:  # a NUL in a name
            answers.append(errno.EINVAL)
        mark[0] += 1
    return answers


def _key(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _inode(fd: int) -> int | None:
    """A descriptor's inode number, without asking a server; None before Linux 5.14.

    Stat would tell as well, but costs a call for each look, and clients before 2.15 may block in it during a restore.
    """
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:  # noqa: PTH123 - pathlib is slow to import
            return next((int(line.split()[1]) for line in lines if line.startswith(b"ino:")), None)
    except PermissionError:  # where it is root's, before 5.14 too, in a process that has another user's rights
        return None


def _replaced() -> OSError:
    return OSError(errno.ESTALE, "another file has its name now")


def _real_path(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)  # noqa: PTH115 - bytes


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _text(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
