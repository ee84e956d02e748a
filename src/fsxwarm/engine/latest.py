"""The newest complete checkpoint: of the folders that match a pattern, the last one that has its marker."""

from __future__ import annotations

import os
import re
from typing import Final

from fsxwarm.engine.selection import Selection
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Entry
from fsxwarm.model.patterns import compile_globs
from fsxwarm.ports.tree import Filters, Tree

_GLOB: Final = re.compile(r"[*?\[]")
_NUMBER: Final = re.compile(r"[0-9]+")


async def newest(tree: Tree, pattern: str, marker: str) -> bytes:
    """Find the newest folder that matches `pattern` (absolute) and has a file `marker` in it; both may be globs.

    Where the folders' names differ only in their numbers, the highest is the newest: objects that were copied to S3
    together tell no order by their times. Else it is the one whose marker was written last. Nothing is read, so nothing
    is restored. Raises FsxwarmError NO_SUCH_PATH when there is none, and whatever resolving the path raises.
    """
    parts = [part for part in pattern.split("/") if part]
    fixed = next((at for at, part in enumerate(parts) if _GLOB.search(part)), max(len(parts) - 1, 0))
    inside = [*parts[fixed:], *(part for part in marker.split("/") if part)]
    depth = len(parts) - fixed
    if not depth or len(inside) == depth or "**" in inside:
        raise FsxwarmError(
            Kind.USAGE,
            f"{pattern!r} with the marker {marker!r} names no checkpoints",
            hint="write --latest 'ckpt/step-*' --marker DONE",
        )
    _must_be_globs(inside)
    top = "/" + "/".join(parts[:fixed])
    wanted = Filters(("/" + "/".join(inside),), ("/*" * len(inside) + "/**",))
    selection = Selection(tree, [os.fsencode(top)], filters=wanted, whole=True)
    (place,) = await selection.resolve()
    found: dict[bytes, int] = {}
    async for batch in selection.batches():
        for item in batch.items:
            if isinstance(item, Entry):
                below = item.path[len(place.path.rstrip(b"/")) + 1 :].split(b"/")
                folder = b"/".join(below[:depth])
                found[folder] = max(item.mtime, found.get(folder, 0))
    if not found:
        raise FsxwarmError(
            Kind.NO_SUCH_PATH,
            f"no complete checkpoint: no folder that matches {pattern} has a file {marker}",
            hint="check the pattern, and that one has been finished",
        )
    return place.path.rstrip(b"/") + b"/" + _last(found)


def _last(found: dict[bytes, int]) -> bytes:
    """The newest of some folders, given when their markers were written."""
    if len({_NUMBER.sub("#", os.fsdecode(folder)) for folder in found}) == 1:
        return max(found, key=_numbers)
    return max(found, key=lambda folder: (found[folder], _numbers(folder), folder))


def _numbers(folder: bytes) -> list[int]:
    return [int(number) for number in _NUMBER.findall(os.fsdecode(folder))]


def _must_be_globs(parts: list[str]) -> None:
    for part in parts:
        try:
            compile_globs([part])
        except ValueError as error:
            raise FsxwarmError(Kind.USAGE, str(error), hint="") from None
