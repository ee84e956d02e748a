"""First lines of the sub-commands' usage texts, as `lfs` 2.15 prints them; the rest is not simulated."""

from __future__ import annotations

from typing import Final

SUMMARIES: Final[dict[str, bytes]] = {
    "hsm_state": b"Display the HSM information (states, undergoing actions) for given files.",
    "hsm_action": b"Display current HSM request for given files.",
    "hsm_set": b"Set HSM user flag on specified files.",
    "hsm_clear": b"Clear HSM user flag on specified files.",
    "hsm_archive": b"Archive file to external storage.",
    "hsm_restore": b"Restore file from external storage.",
    "hsm_release": b"Release files from Lustre.",
    "hsm_remove": b"Remove file copy from external storage.",
    "hsm_cancel": b"Cancel requests related to specified files.",
    "find": b"find files matching given attributes recursively in directory tree.",
    "df": b"report filesystem disk space usage or inodes usage of each MDS and all OSDs or a batch belonging to a "
    b"specific pool .",
    "path2fid": b"Display the fid(s) for a given path(s).",
    "getname": b"list instances and specified mount points [for specified path only]",
    "getstripe": b"To list the layout pattern for a given file or files in a",
    "setstripe": b"To create a file with specified striping/composite layout, or",
}


def usage(command: str, message: bytes = b"") -> bytes:
    """Return what a usage error prints on stderr: the message, the first line of the usage, a pointer to the help."""
    lines = [
        SUMMARIES[command],
        b"usage: lfs " + command.encode() + b" ... (simulated: see `man lfs-hsm` or `man lfs`)",
    ]
    return b"\n".join([message, *lines] if message else lines) + b"\n"
