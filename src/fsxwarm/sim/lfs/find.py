"""`lfs find`: the tests by name, type and layout, walked as liblustreapi's semantic traversal does."""

from __future__ import annotations

import errno
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fsxwarm.sim.lfs.getopt import BadOptionError, Option, Spec, parse
from fsxwarm.sim.lfs.kernel import Kernel, Kind
from fsxwarm.sim.lfs.outcome import Outcome, Output, UsageError, number, strerror

_FIND: Final = Spec(
    short={"0": False, "P": False, "p": False, "t": True, "n": True, "L": True, "D": True, "z": False},
    long={"print0": "0", "print": "P", "type": "t", "name": "n", "layout": "L", "maxdepth": "D", "lazy": "z"},
    single_dash=True,
    in_order=True,
)
_LAYOUTS: Final = {b"released", b"raid0", b"mdt"}
_TOO_DEEP: Final = 1
"""What the traversal of a folder at the depth limit returns; it hides later errors of its parent, as in Lustre."""


@dataclass(slots=True)
class _Query:
    """What to print. A test that starts with `!` is negated."""

    kind: Kind | None = None
    kind_negated: bool = False
    layout: bytes | None = None
    layout_negated: bool = False
    name: bytes | None = None
    name_negated: bool = False
    depth: int | None = None
    end: bytes = b"\n"


def find(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs find ROOT... [TESTS]`: prints nothing and exits 0 on what is not Lustre when a layout is asked for."""
    try:
        options, rest = parse(_FIND, argv)
    except BadOptionError as error:
        raise UsageError(b"lfs: unrecognized option '%b'" % error.named) from error
    roots = _roots(options, rest)
    query = _query(options)
    search = _Search(kernel, query)
    status = 0
    for root in roots:
        error_number = search.root(root)
        if error_number:
            search.output.complain(b"lfs: failed for '%b': %b" % (root, strerror(error_number)))
            status = status or error_number
    return search.output.exit(status)


def _roots(options: Sequence[Option], rest: Sequence[bytes]) -> list[bytes]:
    """Return the one contiguous run of roots; `!` and options end it."""
    runs: list[list[bytes]] = []
    running = False
    for option in [*options, *(Option("", word) for word in rest)]:
        is_root = not option.letter and option.value != b"!"
        if is_root and not running:
            runs.append([])
        if is_root:
            runs[-1].append(option.value)
        running = is_root
    if not runs:
        raise UsageError(b"error: find: no filename|pathname")
    if len(runs) > 1:
        raise UsageError(b"error: find: filename|pathname must either precede options or follow options")
    return runs[0]


def _query(options: Sequence[Option]) -> _Query:
    query = _Query()
    negated = False
    for option in options:
        if option.letter == "t":
            query.kind, query.kind_negated = _kind(option.value), negated
        elif option.letter == "L":
            query.layout, query.layout_negated = _layout(option.value), negated
        elif option.letter == "n":
            query.name, query.name_negated = option.value, negated
        elif option.letter == "D":
            query.depth = int(option.value) if option.value.isdigit() else 0
        elif option.letter == "0":
            query.end = b"\0"
        negated = not option.letter and option.value == b"!"
    return query


def _kind(value: bytes) -> Kind:
    try:
        return Kind(value.decode())
    except ValueError as error:
        raise UsageError(b"error: find: bad type '%b'" % value) from error


def _layout(value: bytes) -> bytes:
    if value not in _LAYOUTS:
        raise UsageError(b"error: find: bad layout '%b'" % value)
    return value


class _Search:
    def __init__(self, kernel: Kernel, query: _Query) -> None:
        self.kernel = kernel
        self.query = query
        self.output = Output()

    def root(self, path: bytes) -> int:
        """Search below one root; return the errno it fails with, 0 for success."""
        lustre = _on_lustre(self.kernel, path)
        try:
            return max(0, -self._folder(path, 0, lustre=lustre))
        except NotADirectoryError:
            self._test(path, self.kernel.lstat(path).kind, lustre=lustre)
            return 0

    def _folder(self, path: bytes, depth: int, *, lustre: bool) -> int:
        """Visit a folder: a negative errno, `_TOO_DEEP`, or 0. The first that is not 0 among its folders wins."""
        try:
            entries = self.kernel.listdir(path)
        except NotADirectoryError:
            raise
        except OSError as error:
            return -self._cannot_open(path, number(error))
        self._test(path, Kind.FOLDER, lustre=lustre)
        if depth == self.query.depth:
            return _TOO_DEEP
        status = 0
        for name, kind in entries:
            below = path + b"/" + name
            if kind is Kind.FOLDER:
                result = self._folder(below, depth + 1, lustre=lustre)
                status = status or result
            else:
                self._test(below, kind, lustre=lustre)
        return status

    def _cannot_open(self, path: bytes, error: int) -> int:
        """A missing folder is silent: only the call's last line tells."""
        if error != errno.ENOENT:
            self.output.complain(
                b"lfs find: llapi_semantic_traverse: Failed to open '%b': %b (%d)" % (path, strerror(error), error)
            )
        return error

    def _test(self, path: bytes, kind: Kind, *, lustre: bool) -> None:
        query = self.query
        if query.name is not None:
            matches = fnmatch.fnmatchcase(path.rpartition(b"/")[2], query.name)
            if matches is query.name_negated:
                return
        if query.kind is not None and (kind is query.kind) is query.kind_negated:
            return
        if query.layout is not None:
            released = self.kernel.released(path) if lustre and kind is Kind.FILE else None
            if released is None or _has_layout(query.layout, released=released) is query.layout_negated:
                return
        self.output.print(path, query.end)


def _has_layout(layout: bytes, *, released: bool) -> bool:
    """A released file keeps its raid0 pattern beside the released bit; none is on the MDT alone."""
    return released if layout == b"released" else layout == b"raid0"


def _on_lustre(kernel: Kernel, path: bytes) -> bool:
    try:
        kernel.mounted(path)
    except OSError:
        return False
    return True
