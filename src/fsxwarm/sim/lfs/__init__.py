"""The `lfs` command over a simulated Lustre client: the same bytes and exit statuses as the real one.

Simulated: hsm_state, hsm_action, hsm_set, hsm_clear, hsm_archive, hsm_restore, hsm_release, hsm_remove, hsm_cancel,
find (-name, -type, -L, -maxdepth, -print0, `!`), df PATH, path2fid, getname, getstripe -L, setstripe FILE, --version.
Not simulated: other sub-commands and options, the usage texts behind their first line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

from fsxwarm.sim.lfs import find, hsm, info, request
from fsxwarm.sim.lfs.kernel import Kernel
from fsxwarm.sim.lfs.outcome import USAGE_EXIT, Outcome, UsageError
from fsxwarm.sim.lfs.request import ReadList, Send
from fsxwarm.sim.lfs.usage import usage

__all__ = ["Outcome", "Send", "filelist", "start"]

_PLAIN: Final[dict[str, Callable[[Sequence[bytes], Kernel], Outcome]]] = {
    "hsm_action": hsm.action,
    "hsm_set": functools.partial(hsm.change, on=True),
    "hsm_clear": functools.partial(hsm.change, on=False),
    "find": find.find,
    "df": info.df,
    "path2fid": info.path2fid,
    "getname": info.getname,
    "getstripe": info.getstripe,
    "setstripe": info.setstripe,
}


def start(argv: Sequence[bytes], kernel: Kernel, read_list: ReadList, version: tuple[int, ...]) -> Outcome | Send:
    """Run `lfs` with `argv` (its own name first) up to its end, or up to the request that it sends.

    `read_list` reads the file that --filelist names, `version` is the client's, such as (2, 15, 8).
    """
    if len(argv) == 1:
        return Outcome(b"", b"", 0)
    command = argv[1].decode("utf-8", "replace")
    if command == "--version":
        return Outcome(f"lfs {'.'.join(map(str, version))}\n".encode(), b"", 0)
    try:
        return _sub_command(command, argv[1:], kernel, read_list, version)
    except UsageError as error:
        return Outcome(b"", usage(command, error.message), USAGE_EXIT)


def _sub_command(
    command: str, argv: Sequence[bytes], kernel: Kernel, read_list: ReadList, version: tuple[int, ...]
) -> Outcome | Send:
    if command == "hsm_state":
        return hsm.state(argv, kernel, version)
    if command in request.VERBS:
        return request.request(argv, kernel, read_list)
    if command in _PLAIN:
        return _PLAIN[command](argv, kernel)
    return Outcome(b"", b"lfs: '%b' is not a command, or is not simulated\n" % argv[0], USAGE_EXIT)


def filelist(argv: Sequence[bytes]) -> bytes | None:
    """Return the file list that a call is going to read, if any: whoever runs the call reads it with its own rights."""
    if len(argv) > 1 and argv[1].decode("utf-8", "replace") in request.VERBS:
        return request.filelist(argv[1:])
    return None
