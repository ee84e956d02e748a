"""What kind of file system a mount is, in words that tell a user why it has no released files."""

from __future__ import annotations

from typing import Final

_KNOWN: Final = {
    "autofs": "an automounter's folder (nothing is mounted there yet)",
    "beegfs": "BeeGFS",
    "cifs": "a Windows share (SMB)",
    "fuse.goofys": "S3 through goofys",
    "fuse.rclone": "rclone",
    "fuse.s3fs": "S3 through s3fs",
    "fuse.sshfs": "SSHFS",
    "gpfs": "IBM Storage Scale (GPFS)",
    "lustre target": "a Lustre server's own target",
    "overlay": "a container's overlay file system",
    "smb3": "a Windows share (SMB)",
    "tmpfs": "tmpfs (memory)",
    "wekafs": "WEKA",
}


def is_lustre_client(fstype: str, source: str) -> bool:
    """Tell a Lustre client's mount. Server targets are of type `lustre` too, but their source is a device."""
    return fstype == "lustre" and not source.startswith("/dev/")


def describe(fstype: str, source: str) -> str:
    """Name the file system that a mount's type and source (as in /proc/self/mounts) speak of."""
    if fstype == "lustre":
        return "a Lustre server's own target" if source.startswith("/dev/") else "Lustre"
    if fstype.startswith("nfs"):
        if ".fsx." in source:
            return "FSx for OpenZFS or ONTAP (NFS)"
        if ".efs." in source or source.startswith("127.0.0.1:"):
            return "Amazon EFS (NFS)"
        return "NFS"
    if fstype.startswith("fuse") and source.startswith("mountpoint-s3"):
        return "Mountpoint for Amazon S3"
    return _KNOWN.get(fstype, fstype or "a file system that the mount table does not name")
