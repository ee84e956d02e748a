"""What a name in memory leads to: a file on FSx, a folder, or anything else."""

from __future__ import annotations

from typing import Final, NamedTuple

from fsxwarm.sim.lfs.kernel import Fid, Kind, Mounted
from fsxwarm.sim.nodes import Node

LOCAL_DEV: Final = 0x801
"""st_dev of what is not on FSx."""
LUSTRE_DEV: Final = 0x2C54F966
"""st_dev of FSx."""

_BLOCK: Final = 512
_OID_BITS: Final = 24
_FOLDERS: Final = 0x200000401
"""The FID sequence of all that is no regular file."""


class LustreFile:
    """A file on FSx: what the servers know of it is in `node`, here are its number of names and its times.

    Times in whole seconds since the epoch.
    """

    __slots__ = ("atime", "ctime", "mount", "mtime", "nlink", "node")
    kind = Kind.FILE
    target = b""

    def __init__(self, node: Node, mount: Mounted, time: int) -> None:
        self.node = node
        self.mount: Mounted | None = mount
        self.nlink = 1
        self.mtime = self.atime = self.ctime = time

    @property
    def dev(self) -> int:
        """Which file system it is on."""
        return LUSTRE_DEV

    @property
    def ino(self) -> int:
        """Its inode number, made of the FID as Lustre's client does (cl_fid_build_ino)."""
        fid = self.node.fid
        return (fid.seq << _OID_BITS) + fid.oid

    @property
    def fid(self) -> Fid:
        """Its identity on Lustre."""
        return self.node.fid

    @property
    def uid(self) -> int:
        """Its owner."""
        return self.node.uid

    @property
    def gid(self) -> int:
        """Its group."""
        return self.node.gid

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return self.node.mode

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.node.size

    @property
    def blocks(self) -> int:
        """What stat shows: 0 or 1 as long as it is released or its data is not flushed (measured on 2.15.8)."""
        node = self.node
        if not node.size:
            return 0
        if node.flags.released or node.unflushed:
            return 1
        return -(-node.size // _BLOCK)


class Owner(NamedTuple):
    """Whose a folder is, and its permission bits."""

    uid: int = 0
    gid: int = 0
    mode: int = 0o755


ROOTS: Final = Owner()


class Folder:
    """A folder. It knows its own name and the folder above; the topmost has none above.

    `mdt` is the metadata target that new files in it belong to, as on Lustre.
    """

    __slots__ = ("dev", "entries", "gid", "ino", "mdt", "mode", "mount", "name", "parent", "uid")
    kind = Kind.FOLDER
    target = b""

    def __init__(
        self,
        name: bytes,
        parent: Folder | None,
        dev: int,
        ino: int,
        mount: Mounted | None,
        owner: Owner = ROOTS,
        mdt: int = 0,
    ) -> None:
        self.mdt = mdt
        self.uid, self.gid, self.mode = owner
        self.name = name
        self.parent = parent
        self.dev = dev
        self.ino = ino
        self.mount = mount
        self.entries: dict[bytes, Inode] = {}

    @property
    def fid(self) -> Fid | None:
        """Its identity on Lustre, if it is there: of another sequence than files' here."""
        return None if self.mount is None else Fid(_FOLDERS, self.ino)

    @property
    def path(self) -> bytes:
        """Where it is, from the machine's root."""
        names: list[bytes] = []
        folder = self
        while folder.parent is not None:
            names.append(folder.name)
            folder = folder.parent
        return b"/" + b"/".join(reversed(names))


class Other:
    """A symbolic link, FIFO, socket, device, or a file that is not on FSx."""

    __slots__ = ("dev", "ino", "kind", "mount", "target")
    uid = gid = 0
    mode = 0o644

    def __init__(self, kind: Kind, dev: int, ino: int, mount: Mounted | None, target: bytes = b"") -> None:
        self.kind = kind
        self.dev = dev
        self.ino = ino
        self.mount = mount
        self.target = target

    @property
    def fid(self) -> Fid | None:
        """Its identity on Lustre, if it is there."""
        return None if self.mount is None else Fid(_FOLDERS, self.ino)


Inode = LustreFile | Folder | Other
