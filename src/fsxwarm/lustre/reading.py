"""Reading somebody's file with his rights: a list of files that a job names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.child import MAX_OUTPUT, Children, OverdueError
from fsxwarm.lustre.pool import Rights
from fsxwarm.model.job import Identity

_DEADLINE: Final = 20.0


async def read_as(identity: Identity, path: bytes, environ: Mapping[str, str]) -> bytes:
    """The content of a file that this user may read, in a process that has his rights: at most 16 MiB.

    FsxwarmError NO_SUCH_PATH, TOO_LARGE, HUNG.
    """
    name = os.fsdecode(path)
    rights = Rights.of(identity) if os.geteuid() == 0 else None
    children = Children("cat", {"PATH": environ.get("PATH", os.defpath)}, deadline=_DEADLINE, rights=rights)
    try:
        output = await children.run("--", [path])
    except OverdueError:
        raise FsxwarmError(Kind.HUNG, f"the list {name} cannot be read: no answer within {_DEADLINE:g} s") from None
    finally:
        await children.close()
    if output.exit < 0:
        raise FsxwarmError(Kind.TOO_LARGE, f"the list {name} has more than {MAX_OUTPUT:,} bytes")
    if output.exit:
        raise FsxwarmError(Kind.NO_SUCH_PATH, f"the list {name} cannot be read: {output.text.rpartition(': ')[2]}")
    return output.stdout
