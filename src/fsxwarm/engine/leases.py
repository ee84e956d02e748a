"""The leases of the daemon, durable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace

from fsxwarm.engine.protection import Protection
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.lease import Lease, LeaseRequest, until
from fsxwarm.ports.store import Store
from fsxwarm.ports.tree import Tree


class Leases:
    """Takes, renews and ends leases, and protects their paths while they hold."""

    def __init__(
        self, store: Store, tree: Tree, protection: Protection, saved: Iterable[Lease], wall: Callable[[], float]
    ) -> None:
        self._store = store
        self._tree = tree
        self._protection = protection
        self._wall = wall
        self._leases: dict[str, Lease] = {}
        for lease in saved:
            self._keep(lease)

    def _keep(self, lease: Lease) -> None:
        self._leases[lease.id] = lease
        self._protection.hold(f"lease {lease.id}", [lease.path], lease=True)

    async def take(self, request: LeaseRequest) -> Lease:
        """Promise that a path, wherever it really is, is not released."""
        place = await self._tree.resolve(request.path)
        if isinstance(place, Trouble):
            name = os.fsdecode(request.path)
            raise FsxwarmError(Kind.NO_SUCH_PATH, f"{name}: {place.text or os.strerror(place.errno)}", path=name)
        now = self._wall()
        lease = Lease("", request.owner, place.path, now, _until(now, request.seconds), request.label,
                      request.slurm_job_id)  # fmt: skip
        lease = await self._store.add_lease(lease)
        self._keep(lease)
        return lease

    async def renew(self, lease_id: str, seconds: float) -> Lease:
        """Let a lease run out later, or sooner."""
        now = self._wall()
        lease = replace(self._held(lease_id), expires=_until(now, seconds))
        self._leases[lease_id] = lease
        await self._store.save_lease(lease)
        return lease

    async def end(self, lease_id: str) -> None:
        """End a lease."""
        self._drop(self._held(lease_id).id)
        await self._store.drop_leases([lease_id])

    def all(self, owner: int | None) -> list[Lease]:
        """Those that hold now."""
        now = self._wall()
        return [lease for lease in self._leases.values() if lease.holds(now) and owner in (None, lease.owner)]

    async def expire(self) -> None:
        """Forget those that have run out."""
        now = self._wall()
        over = [lease.id for lease in self._leases.values() if not lease.holds(now)]
        for lease_id in over:
            self._drop(lease_id)
        if over:
            await self._store.drop_leases(over)

    def _held(self, lease_id: str) -> Lease:
        lease = self._leases.get(lease_id)
        if lease is None or not lease.holds(self._wall()):
            raise FsxwarmError(Kind.NO_SUCH_LEASE, f"there is no lease {lease_id}", lease=lease_id)
        return lease

    def _drop(self, lease_id: str) -> None:
        del self._leases[lease_id]
        self._protection.drop(f"lease {lease_id}")


def _until(now: float, seconds: float) -> float:
    try:
        return until(now, seconds)
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, str(error), hint="") from None
