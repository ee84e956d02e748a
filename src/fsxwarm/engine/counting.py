"""Counting for somebody, as the daemon is asked to: what `fsxwarm status` does, with that somebody's rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fsxwarm.engine.addresses import Addresses
from fsxwarm.engine.selection import Selection, Unusable, chunked
from fsxwarm.engine.status import Status, Survey
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Filters, Tree

MOST_FOLDERS: Final = 50_000
"""Folders in one answer: somebody is to read them, or at least to hold them."""


@dataclass(frozen=True, slots=True)
class CountRequest:
    """What to count: under `paths` and in `files` (a list), by folders `depth` levels deep, and by `flags`."""

    paths: tuple[bytes, ...]
    files: tuple[bytes, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    flags: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """What was found; of a list also the entries that do not exist or are not on Lustre."""

    status: Status
    missing: Unusable
    outside: Unusable


async def count(request: CountRequest, tree: Tree, hsm: Hsm, addresses: Addresses) -> Counted:
    """Walk and count. Raises what resolving the selection raises, HUNG, and TOO_LARGE for too many folders."""
    selection = Selection(
        tree,
        request.paths,
        listed=chunked(request.files) if request.files else None,
        filters=Filters(request.include, request.exclude),
        whole=request.flags or (request.depth is not None and bool(request.files)),
        addresses=addresses,
    )
    status = await Survey(hsm, selection, depth=request.depth, flags=request.flags).run()
    if len(status.folders) > MOST_FOLDERS:
        raise FsxwarmError(
            Kind.TOO_LARGE, f"there are {len(status.folders):,} folders", hint="break it down less deep (--by-folder)"
        )
    return Counted(status, selection.missing, selection.outside)
