"""Names in memory over a simulated world: a machine's tree with FSx mounted in it, cheap enough for a million files.

The methods from `make_folder` on are what programs outside of fsxwarm do to the tree, as root. Implements
`fsxwarm.sim.mounted.Machine`, so that the simulated `lfs` runs on it as it does on a disk.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from fsxwarm.model.hsm import Flags
from fsxwarm.sim import lookup
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.inodes import LOCAL_DEV, LUSTRE_DEV, Folder, Inode, LustreFile, Other, Owner
from fsxwarm.sim.lfs.kernel import Kind, Mounted
from fsxwarm.sim.world import World

_PLAIN: Final = Flags(0)


class VirtualNamespace:
    """The names. `mount` is where FSx is mounted, `source` what /proc/mounts says of it."""

    def __init__(self, world: World, mount: bytes = b"/fsx", source: str = "fs-sim.example.com@tcp:/simfs") -> None:
        self.world = world
        self.source = source
        self._inos = itertools.count(2)
        self._turn = -1
        self._top = Folder(b"", None, LOCAL_DEV, next(self._inos), None)
        self._mounted = Mounted(mount, source.rpartition("/")[2], "ffff888131bcc000")
        for path in (b"/proc", b"/tmp", mount.rpartition(b"/")[0] or b"/"):
            self.make_folder(path)
        above, name = self._split(mount)
        self.mount = Folder(name, above, LUSTRE_DEV, next(self._inos), self._mounted)
        above.entries[name] = self.mount

    # ---- fsxwarm.sim.mounted.Machine ---------------------------------------------------------------------------

    @property
    def root(self) -> Inode:
        """See `Names`."""
        return self._top

    def enter(self, folder: Inode, name: bytes) -> Inode:
        """See `Names`."""
        if not isinstance(folder, Folder):
            raise lookup.failure(errno.ENOTDIR, name)
        if name == b"..":
            return folder.parent or folder
        found = folder.entries.get(name)
        if found is None:
            raise lookup.failure(errno.ENOENT, name)
        return found

    def readlink(self, link: Inode) -> bytes:
        """See `Names`."""
        return link.target

    def listdir(self, folder: Inode) -> list[tuple[bytes, Kind]]:
        """See `Machine`."""
        if not isinstance(folder, Folder):
            raise lookup.failure(errno.ENOTDIR, b"")
        return [(name, inode.kind) for name, inode in folder.entries.items()]

    def create(self, folder: Inode, name: bytes, caller: lookup.Caller) -> None:
        """See `Machine`."""
        if not isinstance(folder, Folder):
            raise lookup.failure(errno.ENOTDIR, name)
        if name in folder.entries:
            raise lookup.failure(errno.EEXIST, name)
        node = self.world.create(0, caller=Caller(caller.uid, caller.gids), mdt=folder.mdt)
        folder.entries[name] = LustreFile(node, self._mounted, 0)

    # ---- looking up --------------------------------------------------------------------------------------------

    def find(self, path: bytes, caller: lookup.Caller = ROOT, *, follow: bool = True) -> Inode:
        """Look up an absolute path with the caller's rights; OSError as the kernel's."""
        if caller.uid == 0 and (file := self._straight(path)) is not None:
            return file
        return lookup.resolve(self, self._top, path, caller, follow=follow)

    def _straight(self, path: bytes) -> LustreFile | None:
        """The file on FSx that a path leads to through folders alone, which root may all search; None: look closer."""
        if len(path) > lookup.LONGEST_NAME or not path.startswith(b"/"):
            return None
        inode: Inode | None = self._top
        for name in path[1:].split(b"/"):
            if not isinstance(inode, Folder):
                return None
            inode = inode.entries.get(name)
        return inode if isinstance(inode, LustreFile) else None

    def real_path(self, path: bytes, caller: lookup.Caller = ROOT) -> tuple[bytes, Inode]:
        """Look up a path, following links at its end too; return where it really is, and what is there."""
        is_folder = path.endswith(b"/")
        for _ in range(lookup.MOST_LINKS):
            head, _, name = path.rstrip(b"/").rpartition(b"/")
            if name in {b"", b".", b".."}:
                folder = self.find(path, caller)
                return _as_folder(folder, path).path, folder
            above = _as_folder(self.find(head + b"/", caller), path)
            found = self.find(path.rstrip(b"/"), caller, follow=False)
            if found.kind is not Kind.LINK:
                if is_folder:
                    _as_folder(found, path)
                return above.path.rstrip(b"/") + b"/" + name, found
            path = found.target if found.target.startswith(b"/") else above.path + b"/" + found.target
            is_folder |= path.endswith(b"/")
        raise lookup.failure(errno.ELOOP, path)

    def file(self, path: bytes) -> LustreFile:
        """Return the file on FSx that a path names."""
        found = self.find(path)
        if not isinstance(found, LustreFile):
            raise lookup.failure(errno.EINVAL, path)
        return found

    def files(self, paths: Iterable[bytes]) -> list[LustreFile]:
        """Return the files on FSx among what paths name."""
        found: list[LustreFile] = []
        for path in paths:
            with suppress(OSError):
                inode = self.find(path)
                if isinstance(inode, LustreFile):
                    found.append(inode)
        return found

    def walk(self) -> list[bytes]:
        """Return the paths of all files on FSx, each name of a file with several."""
        paths: list[bytes] = []
        todo = [(self.mount, self.mount.path)]
        while todo:
            folder, path = todo.pop()
            for name, inode in folder.entries.items():
                if isinstance(inode, LustreFile):
                    paths.append(path + b"/" + name)
                elif isinstance(inode, Folder):
                    todo.append((inode, path + b"/" + name))
        return paths

    # ---- what others do to the tree ----------------------------------------------------------------------------

    def make_folder(
        self, path: bytes, *, uid: int = 0, gid: int = 0, mode: int = 0o755, mdt: int | None = None
    ) -> Folder:
        """Make a folder and those above it, as far as they are not there; `uid`, `gid`, `mode`, `mdt` of new ones.

        Without `mdt` the metadata targets take turns with the folders at the top of FSx; those below follow theirs.
        """
        folder = self._top
        for name in filter(None, path.split(b"/")):
            below = folder.entries.get(name)
            if below is None:
                target, owner = self._target(folder) if mdt is None else mdt, Owner(uid, gid, mode)
                below = Folder(name, folder, folder.dev, next(self._inos), folder.mount, owner, target)
                folder.entries[name] = below
            folder = _as_folder(below, path)
        return folder

    def make_file(
        self,
        path: bytes,
        size: int,
        flags: Flags = _PLAIN,
        *,
        caller: Caller = ROOT,
        mode: int = 0o644,
        time: int = 0,
    ) -> LustreFile:
        """Make a file on FSx in a folder that is there. `time`: seconds since the epoch, for all three times."""
        folder, name = self._split(path)
        if folder.mount is None:
            raise lookup.failure(errno.EXDEV, path)
        if name in folder.entries:
            raise lookup.failure(errno.EEXIST, path)
        node = self.world.create(size, flags, caller=caller, mode=mode, mdt=folder.mdt)
        made = folder.entries[name] = LustreFile(node, self._mounted, time)
        return made

    def make_local_file(self, path: bytes, kind: Kind = Kind.FILE) -> None:
        """Make a file that is not on FSx, or a FIFO, socket or device anywhere."""
        folder, name = self._split(path)
        folder.entries[name] = Other(kind, folder.dev, next(self._inos), folder.mount)

    def symlink(self, target: bytes, path: bytes) -> None:
        """Make a symbolic link."""
        folder, name = self._split(path)
        folder.entries[name] = Other(Kind.LINK, folder.dev, next(self._inos), folder.mount, target)

    def link(self, path: bytes, new: bytes) -> None:
        """Give a file a second name."""
        file = self.file(path)
        folder, name = self._split(new)
        if name in folder.entries:
            raise lookup.failure(errno.EEXIST, new)
        folder.entries[name] = file
        file.nlink += 1

    def unlink(self, path: bytes, now: float) -> None:
        """Remove a name; with its last one the file goes."""
        folder, name = self._split(path)
        found = self.enter(folder, name)
        if isinstance(found, Folder):
            raise lookup.failure(errno.EISDIR, path)
        del folder.entries[name]
        self._unnamed(found, now)

    def rename(self, path: bytes, new: bytes, now: float) -> None:
        """Give a file or folder another name; a file that had the new name loses it."""
        folder, name = self._split(path)
        moved = self.enter(folder, name)
        to, new_name = self._split(new)
        replaced = to.entries.get(new_name)
        if replaced is moved:
            return
        if isinstance(replaced, Folder):
            raise lookup.failure(errno.EISDIR, new)
        del folder.entries[name]
        to.entries[new_name] = moved
        if isinstance(moved, Folder):
            moved.name, moved.parent = new_name, to
        if replaced is not None:
            self._unnamed(replaced, now)

    def read(self, path: bytes, now: float, *, time: int = 0) -> Call:
        """Read a file, which waits for its restore; `time` becomes its atime."""
        file = self.file(path)
        file.atime = max(file.atime, time)
        return self.world.read(file.node, now)

    def write(self, path: bytes, size: int, now: float, *, time: int = 0) -> Call:
        """Write into a file, which waits for its restore; then it has this size and is dirty."""
        file = self.file(path)
        file.mtime = file.ctime = max(file.mtime, time)
        return self.world.write(file.node, size, now)

    def _target(self, above: Folder) -> int:
        """Choose the metadata target of a new folder."""
        if above.mount is None or above is not self.mount:
            return above.mdt
        self._turn = (self._turn + 1) % self.world.spec.mdts
        return self._turn

    def _unnamed(self, inode: Inode, now: float) -> None:
        if isinstance(inode, LustreFile):
            inode.nlink -= 1
            if not inode.nlink:
                self.world.unlink(inode.node, now)

    def _split(self, path: bytes) -> tuple[Folder, bytes]:
        above, _, name = path.rpartition(b"/")
        if not name:
            raise lookup.failure(errno.EINVAL, path)
        return _as_folder(self.find(above + b"/"), path), name


def _as_folder(inode: Inode, path: bytes) -> Folder:
    if not isinstance(inode, Folder):
        raise lookup.failure(errno.ENOTDIR, path)
    return inode
