"""What S3 holds of many files, at the least number of requests.

The wanted keys, sorted, are laid beside a listing that begins right before the first of them; each page answers all
wanted keys that it covers, and the next one begins right before the next wanted key. So a dense tree costs one request
per thousand objects, a sparse one never more than one per wanted file, and only one page is held at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fsxwarm.model.s3 import Stored
from fsxwarm.ports.cloud import Cloud, CloudError, Listed

_PAGES: Final = 8
_HEADS: Final = 64
_FRESH: Final = 30.0
_WANTED_PER_REQUEST: Final = 200


class Budget:
    """How many requests may be made: none too many for the files that are wanted, or any number.

    `frugal`: at most one for each 200 wanted files, and `first` to begin with.
    """

    def __init__(self, *, frugal: bool, first: int = 1) -> None:
        self._frugal = frugal
        self._first = first
        self.wanted = 0
        self.requests = 0

    def spend(self) -> bool:
        """Take one request; False when there is none left."""
        if self._frugal and self.requests >= max(self._first, -(-self.wanted // _WANTED_PER_REQUEST)):
            return False
        self.requests += 1
        return True


@dataclass(frozen=True, slots=True)
class _Page:
    bucket: str
    after: str
    listed: Listed
    at: float

    def covers(self, bucket: str, key: str) -> bool:
        return bucket == self.bucket and self.after < key and (not self.listed.more or key <= self.listed.last)


class Objects:
    """Looks keys up. Recent pages are remembered for half a minute, since what is asked next is often beside it.

    `blind` is why single objects are not asked about any more: a listing does not tell all of some classes.
    """

    def __init__(self, cloud: Cloud, now: Callable[[], float]) -> None:
        self._cloud = cloud
        self._now = now
        self._pages: deque[_Page] = deque(maxlen=_PAGES)
        self.blind: CloudError | None = None

    async def look(
        self, bucket: str, prefix: str, keys: Sequence[str], budget: Budget, *, tiers: bool = True
    ) -> dict[str, Stored | None]:
        """What is stored under each of `keys`, all below `prefix`; None for none. Unchecked keys are left out.

        Without `tiers` a listing says enough: whether an object can be read is not asked. Raises CloudError.
        """
        found: dict[str, Stored | None] = {}
        left = deque(sorted(keys))
        after = ""
        while left:
            page = self._known(bucket, left[0])
            if page is None:
                if not budget.spend():
                    break
                after = max(after, before(left[0]))
                listed = await self._cloud.list_objects(bucket, prefix, after)
                page = _Page(bucket, after, listed, self._now())
                self._pages.appendleft(page)
                after = listed.last
            while left and page.covers(bucket, left[0]):
                key = left.popleft()
                found[key] = page.listed.objects.get(key)
        if tiers:
            await self._ask(bucket, found, budget)
        return found

    async def _ask(self, bucket: str, found: dict[str, Stored | None], budget: Budget) -> None:
        """Ask of those objects whose tier a listing does not show; those that may not be asked of are left out."""
        unclear = [key for key, stored in found.items() if stored is not None and stored.must_be_asked]
        for key in unclear:
            del found[key]
        for start in range(0, len(unclear), _HEADS):
            asked = [key for key in unclear[start : start + _HEADS] if self.blind is None and budget.spend()]
            answers = await asyncio.gather(*(self._head(bucket, key) for key in asked))
            found.update((key, stored) for key, (answered, stored) in zip(asked, answers, strict=True) if answered)

    async def _head(self, bucket: str, key: str) -> tuple[bool, Stored | None]:
        """Whether there was an answer, and which."""
        try:
            return True, await self._cloud.head(bucket, key)
        except CloudError as error:
            self.blind = error
            return False, None

    def _known(self, bucket: str, key: str) -> _Page | None:
        fresh = self._now() - _FRESH
        return next((page for page in self._pages if page.at >= fresh and page.covers(bucket, key)), None)


def before(key: str) -> str:
    """A string shortly before `key`, in the order of S3's listings, which is that of code points."""
    head, last = key[:-1], ord(key[-1])
    if last == 0:
        return head
    lower = 0xD7FF if last == 0xE000 else last - 1  # noqa: PLR2004 - no surrogates
    return f"{head}{chr(lower)}~"
