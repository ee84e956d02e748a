"""S3 addresses where a path is expected: each becomes the path at which it shows."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.s3 import Uri, is_uri, parse_uri


class Addresses(Protocol):
    """Knows where S3 shows on this machine."""

    async def paths(self, uri: Uri) -> list[bytes]:
        """The paths that an address means. FsxwarmError NO_SUCH_PATH for one that is linked nowhere, USAGE for one
        that shows at several places, CLOUD when AWS does not tell.
        """
        ...


def is_address(path: bytes) -> bool:
    """Tell an S3 address from a path."""
    return is_uri(os.fsdecode(path[:5]))


async def mapped(paths: Sequence[bytes], addresses: Addresses) -> list[bytes]:
    """Put paths in the place of S3 addresses. FsxwarmError as `Addresses.paths`, or USAGE for what is none."""
    found: list[bytes] = []
    for path in paths:
        found += await addresses.paths(_read(path)) if is_address(path) else [path]
    return found


async def mapped_one(path: bytes, addresses: Addresses) -> list[bytes] | None:
    """The same for one path; None for an address that is linked nowhere."""
    try:
        return await mapped([path], addresses)
    except FsxwarmError as error:
        if error.kind is not Kind.NO_SUCH_PATH:
            raise
        return None


async def mapped_list(
    listed: AsyncIterator[Sequence[bytes]], addresses: Addresses, unlinked: Callable[[bytes], None]
) -> AsyncIterator[Sequence[bytes]]:
    """The same for a list's chunks; `unlinked` is told of entries that are linked nowhere, which are left out."""
    async for chunk in listed:
        found: list[bytes] = []
        for entry in chunk:
            paths = await mapped_one(entry, addresses)
            if paths is None:
                unlinked(entry)
            else:
                found += paths
        yield found


def _read(path: bytes) -> Uri:
    try:
        return parse_uri(path.decode())
    except ValueError as error:  # UnicodeDecodeError is one
        raise FsxwarmError(Kind.USAGE, str(error), hint="") from None
