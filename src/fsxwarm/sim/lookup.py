"""Path look-up as the kernel does it, with the caller's rights, over any tree of names."""

from __future__ import annotations

import errno
import os
from typing import Final, Protocol, TypeVar

from fsxwarm.sim.lfs.kernel import Kind

LONGEST_PATH: Final = 4095
LONGEST_NAME: Final = 255
MOST_LINKS: Final = 40
READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1


class Node(Protocol):
    """Something that a name leads to."""

    @property
    def kind(self) -> Kind:
        """What it is."""
        ...

    @property
    def uid(self) -> int:
        """Its owner."""
        ...

    @property
    def gid(self) -> int:
        """Its group."""
        ...

    @property
    def mode(self) -> int:
        """Its permission bits."""
        ...


N = TypeVar("N", bound=Node)


class Names(Protocol[N]):
    """A tree of names. Folders know their parents; the root's is itself."""

    @property
    def root(self) -> N:
        """Where absolute paths start."""
        ...

    def enter(self, folder: N, name: bytes) -> N:
        """Look a name up in a folder, `..` included; FileNotFoundError."""
        ...

    def readlink(self, link: N) -> bytes:
        """Read a symlink."""
        ...


class Caller(Protocol):
    """Whose rights apply."""

    @property
    def uid(self) -> int:
        """The user."""
        ...

    @property
    def gids(self) -> frozenset[int]:
        """All groups."""
        ...


def resolve(names: Names[N], start: N, path: bytes, caller: Caller, *, follow: bool = True) -> N:
    """Look up `path`, relative ones from the folder `start`. With `follow` a symlink at the end is followed.

    Raises OSError: ENOENT, ENOTDIR, EACCES (a folder that may not be searched), ENAMETOOLONG, ELOOP.
    """
    if len(path) > LONGEST_PATH:
        raise failure(errno.ENAMETOOLONG, path)
    if not path:
        raise failure(errno.ENOENT, path)
    node = names.root if path.startswith(b"/") else start
    todo = _parts(path)
    links = 0
    while todo:
        part = todo.pop()
        if node.kind is not Kind.FOLDER:
            raise failure(errno.ENOTDIR, path)
        if not may(caller, node, SEARCH):
            raise failure(errno.EACCES, path)
        if part == b".":
            continue
        if len(part) > LONGEST_NAME:
            raise failure(errno.ENAMETOOLONG, path)
        found = names.enter(node, part)
        if found.kind is Kind.LINK and (follow or todo):
            links += 1
            if links > MOST_LINKS:
                raise failure(errno.ELOOP, path)
            target = names.readlink(found)
            todo += _parts(target)
            if target.startswith(b"/"):
                node = names.root
        else:
            node = found
    return node


def may(caller: Caller, node: Node, wanted: int) -> bool:
    """Tell whether the permission bits let the caller read, write or search; root may always read and write."""
    if caller.uid == 0:
        return wanted != SEARCH or node.kind is Kind.FOLDER or bool(node.mode & 0o111)
    if caller.uid == node.uid:
        bits = node.mode >> 6
    elif node.gid in caller.gids:
        bits = node.mode >> 3
    else:
        bits = node.mode
    return bits & wanted == wanted


def failure(number: int, path: bytes) -> OSError:
    """Make the `OSError` of an errno."""
    return OSError(number, os.strerror(number), path)


def _parts(path: bytes) -> list[bytes]:
    """Split a path into its parts, last one first; a slash at the end asks for a folder, as `.` does."""
    parts = [part for part in path.split(b"/") if part]
    if path.endswith(b"/"):
        parts.append(b".")
    return parts[::-1]
