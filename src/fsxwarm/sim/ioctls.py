"""The system calls of Lustre's client that programs make without `lfs`, by the bytes that the kernel would see.

Written from what the real `lfs` sent and got (x86-64, Lustre 2.15.8), not from what fsxwarm sends.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

from fsxwarm.model.hsm import Action, Verb
from fsxwarm.sim import lookup
from fsxwarm.sim.lfs.kernel import Fid, Kernel, Request

_STATE_GET: Final = 0x802066D3
_STATE_SET: Final = 0x401866D4
_REQUEST: Final = 0x401866D9
_ACTION: Final = 0x801866DC

_SET, _CLEAR, _ARCHIVE = 1, 2, 4
"""What a STATE_SET changes."""
_EOF: Final = 2**64 - 1
_NUMBERS: Final = {
    Verb.NONE: 1,
    Verb.ARCHIVE: 10,
    Verb.RESTORE: 11,
    Verb.RELEASE: 12,
    Verb.REMOVE: 13,
    Verb.CANCEL: 14,
}
_VERBS: Final = {number: verb for verb, number in _NUMBERS.items() if verb is not Verb.NONE}
_HEADER: Final = 24
_ITEM: Final = 32
_LAYOUT: Final = struct.Struct("<IIQQIHHQQII")
_MAGIC: Final = 0x0BD10BD0
_RAID0, _RELEASED = 0x1, 0x80000000


def kind_of(name: bytes, number: int, argument: bytes) -> str:
    """Return the kind of call, as faults are asked for by it."""
    if name != b"ioctl":
        return {b"layout": "find", b"fid": "path2fid"}.get(name, "")
    if number == _REQUEST and len(argument) >= _HEADER:
        verb = _VERBS.get(struct.unpack_from("=I", argument)[0])
        return verb.value.lower() if verb else ""
    return {_STATE_GET: "state", _ACTION: "action", _STATE_SET: "set"}.get(number, "")


def call(kernel: Kernel, name: bytes, path: bytes, number: int, argument: bytes) -> bytes | Request:
    """Carry out a call on what `path` stands for: `fid`, `layout`, or `ioctl` with its number and buffer.

    Returns the buffer as the kernel leaves it, or the request that goes to the servers. Raises OSError.
    """
    match name:
        case b"fid":
            return struct.pack("=QII", *kernel.path2fid(path))
        case b"layout":
            return _layout(kernel, path)
        case b"ioctl":
            return _ioctl(kernel, path, number, argument)
        case _:
            raise lookup.failure(errno.ENOSYS, path)


def _ioctl(kernel: Kernel, path: bytes, number: int, argument: bytes) -> bytes | Request:
    if number == _STATE_GET:
        return struct.pack("=II24x", *kernel.hsm_state(path))
    if number == _ACTION:
        return _progress(kernel.hsm_action(path))
    if number == _STATE_SET:
        valid, archive, set_flags, clear_flags = struct.unpack("=IIQQ", argument)
        kernel.hsm_change(
            path,
            set_flags=set_flags if valid & _SET else 0,
            clear_flags=clear_flags if valid & _CLEAR else 0,
            archive_id=archive if valid & _ARCHIVE else 0,
        )
        return argument
    if number == _REQUEST:
        kernel.mounted(path)
        return _request(path, argument)
    raise lookup.failure(errno.ENOTTY, path)


def _progress(action: Action) -> bytes:
    """hsm_current_action: stage, action, then the extent asked for, or in its length the bytes moved."""
    number = _NUMBERS[action.verb]
    if action.verb is Verb.NONE:
        return struct.pack("=IIQQ", 1, number, 0, 0)
    if action.running:
        return struct.pack("=IIQQ", 2, number, 0, action.moved)
    return struct.pack("=IIQQ", 1, number, 0, _EOF)


def _request(path: bytes, argument: bytes) -> Request:
    action, archive_id, _flags, count, data = struct.unpack_from("=IIQII", argument)
    if action not in _VERBS or len(argument) != _HEADER + count * _ITEM + data:
        raise lookup.failure(errno.EINVAL, path)
    items = [struct.unpack_from("=QIIQQ", argument, _HEADER + place * _ITEM) for place in range(count)]
    return Request(_VERBS[action], tuple(Fid(*item[:3]) for item in items), archive_id, data)


def _layout(kernel: Kernel, path: bytes) -> bytes:
    """The xattr lustre.lov: lov_user_md_v1, one stripe (of a released file: none)."""
    released = kernel.released(path)
    if released is None:
        raise lookup.failure(errno.EOPNOTSUPP, path)
    fid = kernel.path2fid(path)
    pattern = _RAID0 | (_RELEASED if released else 0)
    header = _LAYOUT.pack(_MAGIC, pattern, fid.oid, fid.seq, 1 << 20, 0 if released else 1, 0, fid.oid, 0, 0, 0)
    return header[:32] if released else header
