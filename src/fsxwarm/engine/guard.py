"""Before space is given back: is what Lustre calls archived really in S3?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from fsxwarm.engine.atlas import Atlas
from fsxwarm.engine.preflight import Checked, Inspector
from fsxwarm.model.entry import Entry, Key
from fsxwarm.model.release import Reason
from fsxwarm.model.s3 import CheckS3

_OUT_OF_ORDER: Final = 5
"""Requests to S3 to begin with: batches of files come to be released a little out of order."""


class ReleaseGuard:
    """Refuses to release files whose object is missing or of another size: their data would be lost.

    `atlas`, `mode` and `say` as for the inspector. With `strict` it also refuses what could not be looked up.
    """

    def __init__(self, atlas: Atlas, mode: CheckS3, say: Callable[[str], None], *, strict: bool) -> None:
        self._inspector = Inspector(atlas, mode, say, first=_OUT_OF_ORDER)
        self._strict = strict
        self._turn = asyncio.Lock()  # neighbours wait for the page that one of them asks for

    @property
    def found(self) -> Checked:
        """What was found out so far."""
        return self._inspector.found

    async def refused(self, entries: Sequence[Entry]) -> dict[Key, Reason]:
        """Those of some files that must not be released, and why. FsxwarmError CLOUD as the inspector."""
        async with self._turn:
            stored = await self._inspector.look(entries, tiers=False)  # there and whole is enough
        refused: dict[Key, Reason] = {}
        for entry in entries:
            if entry.key not in stored:
                if self._strict:
                    refused[entry.key] = Reason.UNCHECKED
                continue
            one = stored[entry.key]
            if one is None:
                refused[entry.key] = Reason.NO_OBJECT
            elif one.size != entry.size:
                refused[entry.key] = Reason.OTHER_SIZE
        return refused
