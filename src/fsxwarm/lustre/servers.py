"""Which version of Lustre a file system's metadata servers run, as the kernel's connections to them know it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fsxwarm.errors import FsxwarmError
from fsxwarm.lustre.child import Children, OverdueError
from fsxwarm.lustre.replies import Output
from fsxwarm.model.entry import Trouble

OWN_FOLDERS: Final = ("/proc/fs/lustre/mdc", "/sys/kernel/debug/lustre/mdc")
"""Where the connections are: up to 2.15 for all to read, on later clients for root alone (lustre/mdc/lproc_mdc.c)."""

_CONNECTED: Final = "FULL"
_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})")


class Connection(NamedTuple):
    """A connection to a metadata target, by the device's name; empty and () where it does not tell."""

    name: str
    state: str = ""
    version: tuple[int, ...] = ()


async def server_version(
    fsname: str,
    folder: str,
    environ: Mapping[str, str],
    *,
    own: Iterable[str] = OWN_FOLDERS,
    deadline: float = 5.0,
) -> tuple[int, ...] | Trouble:
    """Find the oldest version among all metadata targets of a file system, such as (2, 15, 8).

    Read are the machine's `own` folders of connections, and `folder` after them. A `Trouble` tells why it is unknown:
    one connection that cannot be read, is not up or makes no sense is enough. A process of its own reads them, for the
    kernel may hold a reader up; it has `deadline` seconds.
    """
    files, trouble = _files(dict.fromkeys((*own, folder)), fsname)
    if not files:
        return trouble or Trouble(b"", errno.ENOENT, "there are no connections to its metadata servers")
    try:
        output = await _read(files, environ, deadline)
    except OverdueError as error:
        return Trouble(b"", errno.ETIMEDOUT, str(error))
    except FsxwarmError as error:
        return Trouble(b"", errno.EIO, error.message)
    if output.exit:
        return Trouble(b"", errno.EACCES, f"connections cannot be read: {output.text.rpartition(': ')[2]}")
    return _oldest(parse_connections(output.stdout.decode("ascii", "replace")), [file.parent.name for file in files])


def parse_connections(text: str) -> list[Connection]:
    """Read `import` files, one behind the other (lprocfs_import_seq_show in lustre/obdclass/lprocfs_status.c)."""
    found = []
    for block in f"\n{text}".split("\nimport:\n")[1:]:
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            key, _, value = line.strip().partition(": ")
            fields.setdefault(key, value)
        version = _VERSION.fullmatch(fields.get("target_version", ""))
        numbers = () if version is None else tuple(int(part) for part in version.groups()[:3])
        found.append(Connection(fields.get("name", ""), fields.get("state", ""), numbers))
    return found


def _oldest(found: Sequence[Connection], names: Sequence[str]) -> tuple[int, ...] | Trouble:
    """The oldest version of connections that must have these names."""
    for connection in found:
        if connection.state != _CONNECTED:
            return Trouble(b"", errno.ENOTCONN, f"{connection.name} is not connected")
        if not connection.version:
            return Trouble(b"", errno.EBADMSG, f"{connection.name} tells no version")
    if [connection.name for connection in found] != list(names):
        return Trouble(b"", errno.EBADMSG, f"what the kernel tells of {', '.join(names)} makes no sense")
    return min(connection.version for connection in found)


def _files(folders: Iterable[str], fsname: str) -> tuple[list[Path], Trouble | None]:
    """The connections' files of one file system, such as fsx-MDT0000-mdc-ffff888131bcc000/import; why not, if so."""
    device = re.compile(re.escape(fsname) + "-MDT[0-9a-f]{4}-mdc-[0-9a-f]+")
    files: list[Path] = []
    trouble = None
    for folder in folders:
        try:
            devices = sorted(Path(folder).iterdir())  # the kernel's own: no server is asked for it
        except FileNotFoundError:
            continue
        except OSError as error:  # the others may do: all connections of a kernel are in one place
            trouble = Trouble(os.fsencode(folder), error.errno or errno.EIO, f"{folder}: {error.strerror}")
            continue
        files += [found / "import" for found in devices if device.fullmatch(found.name)]
    return files, trouble


async def _read(files: Sequence[Path], environ: Mapping[str, str], deadline: float) -> Output:
    children = Children("cat", {"PATH": environ.get("PATH", os.defpath)}, deadline=deadline)
    try:
        return await children.run("--", [os.fsencode(file) for file in files])
    finally:
        await children.close()
