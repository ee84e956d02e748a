"""What has changed since the store last heard of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from weakref import WeakSet

from fsxwarm.engine.protection import Restored
from fsxwarm.errors import FsxwarmError
from fsxwarm.model.job import Failure, Job
from fsxwarm.ports.store import Changes, Store


class Journal:
    """Collects changes; `flush` makes them durable, all or none. `totals` are counters over the daemon's life.

    `wall` tells the time in seconds since the epoch.
    """

    def __init__(self, store: Store, totals: Mapping[str, int], wall: Callable[[], float]) -> None:
        self._store = store
        self._wall = wall
        self.totals = Counter(totals)
        self._counted: set[str] = set()
        self._jobs: dict[str, Job] = {}
        self._changes = Changes()
        self._hearing: WeakSet[Restored] = WeakSet()

    def job(self, job: Job) -> None:
        """A job has changed."""
        self._jobs[job.id] = job

    def count(self, name: str, by: int = 1) -> None:
        """Add to a total."""
        self.totals[name] += by
        self._counted.add(name)

    def failure(self, walk: str, failure: Failure) -> None:
        """A file has failed in a walk."""
        self._changes.failures.append((walk, failure))

    def restored(self, ino: int) -> None:
        """A file has become resident."""
        self._changes.restored.append(ino)
        for restored in self._hearing:
            restored.add(ino)

    def wanted(self, root: bytes, at: float) -> None:
        """A path was wanted until now."""
        self._changes.wanted[root] = at

    def scan(self, path: bytes, state: str) -> None:
        """A scan has come so far."""
        self._changes.scans[path] = state

    async def restored_since(self, since: float) -> Restored:
        """Files that have become resident since then, and those that do while the answer is held."""
        restored = Restored((), self._changes.restored)
        self._hearing.add(restored)
        restored.earlier = await self._store.restored_since(since)
        return restored

    async def flush(self) -> None:
        """Store what has changed. When that fails nothing is forgotten: it raises, and the next flush tries again."""
        changes, self._changes = self._changes, Changes()
        jobs, self._jobs = self._jobs, {}
        counted, self._counted = self._counted, set()
        changes.at = self._wall()
        changes.jobs = list(jobs.values())
        changes.totals = {name: self.totals[name] for name in counted}
        if not changes:
            return
        try:
            await self._store.save(changes)
        except FsxwarmError:
            later = self._changes
            later.failures[:0] = changes.failures
            later.restored[:0] = changes.restored
            later.wanted = changes.wanted | later.wanted
            later.scans = changes.scans | later.scans
            self._jobs = jobs | self._jobs
            self._counted |= counted
            raise
