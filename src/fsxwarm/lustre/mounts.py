"""The mount table: which file system a path lies on."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fsxwarm.files import read_whole

OWN_TABLE: Final = "/proc/self/mounts"
_ESCAPED: Final = re.compile(rb"\\([0-3][0-7]{2})")


class Mount(NamedTuple):
    """One mount, as /proc/self/mounts has it. A Lustre server's own target has `fstype` "lustre target"."""

    source: str
    path: bytes
    fstype: str


def parse_mounts(table: bytes) -> list[Mount]:
    """Read a mount table, in the order of mounting.

    /proc/self/mounts calls server targets `lustre` too; their options name the service (`svname=`), a client's do not.
    """
    mounts = []
    for line in table.split(b"\n"):  # nothing else ends a line: the kernel leaves a \r in a path as it is
        fields = line.split(b" ")
        if len(fields) < 4:  # noqa: PLR2004 - source, path, type, options
            continue
        source, path, fstype, options = fields[:4]
        kind = fstype.decode("ascii", "replace")
        if kind == "lustre" and any(option.startswith(b"svname=") for option in options.split(b",")):
            kind = "lustre target"
        mounts.append(Mount(_unescape(source).decode("utf-8", "replace"), _unescape(path), kind))
    return mounts


def mount_of(mounts: list[Mount], path: bytes) -> Mount | None:
    """Find the mount that an absolute path without symlinks lies on: the longest prefix, mounted last."""
    best: Mount | None = None
    for mount in mounts:
        inside = path == mount.path or path.startswith(mount.path.rstrip(b"/") + b"/")
        if inside and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best


def read_mounts(table: str) -> list[Mount]:
    """Read this machine's mounts, and after them those that the file `table` adds; what cannot be read adds none."""
    return [mount for file in dict.fromkeys((OWN_TABLE, table)) for mount in _read(file)]


def _read(table: str) -> list[Mount]:
    try:
        return parse_mounts(read_whole(table))
    except OSError:
        return []


def _unescape(field: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field)
