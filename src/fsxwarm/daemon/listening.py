"""The listening socket: made so that nobody else's can stand in its place, or taken over from systemd."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind

_FIRST: Final = 3
_LONGEST: Final = 100
"""Bytes of a path that a unix socket may have (108), less what its name for a moment takes."""


def from_systemd(environ: Mapping[str, str], pid: int) -> socket.socket | None:
    """The socket that systemd passed, if it passed one (sd_listen_fds(3)). FsxwarmError USAGE if it is of no use."""
    if environ.get("LISTEN_PID") != str(pid):
        return None
    if environ.get("LISTEN_FDS") != "1":
        raise FsxwarmError(Kind.USAGE, "systemd passed more than one socket", hint="see fsxwarm.socket")
    sock = socket.socket(fileno=_FIRST)
    listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM or not listens:
        raise FsxwarmError(Kind.USAGE, "systemd passed what is no listening unix stream socket", hint="see its unit")
    sock.set_inheritable(False)
    sock.setblocking(False)
    return sock


def bind(path: str, group: int | None) -> socket.socket:
    """Make the socket at `path`: rw for its owner and `group` (None: for the owner alone), for nobody else ever.

    It is made under another name and moved into place, so that there is no moment at which more may be done with it.
    FsxwarmError CONFLICT if a daemon listens there already; NO_PERMISSION where somebody else owns the folder or what
    is there: they could put their own in its place.
    """
    place = Path(path)
    if len(os.fsencode(path)) > _LONGEST:
        raise FsxwarmError(Kind.USAGE, f"{path} is too long for a socket", hint=f"at most {_LONGEST} bytes")
    _check_folder(place.parent)
    _check_place(place)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = place.with_name(f".{secrets.token_hex(3)}")
    old = os.umask(0o777)
    try:
        sock.bind(str(fresh))
    except OSError as error:
        sock.close()
        raise FsxwarmError(Kind.NO_PERMISSION, f"cannot make {path}: {error.strerror}", hint="") from None
    finally:
        os.umask(old)
    try:
        if group is not None:
            os.chown(fresh, -1, group)
        fresh.chmod(0o660 if group is not None else 0o600)
        fresh.rename(place)
    except OSError as error:
        sock.close()
        fresh.unlink(missing_ok=True)
        raise FsxwarmError(Kind.NO_PERMISSION, f"cannot make {path}: {error.strerror}", hint="") from None
    sock.setblocking(False)
    return sock


def remove(path: str) -> None:
    """Remove the name of a socket of ours to which nobody listens any more."""
    place = Path(path)
    with suppress(OSError):
        info = place.lstat()
        if stat.S_ISSOCK(info.st_mode) and info.st_uid == os.geteuid() and not _answers(place):
            place.unlink()


def _check_folder(folder: Path) -> None:
    try:
        info = folder.stat()
    except OSError as error:
        raise FsxwarmError(
            Kind.NO_PERMISSION, f"{folder}: {error.strerror}", hint="make the folder, or name another (daemon.socket)"
        ) from None
    shared = info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX
    if info.st_uid not in {0, os.geteuid()} or shared:
        raise FsxwarmError(
            Kind.NO_PERMISSION, f"others may put what they like into {folder}", hint="give it to root, mode 0755"
        )


def _check_place(place: Path) -> None:
    try:
        info = place.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise FsxwarmError(Kind.NO_PERMISSION, f"{place} is there and not ours", hint="see who made it, and remove it")
    if _answers(place):
        raise FsxwarmError(Kind.CONFLICT, f"a daemon listens at {place} already", hint="stop it first")


def _answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(place)) in {0, errno.EAGAIN}
