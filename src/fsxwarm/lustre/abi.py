"""The bytes of Lustre's HSM ioctls, the same since 2.10 (lustre/include/uapi/linux/lustre/lustre_user.h).

Pure, and of nothing but `struct`: helper processes, which start bare, import it too. Numbers stay numbers here; what
they mean is `fsxwarm.model.hsm`'s. The ioctl numbers are those of x86-64 and arm64, where FSx has clients.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # as typing's, which is not worth its import
if TYPE_CHECKING:
    from collections.abc import Sequence

    Progress = tuple[int, bool, int]
    """What HSM_ACTION tells: the action's number (1: none), whether it runs, bytes moved (0 while it waits)."""

MACHINES = frozenset({"x86_64", "aarch64"})
"""The machines (as uname calls them) whose ioctl numbers these are."""

STATE_GET = 0x802066D3
"""LL_IOC_HSM_STATE_GET, on an open file."""
STATE_SET = 0x401866D4
"""LL_IOC_HSM_STATE_SET, on an open file."""
REQUEST = 0x401866D9
"""LL_IOC_HSM_REQUEST, on any open folder of the mount."""
ACTION = 0x801866DC
"""LL_IOC_HSM_ACTION, on an open file."""

RESTORE = 11
RELEASE = 12
CANCEL = 14
"""What a request asks for (`enum hsm_user_action`); the numbers of its actions are those of `Progress` too."""

MOST_ITEMS = 50
"""Files that we put into one request: two fewer than the server takes (measured on 2.15.8)."""

_LUSTRE_HANDLE = 0x97  # FILEID_LUSTRE
_MOST_HANDLE = 128  # MAX_HANDLE_SZ
_HANDLE = struct.Struct("=Ii")
_FID_BYTES = 16

EMPTY_HANDLE = _HANDLE.pack(_MOST_HANDLE, 0) + bytes(_MOST_HANDLE)
"""What name_to_handle_at is given to fill in."""

_STATE = struct.Struct("=II24x")
_STATE_SET = struct.Struct("=IIQQ")
_ACTION = struct.Struct("=IIQQ")
_REQUEST = struct.Struct("=IIQII")
_EXTENT = struct.Struct("=QQ")
_WHOLE = _EXTENT.pack(0, 2**64 - 1)
_SET_AND_CLEAR = 3  # HSS_SETMASK | HSS_CLEARMASK
_RUNNING = 2  # HPS_RUNNING

EMPTY_STATE = bytes(_STATE.size)
EMPTY_ACTION = bytes(_ACTION.size)
"""What STATE_GET and ACTION are given to fill in."""


def flags_of(answer: bytes) -> int:
    """Read the flags in STATE_GET's answer."""
    flags: int = _STATE.unpack(answer)[0]
    return flags


def progress_of(answer: bytes) -> Progress:
    """Read ACTION's answer. Its last number is the end of what is asked for until the action runs."""
    stage, action, _offset, length = _ACTION.unpack(answer)
    running = stage == _RUNNING
    return action, running, length if running else 0


def fid_of(handle: bytes) -> bytes | None:
    """Return the FID that a Lustre file's handle begins with; None for a handle of another file system."""
    size, kind = _HANDLE.unpack_from(handle)
    if kind != _LUSTRE_HANDLE or size < _FID_BYTES:
        return None
    return handle[_HANDLE.size : _HANDLE.size + _FID_BYTES]


def change(set_flags: int, clear_flags: int) -> bytes:
    """Build STATE_SET's argument; the archive's number stays."""
    return _STATE_SET.pack(_SET_AND_CLEAR, 0, set_flags, clear_flags)


def request(action: int, fids: Sequence[bytes]) -> bytes:
    """Build REQUEST's argument for whole files, by their FIDs as `name_to_handle_at` gives them.

    ValueError for more than MOST_ITEMS.
    """
    if len(fids) > MOST_ITEMS:
        raise ValueError(f"{len(fids)} files in one request; at most {MOST_ITEMS} are taken")
    return _REQUEST.pack(action, 0, 0, len(fids), 0) + b"".join([fid + _WHOLE for fid in fids])


# ---- layouts (lustre.lov, little-endian as on disk) ----------------------------------------------------------------

_LAYOUT = struct.Struct("<II")
_COMPOSITE = 0x0BD60BD0  # LOV_MAGIC_COMP_V1
_PLAIN = frozenset({0x0BD10BD0, 0x0BD30BD0})  # LOV_MAGIC_V1, LOV_MAGIC_V3
_RELEASED = 0x80000000  # LOV_PATTERN_F_RELEASED
_COUNT = struct.Struct("<14xH")  # lov_comp_md_v1.lcm_entry_count
_ENTRIES_AT = 32
_ENTRY = struct.Struct("<24xII16x")  # lov_comp_md_entry_v1: lcme_offset, lcme_size


def released(layout: bytes) -> bool:
    """Tell whether a file with this layout (the xattr `lustre.lov`) is released. ValueError for one not understood.

    Of a composite layout every component is released with the file (mdt_hsm_release): the first one tells.
    """
    try:
        magic, pattern = _LAYOUT.unpack_from(layout)
        if magic == _COMPOSITE and _COUNT.unpack_from(layout)[0]:
            offset, _ = _ENTRY.unpack_from(layout, _ENTRIES_AT)
            magic, pattern = _LAYOUT.unpack_from(layout, offset)
    except struct.error:
        raise ValueError("a layout cut short") from None
    if magic not in _PLAIN:
        raise ValueError(f"an unknown layout ({magic:#010x})")
    return bool(pattern & _RELEASED)
