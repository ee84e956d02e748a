"""Paths that no association covers: nothing there comes from S3."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.folders import parent
from fsxwarm.engine.warm import Listener, Relay
from fsxwarm.model.association import is_linked, may_be_fsx
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome


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


class Roots(Relay):
    """Hears a warming, hands it on, and remembers under which of the paths given something was not resident already."""

    def __init__(self, listener: Listener, roots: Sequence[bytes]) -> None:
        super().__init__(listener)
        self._untouched = dict.fromkeys(roots)

    @property
    def resident(self) -> list[bytes]:
        """The paths under which nothing was released."""
        return list(self._untouched)

    def settled(self, finish: Finish) -> None:
        """See `Listener`."""
        if self._untouched and finish.outcome not in {Outcome.RESIDENT, Outcome.VANISHED}:
            for folder in _upwards(finish.entry.path):
                self._untouched.pop(folder, None)
        super().settled(finish)


def _upwards(path: bytes) -> Iterator[bytes]:
    yield path
    while (up := parent(path)) != path:
        yield up
        path = up
