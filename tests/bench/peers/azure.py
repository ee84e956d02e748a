"""A published way for Azure Managed Lustre: batches of thousands, each begun when the one before has its last file.

It waits for that one file only: restores are not done in order, so others of the batch may still be queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from bench.peers.meter import Site, in_parallel
from fsxwarm.model.hsm import Flags

_POLL = 1.0


async def batches(site: Site, *, outstanding: int, width: int = 8) -> None:
    """Ask for `outstanding` files one by one, `width` processes at a time, then wait for the last one."""
    paths = site.names.walk()
    for start in range(0, len(paths), outstanding):
        batch = paths[start : start + outstanding]

        async def each(batch: list[bytes] = batch) -> AsyncIterator[list[bytes]]:
            for path in batch:
                yield [path]

        await in_parallel(width, each(), site.hsm.restore)
        while (await site.hsm.states(batch[-1:])) == [Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED]:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(_POLL)
