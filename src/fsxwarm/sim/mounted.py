"""The kernel of a client machine with Lustre mounted: what the simulated `lfs` calls, for one caller and one folder."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from fsxwarm.model.hsm import Action, Flags
from fsxwarm.sim import lookup
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.lfs.kernel import Fid, Kind, Mounted, Node, State, Target

USER_FLAGS: Final = Flags.NORELEASE | Flags.NOARCHIVE | Flags.DIRTY
"""The flags that a user may change on a file that he may write; the others are root's (`HSM_USER_MASK`)."""


class Inode(lookup.Node, Protocol):
    """A node of a machine's tree of names; `fid` is None for what is not on Lustre."""

    @property
    def dev(self) -> int:
        """What tells its file system from others: two mounts of one file system share it."""
        ...

    @property
    def fid(self) -> Fid | None:
        """Its identity on Lustre."""
        ...

    @property
    def mount(self) -> Mounted | None:
        """The Lustre mount that it was reached by."""
        ...


N = TypeVar("N", bound=Inode)


class Machine(lookup.Names[N], Protocol[N]):
    """The names that a machine sees: its own root, with Lustre mounted somewhere below."""

    def listdir(self, folder: N) -> list[tuple[bytes, Kind]]:
        """Read a folder in the file system's order."""
        ...

    def create(self, folder: N, name: bytes, caller: Caller) -> None:
        """Make an empty file."""
        ...


class Servers(Protocol):
    """What the metadata servers answer at once. Files that are gone raise FileNotFoundError."""

    def state(self, fid: Fid) -> State:
        """HSM_STATE_GET."""
        ...

    def released(self, fid: Fid) -> bool:
        """The layout, by a getattr that opens nothing."""
        ...

    def action(self, fid: Fid) -> Action:
        """HSM_ACTION."""
        ...

    def change(self, fid: Fid, *, set_flags: int, clear_flags: int, archive_id: int) -> None:
        """HSM_STATE_SET: EINVAL for flags that do not go together."""
        ...

    def targets(self) -> list[Target]:
        """Statfs of all MDTs, then all OSTs."""
        ...


@dataclass(frozen=True, slots=True)
class LustreClient(Generic[N]):
    """The `Kernel` of fsxwarm.sim.lfs: look-up and permissions here, HSM at the servers.

    `broken` is an errno with which every ioctl fails, 0 for none.
    """

    names: Machine[N]
    servers: Servers
    caller: Caller
    cwd: bytes
    broken: int = 0

    def lstat(self, path: bytes) -> Node:
        """See `Kernel`."""
        node = self._find(path, follow=False)
        return Node(node.kind, node.dev, lustre=node.fid is not None)

    def listdir(self, path: bytes) -> list[tuple[bytes, Kind]]:
        """See `Kernel`."""
        folder = self._find(path)
        if folder.kind is not Kind.FOLDER:
            raise lookup.failure(errno.ENOTDIR, path)
        if not lookup.may(self.caller, folder, lookup.READ):
            raise lookup.failure(errno.EACCES, path)
        return self.names.listdir(folder)

    def released(self, path: bytes) -> bool | None:
        """See `Kernel`."""
        node = self._find(path, follow=False)
        if node.fid is None or node.kind is not Kind.FILE:
            return None
        return self.servers.released(node.fid)

    def hsm_state(self, path: bytes) -> State:
        """See `Kernel`."""
        return self.servers.state(self._open(path))

    def hsm_action(self, path: bytes) -> Action:
        """See `Kernel`."""
        return self.servers.action(self._open(path))

    def hsm_change(self, path: bytes, *, set_flags: int, clear_flags: int, archive_id: int) -> None:
        """See `Kernel`: needs write permission; users may change `USER_FLAGS` alone."""
        fid = self._open(path)
        if not lookup.may(self.caller, self._find(path), lookup.WRITE):
            raise lookup.failure(errno.EACCES, path)
        if self.caller.uid and ((set_flags | clear_flags) & ~USER_FLAGS or archive_id):
            raise lookup.failure(errno.EPERM, path)
        self.servers.change(fid, set_flags=set_flags, clear_flags=clear_flags, archive_id=archive_id)

    def path2fid(self, path: bytes) -> Fid:
        """See `Kernel`."""
        fid = self._find(path, follow=False).fid
        if fid is None:
            raise lookup.failure(errno.ENODATA, path)
        return fid

    def mounted(self, path: bytes) -> Mounted:
        """See `Kernel`."""
        mount = self._find(path).mount
        if mount is None:
            raise lookup.failure(errno.ENOTTY, path)
        return mount

    def targets(self, mount: bytes) -> list[Target]:
        """See `Kernel`."""
        self.mounted(mount)
        return self.servers.targets()

    def create(self, path: bytes) -> None:
        """See `Kernel`."""
        folder_path, _, name = path.rpartition(b"/")
        folder = self._find(folder_path + b"/" if b"/" in path else b".")
        if folder.fid is None:
            raise lookup.failure(errno.ENOTTY, path)
        if not lookup.may(self.caller, folder, lookup.WRITE | lookup.SEARCH):
            raise lookup.failure(errno.EACCES, path)
        self.names.create(folder, name, self.caller)

    def _find(self, path: bytes, *, follow: bool = True) -> N:
        start = self.names.root
        if not path.startswith(b"/"):  # the caller is in its folder, whether it may go there now or not
            start = lookup.resolve(self.names, start, self.cwd, ROOT)
        return lookup.resolve(self.names, start, path, self.caller, follow=follow)

    def _open(self, path: bytes) -> Fid:
        """open(O_RDONLY | O_NONBLOCK), then an ioctl that only a file on Lustre knows."""
        node = self._find(path)
        if not lookup.may(self.caller, node, lookup.READ):
            raise lookup.failure(errno.EACCES, path)
        if node.kind is Kind.SOCKET:
            raise lookup.failure(errno.ENXIO, path)
        if node.kind is not Kind.FILE or node.fid is None:
            raise lookup.failure(errno.ENOTTY, path)
        if self.broken:
            raise lookup.failure(self.broken, path)
        return node.fid
