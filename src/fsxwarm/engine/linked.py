"""Paths that no association covers: nothing there comes from S3."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fsxwarm.engine.atlas import Atlas
from fsxwarm.model.association import is_linked, may_be_fsx


async def unlinked(atlas: Atlas, paths: Iterable[bytes], patience: float) -> list[bytes]:
    """Those of some real paths on FSx that lie in no association and have none below them.

    Paths of which FSx does not tell, or not within `patience` seconds, are left out. CloudError if it cannot be asked.
    """
    try:
        async with asyncio.timeout(patience):
            return [path for path in paths if await _is_unlinked(atlas, path)]
    except TimeoutError:
        return []


async def _is_unlinked(atlas: Atlas, path: bytes) -> bool:
    mount = atlas.mount_of(path)
    if mount is None or not may_be_fsx(mount.source):
        return False
    chart = await atlas.chart(mount)
    if chart.failure is not None:
        raise chart.failure
    return chart.system is not None and not is_linked(path, chart.links)
