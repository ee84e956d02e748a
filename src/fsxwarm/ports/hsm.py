"""Lustre's HSM: asking for state, asking for restores, releasing."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags


class Reply(NamedTuple):
    """The one answer to a request of up to 50 files: `errno` 0 for "queued" or "done", else the tool's exit status.

    EPERM does not say which file was refused, nor that nothing was queued: look at each before asking again.
    """

    errno: int
    text: str = ""


class Ost(NamedTuple):
    """One object storage target: bytes in total and bytes that a user may still write."""

    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Space:
    """Room on a file system, in bytes, as `lfs df` tells it."""

    total: int
    free: int
    osts: tuple[Ost, ...]

    @property
    def fullest(self) -> Ost | None:
        """The OST with the least free bytes; None when the servers named none."""
        return min(self.osts, key=lambda ost: ost.free, default=None)


class CallHungError(Exception):
    """A call did not come back within its deadline and was abandoned.

    `ended` gives the call's answer if it comes back after all; it may never do so.
    """

    def __init__(self, what: str, seconds: float, ended: Awaitable[Reply] | None = None) -> None:
        super().__init__(f"{what} did not answer within {seconds:g} s")
        self.what = what
        self.seconds = seconds
        self.ended = ended


class Hsm(Protocol):
    """The calls fsxwarm makes. Paths are absolute; answers of the per-file calls are aligned with them.

    Any call may raise `CallHungError`. A `Trouble` carries the errno of one file and leaves the others' answers alone.

    `keys`, aligned with the paths, say which files these must still mean: names may be swapped at any moment, also by
    somebody who wants us to touch what he may not. One that means another file is ESTALE, and a request with such a
    name is not sent at all. An adapter that can only pass names on (`lfs`) cannot keep to them.
    """

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """Read the flags of files (needs read permission on each: EACCES otherwise)."""
        ...

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """Read what the coordinator does with files, and nothing more: NOOP is no proof of success."""
        ...

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """Tell which files are released without read permission on them (`lfs find -L released`)."""
        ...

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Ask for at most 50 files of one file system. Blocks on a duplicate up to 2.15: look at `actions` first."""
        ...

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Cancel what was asked for, whoever asked (root only, EPERM otherwise)."""
        ...

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Give up to 50 files' OST space back, in order; stops at the first refusal. Never with a restore queued."""
        ...

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """Set or clear norelease on files (needs ownership or root)."""
        ...

    async def space(self, mount: bytes) -> Space | Trouble:
        """Measure free space in total and per OST."""
        ...

    async def version(self) -> tuple[int, ...] | Trouble:
        """The client's version, such as (2, 15, 8)."""
        ...

    @property
    def abandoned(self) -> int:
        """How many calls hang in the kernel right now, abandoned."""
        ...
