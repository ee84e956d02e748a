"""`lfs hsm_restore`, `hsm_archive`, `hsm_release`, `hsm_remove`, `hsm_cancel`: check every name, then send one request.

Order and words as measured on 2.15.8: options, operands one by one, the list's lines one by one, then the request.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fsxwarm.model.hsm import Verb
from fsxwarm.sim.lfs.getopt import BadOptionError, Option, Spec, parse
from fsxwarm.sim.lfs.kernel import Fid, Kernel, Kind, Request
from fsxwarm.sim.lfs.outcome import Outcome, Output, UsageError, number, strerror

VERBS: Final = {
    "hsm_archive": Verb.ARCHIVE,
    "hsm_restore": Verb.RESTORE,
    "hsm_release": Verb.RELEASE,
    "hsm_remove": Verb.REMOVE,
    "hsm_cancel": Verb.CANCEL,
}

ReadList = Callable[[bytes], bytes]
"""Read the file that `--filelist` names, with the caller's rights; raises `OSError`."""

_REQUEST: Final = Spec(
    short={"l": True, "D": True, "a": True, "m": True, "h": False},
    long={"filelist": "l", "data": "D", "archive": "a", "mntpath": "m", "help": "h"},
)
_NUMBER: Final = rb"(0x[0-9a-f]{1,16}|0[0-7]{0,21}|[1-9][0-9]{0,19})"
_FID: Final = re.compile(rb"\[?%b:%b:%b\]?" % (_NUMBER, _NUMBER, _NUMBER), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Send:
    """A checked call that now sends its request on a mount, and hangs until the servers answer it."""

    mount: bytes
    request: Request
    named: bytes

    def answered(self, error: int) -> Outcome:
        """Return what `lfs` prints and exits with once the servers have answered; `error` 0 is success."""
        output = Output()
        if error:
            output.complain(_cannot_send(self.named, error))
        return output.exit(error)


@dataclass(frozen=True, slots=True)
class _Options:
    filelist: bytes | None = None
    mount: bytes | None = None
    archive_id: int = 0
    data_size: int = 0


class _RefusedError(Exception):
    """A name that stops the call before anything is sent."""

    def __init__(self, message: bytes, status: int) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def _refused(what: bytes, error: OSError) -> _RefusedError:
    return _RefusedError(b"%b: %b" % (what, strerror(number(error))), number(error))


def filelist(argv: Sequence[bytes]) -> bytes | None:
    """Return the list that a call is going to read, if it names one and gets that far with its options."""
    try:
        return _parse(argv)[0].filelist
    except UsageError:
        return None


def request(argv: Sequence[bytes], kernel: Kernel, read_list: ReadList) -> Outcome | Send:
    """Check every name of a call; return what it comes to, or the request that it sends."""
    options, paths = _parse(argv)
    if not paths and options.filelist is None:
        raise UsageError
    items = _Items(kernel, by_fid=options.mount is not None)
    try:
        for path in paths:
            items.add(path)
        if options.filelist is not None:
            for line in _lines(read_list, options.filelist):
                items.add(line)
    except _RefusedError as refused:
        output = Output()
        output.complain(refused.message)
        return output.exit(refused.status)
    named = options.mount if options.mount is not None else items.first
    if named is None:
        return _no_mount(b"(null)", errno.EINVAL)  # as glibc prints a null pointer, and realpath refuses one
    body = Request(
        verb=VERBS[argv[0].decode()],
        fids=tuple(items.fids),
        archive_id=options.archive_id,
        data_size=options.data_size,
    )
    try:
        return Send(kernel.mounted(named).path, body, named)
    except OSError as error:
        return _no_mount(named, None if number(error) == errno.ENOTTY else number(error))


def _parse(argv: Sequence[bytes]) -> tuple[_Options, list[bytes]]:
    if len(argv) == 1:
        raise UsageError
    try:
        options, paths = parse(_REQUEST, argv)
    except BadOptionError as error:
        _refuse_options(argv[0], error.before)
        raise UsageError(b"lfs: unrecognized option '%b'" % error.named) from error
    _refuse_options(argv[0], options)
    found = {option.letter: option.value for option in options}
    archive = found.get("a", b"0")
    return _Options(
        filelist=found.get("l"),
        mount=found.get("m"),
        archive_id=int(archive) if archive.isdigit() else 0,
        data_size=len(found.get("D", b"")),
    ), paths


def _refuse_options(command: bytes, options: Sequence[Option]) -> None:
    """Stop at the first option that asks for help or that this sub-command does not take."""
    for option in options:
        if option.letter == "h":
            raise UsageError
        if option.letter == "a" and VERBS[command.decode()] not in {Verb.ARCHIVE, Verb.REMOVE}:
            raise UsageError(b"error: -a is supported only when archiving or removing")


class _Items:
    """The files of one request, checked as they come."""

    def __init__(self, kernel: Kernel, *, by_fid: bool) -> None:
        self.kernel = kernel
        self.by_fid = by_fid
        self.fids: list[Fid] = []
        self.first: bytes | None = None
        self.dev: int | None = None

    def add(self, name: bytes) -> None:
        self.fids.append(_parse_fid(name) if self.by_fid else self._look_up(name))
        if self.first is None:
            self.first = name

    def _look_up(self, path: bytes) -> Fid:
        try:
            node = self.kernel.lstat(path)
        except OSError as error:
            raise _refused(b"Cannot stat " + path, error) from error
        if node.kind is not Kind.FILE:
            raise UsageError(b'error: "%b" is not a regular file' % path)
        if self.dev is None:
            self.dev = node.dev
        elif self.dev != node.dev:
            raise _RefusedError(b"All files should be on the same filesystem: " + path, errno.EINVAL)
        try:
            return self.kernel.path2fid(path)
        except OSError as error:
            raise _refused(b"Cannot read FID of " + path, error) from error


def parse_fid(text: bytes) -> Fid | None:
    """Read a FID such as `[0x200000402:0xa:0x0]`, brackets or not, as strtoull does; None if it is none."""
    match = _FID.fullmatch(text)
    return Fid(*map(_strtoull, match.groups())) if match else None


def _strtoull(text: bytes) -> int:
    """Read a number in C's notation: 0x is hexadecimal, 0 octal, all else decimal."""
    if text[:2].lower() == b"0x":
        return int(text, 16)
    return int(text, 8 if text.startswith(b"0") else 10)


def _parse_fid(text: bytes) -> Fid:
    fid = parse_fid(text)
    if fid is None:
        raise _RefusedError(b"hsm: '%b' is not a valid FID" % text, errno.EINVAL)
    return fid


def _lines(read_list: ReadList, path: bytes) -> list[bytes]:
    """Read a file list as `lfs` does: getline, cut at the first NUL, then the newline off; a folder reads as empty."""
    try:
        content = read_list(path)
    except IsADirectoryError:
        return []
    except OSError as error:
        raise _refused(b"Cannot read the file list " + path, error) from error
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.split(b"\0")[0] for line in lines]


def _no_mount(named: bytes, unresolved: int | None) -> Outcome:
    """No Lustre mount is found for the name; `unresolved` is why it has no real path, if it has none."""
    output = Output()
    if unresolved is not None:
        output.complain(b"Could not find path '%b': %b" % (named, strerror(unresolved)))
    output.complain(_cannot_send(named, errno.ENODEV))
    return output.exit(errno.ENODEV)


def _cannot_send(named: bytes, error: int) -> bytes:
    return b"Cannot send HSM request (use of %b): %b" % (named, strerror(error))
