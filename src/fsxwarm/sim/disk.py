"""The names of a real machine, with a folder on its local disk taken for a mounted Lustre.

stat, scandir and sizes are the disk's own. Not simulated: contents (a released file comes back as zeros), reading a
released file (it reads as zeros at once instead of waiting for a restore), layouts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fsxwarm.sim.calls import Caller
from fsxwarm.sim.lfs.kernel import Fid, Kind, Mounted

_KINDS: Final = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.FOLDER,
    stat.S_IFLNK: Kind.LINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.CHAR,
    stat.S_IFBLK: Kind.BLOCK,
}


@dataclass(frozen=True, slots=True)
class DiskNode:
    """A name on the machine: its path with all links resolved, and what stat says of it."""

    path: bytes
    stat: os.stat_result
    fid: Fid | None
    mount: Mounted | None

    @property
    def kind(self) -> Kind:
        """What it is."""
        return _KINDS[stat.S_IFMT(self.stat.st_mode)]

    @property
    def dev(self) -> int:
        """Its file system: the simulated Lustre is one of its own, though it shares the disk's number."""
        return -1 if self.fid is not None else self.stat.st_dev

    @property
    def uid(self) -> int:
        """Its owner."""
        return self.stat.st_uid

    @property
    def gid(self) -> int:
        """Its group."""
        return self.stat.st_gid

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return stat.S_IMODE(self.stat.st_mode)


@dataclass(frozen=True, slots=True)
class DiskMachine:
    """Implements `fsxwarm.sim.mounted.Machine`: what lies in or below `mount.path` is on Lustre.

    `fid_of` gives the FID of what is there, from its path and its stat.
    """

    mount: Mounted
    fid_of: Callable[[bytes, os.stat_result], Fid]

    @property
    def root(self) -> DiskNode:
        """See `Names`."""
        return self._node(b"/")

    def enter(self, folder: DiskNode, name: bytes) -> DiskNode:
        """See `Names`."""
        if name == b"..":
            return self._node(folder.path.rpartition(b"/")[0] or b"/")
        return self._node(folder.path.rstrip(b"/") + b"/" + name)

    def readlink(self, link: DiskNode) -> bytes:
        """See `Names`."""
        return os.readlink(link.path)  # noqa: PTH115 - a path of bytes

    def listdir(self, folder: DiskNode) -> list[tuple[bytes, Kind]]:
        """See `Machine`."""
        with os.scandir(folder.path) as entries:
            return [(entry.name, _kind_of(entry)) for entry in entries]

    def create(self, folder: DiskNode, name: bytes, caller: Caller) -> None:
        """See `Machine`."""
        path = folder.path + b"/" + name
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            if caller.uid != os.geteuid():
                os.fchown(fd, caller.uid, -1)
        finally:
            os.close(fd)

    def _node(self, path: bytes) -> DiskNode:
        found = os.lstat(path)
        top = self.mount.path
        if path == top or path.startswith(top + b"/"):
            return DiskNode(path, found, self.fid_of(path, found), self.mount)
        return DiskNode(path, found, None, None)


def _kind_of(entry: os.DirEntry[bytes]) -> Kind:
    if entry.is_symlink():
        return Kind.LINK
    if entry.is_file(follow_symlinks=False):
        return Kind.FILE
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return _KINDS[stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)]
