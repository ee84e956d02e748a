"""What `lfs` asks of the kernel's Lustre client: system calls and ioctls, for one caller in one working directory.

Every call that fails raises `OSError` with the kernel's errno.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from fsxwarm.model.hsm import Action, Verb


class Fid(NamedTuple):
    """A file's identity on Lustre."""

    seq: int
    oid: int
    ver: int = 0

    def __str__(self) -> str:
        return f"[{self.seq:#x}:{self.oid:#x}:{self.ver:#x}]"


class Kind(Enum):
    """What a directory entry is, as the letter that `find -type` takes."""

    FILE = "f"
    FOLDER = "d"
    LINK = "l"
    FIFO = "p"
    SOCKET = "s"
    CHAR = "c"
    BLOCK = "b"


class Node(NamedTuple):
    """What lstat says: the kind, the device number that tells file systems apart, and whether that one is Lustre."""

    kind: Kind
    dev: int
    lustre: bool


class State(NamedTuple):
    """HSM_STATE_GET: the flags' value and the archive that holds the copy (0: none)."""

    flags: int
    archive_id: int


class Target(NamedTuple):
    """One server target as `lfs df` tells it, in bytes; `used` + `free` need not make `total`."""

    name: str
    number: int
    is_mdt: bool
    total: int
    used: int
    free: int


class Mounted(NamedTuple):
    """A mount of a Lustre file system: its mount point, its file system's name, the client's instance of it."""

    path: bytes
    fsname: str
    instance: str


@dataclass(frozen=True, slots=True)
class Request:
    """LL_IOC_HSM_REQUEST: what to do with which files, by FID; `data_size` bytes of hints for the copy agent."""

    verb: Verb
    fids: Sequence[Fid]
    archive_id: int = 0
    data_size: int = 0


class Kernel(Protocol):
    """The calls. Paths are as given: relative ones start at the caller's working directory."""

    def lstat(self, path: bytes) -> Node:
        """Look up a name without following a final symlink."""
        ...

    def listdir(self, path: bytes) -> list[tuple[bytes, Kind]]:
        """Read a folder, following a final symlink, in the file system's order; ENOTDIR if it is none."""
        ...

    def released(self, path: bytes) -> bool | None:
        """Tell whether a file's layout has no objects, without opening it; None where there is no layout."""
        ...

    def hsm_state(self, path: bytes) -> State:
        """Open and HSM_STATE_GET: ENOTTY for what is no file on Lustre."""
        ...

    def hsm_action(self, path: bytes) -> Action:
        """Open and HSM_ACTION: ENOTTY for what is no file on Lustre."""
        ...

    def hsm_change(self, path: bytes, *, set_flags: int, clear_flags: int, archive_id: int) -> None:
        """Open and HSM_STATE_SET."""
        ...

    def path2fid(self, path: bytes) -> Fid:
        """Read the FID, following no final symlink: ENODATA for what is not on Lustre."""
        ...

    def mounted(self, path: bytes) -> Mounted:
        """Find the Lustre mount that a path lies on: ENOTTY for none."""
        ...

    def targets(self, mount: bytes) -> list[Target]:
        """Measure a mount's targets, MDTs first."""
        ...

    def create(self, path: bytes) -> None:
        """Create an empty file with a layout: EEXIST if there is one."""
        ...
