"""What people do with a shell: ask for everything, a file or a few in each process, and hope.

None of these looks whether a restore is under way, waits for one, or knows in the end what is resident.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from bench.peers.meter import Site, in_parallel

_READ_AHEAD = 25
"""Files that `lfs find` has looked at before xargs hears of the first: what fits into a buffer of its output."""


async def one_liner(site: Site, *, width: int) -> None:
    """`find DIR -type f -print0 | xargs -0 -n 1 -P WIDTH lfs hsm_restore`: resident or not, each is asked for."""

    async def each() -> AsyncIterator[list[bytes]]:
        for path in site.names.walk():  # find needs no stat: folders tell what is a file
            yield [path]

    await in_parallel(width, each(), site.hsm.restore)


async def find_released(site: Site, *, several: int, width: int) -> None:
    """`lfs find DIR -type f -L released -print0 | xargs -0 -n SEVERAL -P WIDTH lfs hsm_restore`."""
    site.meter.processes += 1
    released: asyncio.Queue[list[bytes] | None] = asyncio.Queue()

    async def find() -> None:
        group: list[bytes] = []
        names = site.names.walk()
        for start in range(0, len(names), _READ_AHEAD):
            some = names[start : start + _READ_AHEAD]
            site.meter.rpcs["getattr"] += len(some)  # for the layout, past the cache
            await asyncio.sleep(site.hsm.costs.stat * len(some))
            for path in some:
                if site.names.file(path).node.flags.released:
                    group.append(path)
                if len(group) == several:
                    released.put_nowait(group)
                    group = []
        if group:
            released.put_nowait(group)
        released.put_nowait(None)

    async def groups() -> AsyncIterator[list[bytes]]:
        while (group := await released.get()) is not None:
            yield group

    finding = asyncio.ensure_future(find())
    await in_parallel(width, groups(), site.hsm.restore)
    await finding
