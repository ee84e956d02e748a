"""Paths outside every association: found, said, and put into JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from fsxwarm.app import App
from fsxwarm.cli.output import name_some, safe
from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.linked import unlinked
from fsxwarm.errors import Exit
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.shard import Shard
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.tree import Place

_PATIENCE: Final = 5.0
"""Seconds for which FSx is asked about a path at the most: a network without a way to it must not hold a command up."""


def unlinked_line(paths: list[bytes]) -> str:
    """What is wrong with some paths, for people."""
    lie = "lies" if len(paths) == 1 else "lie"
    return (
        f"{name_some(paths, len(paths))} {lie} outside every association: nothing there comes from S3"
        " (`fsxwarm associations` lists what is linked)"
    )


async def without_purpose(
    app: App, check_s3: CheckS3, resident: Sequence[bytes], code: Exit, shard: Shard | None
) -> list[bytes]:
    """Those of a preload's paths, all `resident`, that lie outside every association.

    Where FSx cannot be asked there are none: all is resident there.
    """
    if check_s3 is CheckS3.NEVER or shard is not None or code not in {Exit.DONE, Exit.INCOMPLETE}:
        return []
    try:
        return await unlinked(app.aws.atlas, resident, _PATIENCE)
    except CloudError:
        return []


@dataclass(slots=True)
class Links:
    """What FSx said of some paths: those outside every association, and why that is not known, if it is not."""

    unlinked: list[bytes] = field(default_factory=list)
    unknown: str = ""

    def lines(self) -> list[str]:
        """The same for people."""
        if self.unknown:
            return [f"whether it is linked to S3 is not known: {safe(self.unknown)}"]
        return [unlinked_line(self.unlinked)] if self.unlinked else []


class LinkCheck:
    """Asks FSx about some places while the block goes on; `end` waits for the answer."""

    def __init__(self, atlas: Atlas, places: Sequence[Place]) -> None:
        self._asking = asyncio.create_task(unlinked(atlas, [place.path for place in places], _PATIENCE))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._asking.cancel()
        await asyncio.gather(self._asking, return_exceptions=True)

    async def end(self) -> Links:
        """What came of it."""
        try:
            return Links(await self._asking)
        except CloudError as error:
            nobody = error.fault in {Fault.NO_CREDENTIALS, Fault.NO_REGION}
            return Links(unknown="there are no AWS credentials" if nobody else str(error))
