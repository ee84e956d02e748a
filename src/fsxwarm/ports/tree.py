"""The tree of files: walking and stat, done where a dead mount can do no harm."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.outcome import Reason
from fsxwarm.model.shard import Shard

NOT_REGULAR: Final = errno.EOPNOTSUPP
"""The errno of a list entry that is neither a file nor a folder; no stat fails with it."""


def not_regular(path: bytes, *, is_link: bool) -> Trouble:
    """What a list entry that is neither a file nor a folder is told as: a symlink, or a pipe, socket or device."""
    if is_link:
        return Trouble(path, NOT_REGULAR, "a symlink, which is not followed: list what it leads to")
    return Trouble(path, NOT_REGULAR, "neither a file nor a folder: take it off the list")


class Place(NamedTuple):
    """Where a path given by a user really is.

    `path` is absolute with every symlink on the way resolved: naming a link is a wish to follow it; the walk below
    never does. `fstype` and `source` are the mount's, as in /proc/self/mounts; `mount` its mount point.
    """

    path: bytes
    is_dir: bool
    is_file: bool
    dev: int
    fstype: str
    mount: bytes
    source: str


class Stat(NamedTuple):
    """What polling needs of a stat: sizes in bytes, `blocks` in 512 bytes; the identity guards against a swap."""

    dev: int
    ino: int
    size: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Filters:
    """Which files a walk wants: globs matched by `fsxwarm.model.patterns`; empty `include` means all names.

    With a `shard` only its own files are stat'ed, counted and handed on. What cannot be read is told to every shard.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    shard: Shard | None = None


@dataclass(slots=True)
class Batch:
    """A part of a walk, in its order: files to look at, with runs of proven residents between them.

    `folder` is the folder that all of it lies in (for lists: empty). `skipped` counts what is no regular file
    (symlinks, sockets, other file systems' folders); `troubles` names what could not be read.

    What follows is no tree's business but filled in on the way: `barred` are files that S3 was found unable to give,
    `held` those whose objects have to be waited for. `last` marks the walk's end; held files come again behind it.
    """

    folder: bytes
    items: list[Entry | Resident] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    skipped: int = 0
    barred: dict[Key, Reason] = field(default_factory=dict)
    held: list[Entry] = field(default_factory=list)
    last: bool = False


class Tree(Protocol):
    """Walks and stats. No call follows a symlink below the given path or leaves its file system."""

    async def resolve(self, path: bytes) -> Place | Trouble:
        """Find out what a path that a user gave is; `Trouble` with ENOENT, EACCES, … or ETIMEDOUT if it hangs."""
        ...

    def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        """Walk a folder. Batches of one folder are contiguous; folders come in sorted depth-first order.

        With `whole` every regular file is an `Entry`; without it, proven residents with a single link are only
        counted (as `Resident` runs), so that a warm tree costs no memory. Patterns see the path relative to `root`.
        """
        ...

    def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        """Look up absolute paths one by one, keeping their order; each input sequence gives one `Batch`.

        Symlinks in parent folders are followed (the list's author named them), a symlink as the last part is not:
        as all that is neither a file nor a folder it is a `Trouble` with NOT_REGULAR, for somebody wanted it. A folder
        in the list is a `Trouble` with EISDIR; a missing one with ENOENT.
        """
        ...

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        """Stat each path without following a final symlink; answers are aligned with `paths`."""
        ...

    async def close(self) -> None:
        """End the helpers. Those stuck in the kernel are abandoned."""
        ...

    @property
    def abandoned(self) -> int:
        """How many helpers have been abandoned because a call in them never came back."""
        ...
