"""What metrics tell of the daemon's surroundings, looked at from time to time: free space, and associations by AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.make_room import measure
from fsxwarm.errors import FsxwarmError
from fsxwarm.model.measures import CallTally, LinkMeasure, label
from fsxwarm.model.tier import write_rate
from fsxwarm.ports.hsm import Hsm, Space


class Surroundings:
    """Looks when told to, and keeps what it saw last.

    `mounts` are those of Lustre, whether anything is warmed there or not. `atlas` gives a map of them, None where AWS
    is not asked; `aws` tells of the calls made to it. `abandoned` counts what hangs of users' own helpers and children.
    """

    def __init__(
        self,
        mounts: Callable[[], Iterable[bytes]] = tuple,
        atlas: Callable[[], Atlas] | None = None,
        aws: Callable[[], CallTally] = CallTally,
        abandoned: Callable[[], int] = int,
    ) -> None:
        self._mounts = mounts
        self._atlas = atlas
        self.aws = aws
        self.abandoned = abandoned
        self.spaces: dict[bytes, Space] = {}
        self.links: list[LinkMeasure] = []
        self.limits: dict[str, float] = {}

    async def measure(self, hsm: Hsm) -> None:
        """Measure free space. What cannot be measured is forgotten; the first failure is raised when all are done."""
        failure: FsxwarmError | None = None
        spaces: dict[bytes, Space] = {}
        for mount in sorted(set(self._mounts())):
            try:
                spaces[mount] = await measure(hsm, mount)
            except FsxwarmError as error:
                failure = failure or error
        self.spaces = spaces
        if failure is not None:
            raise failure

    async def ask_aws(self) -> None:
        """Look at associations and at what the file systems' tiers let through, as far as AWS tells."""
        if self._atlas is None:
            return
        links: list[LinkMeasure] = []
        limits: dict[str, float] = {}
        for chart in await self._atlas().charts_of_fsx():
            mount = label(chart.mount.path)
            links += [
                LinkMeasure(mount, label(link.base or b"/"), link.association.lifecycle, link.association.usable)
                for link in chart.links
            ]
            rate = None if chart.system is None else write_rate(chart.system)
            if rate is not None:
                limits[mount] = rate
        self.links, self.limits = links, limits
