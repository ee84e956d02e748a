"""The machine on which the calls were recorded, in memory: two Lustre file systems, one of them mounted twice."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.sim.calls import Caller
from fsxwarm.sim.lfs.kernel import Fid, Kind, Mounted
from fsxwarm.sim.lfs.request import parse_fid
from golden.conditions import File, Folder, HardLink, Link, Special, Thing

LOCAL_DEV, LUSTRE_DEV, TWO_DEV = 1, 2, 3
LOCAL: Final[Mapping[bytes, Kind]] = {
    b"/etc/hostname": Kind.FILE,
    b"/dev/null": Kind.CHAR,
    b"/proc/self/status": Kind.FILE,
    b"/proc/self/fd/0": Kind.FILE,
    b"/run/dbus/system_bus_socket": Kind.SOCKET,
    b"/run/lhsmtool.pid": Kind.FILE,
    b"/tmp/unrelated": Kind.FILE,
}


@dataclass(eq=False, slots=True)
class Inode:
    kind: Kind
    dev: int
    fid: Fid | None = None
    uid: int = 0
    gid: int = 0
    mode: int = 0o755
    target: bytes = b""
    thing: Thing | None = None
    entries: dict[bytes, Inode] = field(default_factory=dict)
    parent: Inode | None = None
    mount: Mounted | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """An inode and the Lustre mount by which a path came to it."""

    inode: Inode
    mount: Mounted | None

    kind = property(lambda self: self.inode.kind)
    dev = property(lambda self: self.inode.dev)
    fid = property(lambda self: self.inode.fid)
    uid = property(lambda self: self.inode.uid)
    gid = property(lambda self: self.inode.gid)
    mode = property(lambda self: self.inode.mode)


class MemoryMachine:
    """Implements `fsxwarm.sim.mounted.Machine`."""

    def __init__(self, things: Mapping[bytes, Thing]) -> None:
        self._oids = itertools.count(0x1000)
        self._top = Inode(Kind.FOLDER, LOCAL_DEV)
        self.files: list[Inode] = []
        for path, kind in LOCAL.items():
            self._put(path, Inode(kind, LOCAL_DEV, mode=0o644))
        self._mount(b"/mnt/lustre", "lustre", self._lustre_root(LUSTRE_DEV))
        self._mount(b"/mnt/two", "two", self._lustre_root(TWO_DEV))
        for path, thing in things.items():
            self._add(path, thing)
        lustre = self._at(b"/mnt/lustre")
        self._aliases = {b"lustre-b": Reached(lustre, Mounted(b"/mnt/lustre-b", "lustre", "ffff888131bcd000"))}

    @property
    def root(self) -> Reached:
        return Reached(self._top, None)

    def enter(self, folder: Reached, name: bytes) -> Reached:
        if name == b"..":
            return Reached(folder.inode.parent or folder.inode, folder.mount)
        if folder.inode is self._at(b"/mnt") and name in self._aliases:
            return self._aliases[name]
        if name not in folder.inode.entries:
            raise FileNotFoundError(2, "No such file or directory", name)
        inode = folder.inode.entries[name]
        return Reached(inode, inode.mount or folder.mount)

    def readlink(self, link: Reached) -> bytes:
        return link.inode.target

    def listdir(self, folder: Reached) -> list[tuple[bytes, Kind]]:
        return [(name, inode.kind) for name, inode in folder.inode.entries.items()]

    def create(self, folder: Reached, name: bytes, caller: Caller) -> None:
        folder.inode.entries[name] = self._file(File(owner=caller.uid), folder.inode)

    def find(self, fid: Fid) -> Inode | None:
        return next((inode for inode in self.files if inode.fid == fid), None)

    def _add(self, path: bytes, thing: Thing) -> None:
        folder = self._folder(path.rpartition(b"/")[0])
        name = path.rpartition(b"/")[2]
        if isinstance(thing, HardLink):
            folder.entries[name] = folder.entries[thing.of]
            return
        if isinstance(thing, Folder) and name in folder.entries:
            return
        folder.entries[name] = self._make(thing, folder)

    def _make(self, thing: Thing, folder: Inode) -> Inode:
        if isinstance(thing, File):
            return self._file(thing, folder)
        inode = Inode(Kind.FOLDER, folder.dev, self._new_fid(), parent=folder)
        if isinstance(thing, Folder):
            inode.uid, inode.gid, inode.mode = thing.owner, thing.owner, thing.mode
            inode.fid = parse_fid(thing.fid.encode()) or inode.fid
        elif isinstance(thing, Link):
            inode.kind, inode.target = Kind.LINK, thing.target
        elif isinstance(thing, Special):
            inode.kind, inode.mode = Kind(thing.letter), 0o644
        return inode

    def _file(self, thing: File, folder: Inode) -> Inode:
        fid = parse_fid(thing.fid.encode()) or self._new_fid()
        inode = Inode(Kind.FILE, folder.dev, fid, thing.owner, thing.owner, thing.mode, thing=thing, parent=folder)
        self.files.append(inode)
        return inode

    def _new_fid(self) -> Fid:
        return Fid(0x200000402, next(self._oids))

    def _lustre_root(self, dev: int) -> Inode:
        return Inode(Kind.FOLDER, dev, self._new_fid())

    def _mount(self, path: bytes, fsname: str, inode: Inode) -> None:
        inode.mount = Mounted(path, fsname, "ffff888131bcc000")
        self._put(path, inode)

    def _put(self, path: bytes, inode: Inode) -> None:
        folder = self._folder(path.rpartition(b"/")[0])
        inode.parent = folder
        folder.entries[path.rpartition(b"/")[2]] = inode

    def _folder(self, path: bytes) -> Inode:
        """Return a folder, making it and those above it if they are not there."""
        inode = self._top
        for part in filter(None, path.split(b"/")):
            if part not in inode.entries:
                fid = None if inode.fid is None else self._new_fid()
                inode.entries[part] = Inode(Kind.FOLDER, inode.dev, fid, parent=inode)
            inode = inode.entries[part]
        return inode

    def _at(self, path: bytes) -> Inode:
        return self._folder(path)
