"""S3 as the daemon sees it: which object is behind each file, and whether it is there, for as long as it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fsxwarm.engine.addresses import is_address, mapped, mapped_one
from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.guard import ReleaseGuard
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.model.job import JobRequest
from fsxwarm.model.s3 import CheckS3
from fsxwarm.ports.restore_log import RestoreLog

_FRESH: Final = 300.0
"""Seconds for which associations are taken to be as they were: two calls a file system find them out again."""
_FRESH_FAILURE: Final = 30.0
_TOLD_AGAIN: Final = 3600.0


class Archive:
    """Hands out what looks at S3 for one walk, one release, one round of making room.

    `draw` makes a map of the mounts that there are now; it is drawn anew every few minutes, since file systems are
    mounted and associations made while the daemon runs. `say` is told why files go unchecked, once an hour. Nothing is
    asked of AWS before somebody needs it.
    """

    def __init__(self, draw: Callable[[], Atlas], log: RestoreLog, say: Callable[[str], None]) -> None:
        self._draw = draw
        self.log = log
        self._say = say
        self._now = asyncio.get_running_loop().time
        self._atlas: Atlas | None = None
        self._drawn = 0.0
        self._said: dict[str, float] = {}

    @property
    def atlas(self) -> Atlas:
        """A map not older than some minutes; seconds, if it has gaps because AWS did not answer."""
        now = self._now()
        if self._atlas is None or now - self._drawn >= (_FRESH_FAILURE if self._atlas.has_gaps else _FRESH):
            self._atlas, self._drawn = self._draw(), now
        return self._atlas

    def sieve(self, mode: CheckS3) -> Preflight | None:
        """What looks at the files of one walk before FSx is asked for them."""
        return None if mode is CheckS3.NEVER else Preflight(Inspector(self.atlas, mode, self.tell))

    def guard(self, mode: CheckS3) -> ReleaseGuard:
        """What has the last word on a user's release."""
        return ReleaseGuard(self.atlas, mode, self.tell, strict=False)

    def strict_guard(self) -> ReleaseGuard:
        """What has the last word on making room, which takes whatever is oldest: nothing goes unchecked."""
        return ReleaseGuard(self.atlas, CheckS3.ALWAYS, self.tell, strict=True)

    async def placed(self, request: JobRequest) -> JobRequest:
        """Put paths in the place of S3 addresses. FsxwarmError as `mapped`, for the paths.

        Those of the list that are linked nowhere stay as they are: no file has such a name, and they count as such.
        """
        if not any(map(is_address, (*request.paths, *request.files))):
            return request
        atlas = self.atlas
        paths = tuple(await mapped(request.paths, atlas))
        files: list[bytes] = []
        for path in request.files:
            files += await mapped_one(path, atlas) or [path]
        return replace(request, paths=paths, files=tuple(files))

    async def linked(self) -> list[bytes]:
        """The folders of the associations of all FSx mounts; those that AWS does not tell of are left out."""
        charts = await self.atlas.charts_of_fsx()
        for chart in charts:
            if chart.failure is not None:
                self.tell(f"associations are not known: {chart.failure} ({chart.failure.advice})")
        return [link.base or b"/" for chart in charts for link in chart.links]

    def tell(self, why: str) -> None:
        """Say why files go unchecked, unless that was said lately."""
        now = self._now()
        self._said = {text: at for text, at in self._said.items() if now - at < _TOLD_AGAIN}
        if why not in self._said:
            self._said[why] = now
            self._say(why)
