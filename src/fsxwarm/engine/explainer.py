"""Why restores failed, for walks that go on: failures are held back for a moment, until the log has told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fsxwarm.engine.archive import Archive
from fsxwarm.engine.explain import HELD, SLACK, Enquiry, is_unexplained
from fsxwarm.engine.walks import Walk
from fsxwarm.model.messages import Finish
from fsxwarm.model.s3 import CheckS3
from fsxwarm.ports.cloud import CloudError

_LOOK_BACK: Final = 900.0
"""Seconds before a failure is noticed in which FSx may have told of it: the earlier attempts failed alike."""
_LOOKS: Final = 3
"""Looks at the log after which a failure that it does not mention is handed on as it is."""


@dataclass(slots=True)
class _Held:
    finish: Finish
    walks: Sequence[Walk]
    at: float
    looks: int = 0


class Explainer:
    """Holds files back whose restore failed without a reason, and hands each on with the reason, if there is one.

    `told` takes a failure and the walks that it belongs to. `wall` tells seconds since the epoch. `look` is to be
    called every few seconds; without failures it asks nothing.
    """

    def __init__(
        self, archive: Archive, told: Callable[[Finish, Sequence[Walk]], None], wall: Callable[[], float]
    ) -> None:
        self._archive = archive
        self._told = told
        self._wall = wall
        self._held: list[_Held] = []

    def takes(self, finish: Finish, walks: Sequence[Walk]) -> bool:
        """Hold a file back if its failure wants an explanation; tells whether it does."""
        asked = any(walk.wanted.check_s3 != CheckS3.NEVER for walk in walks)
        if not (is_unexplained(finish) and asked) or len(self._held) >= HELD:
            return False
        self._held.append(_Held(finish, walks, self._wall()))
        return True

    def holds(self, walk: Walk) -> bool:
        """Whether any file of a walk is held back."""
        return any(walk in held.walks for held in self._held)

    def let_go(self, walk: Walk) -> None:
        """Hand the files of a walk on as they are: nobody waits for their reasons any more."""
        gone = [held for held in self._held if walk in held.walks]
        self._held = [held for held in self._held if walk not in held.walks]
        self._hand_on(gone)

    async def look(self) -> None:
        """Look once for what the log says of the files that are held back."""
        some = list(self._held)
        if not some:
            return
        try:
            over = await self._explained(some)
        except CloudError as error:
            self._archive.tell(f"why restores failed is not known: {error} ({error.advice})")
            over = some
        still = {id(held) for held in self._held}
        over = [held for held in over if id(held) in still]
        settled = {id(held) for held in over}
        self._held = [held for held in self._held if id(held) not in settled]
        self._hand_on(over)

    async def _explained(self, some: Sequence[_Held]) -> list[_Held]:
        """Those that need not be held back any longer, with reasons where there are any."""
        enquiry = Enquiry(self._archive.atlas, self._archive.log)
        start = min(held.at for held in some) - _LOOK_BACK
        if not await enquiry.read([held.finish.entry.path for held in some], start, self._wall() + SLACK):
            return list(some)
        over: list[_Held] = []
        for held in some:
            held.looks += 1
            reason = await enquiry.reason(held.finish.entry.path)
            if reason is not None:
                held.finish = replace(held.finish, reason=reason)
            if reason is not None or held.looks >= _LOOKS:
                over.append(held)
        return over

    def _hand_on(self, some: Iterable[_Held]) -> None:
        for held in some:
            self._told(held.finish, held.walks)
