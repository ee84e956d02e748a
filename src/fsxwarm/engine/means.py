"""What the daemon's core works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from fsxwarm.engine.archive import Archive
from fsxwarm.engine.metered import MeteredAccess, MeteredHsm, MeteredTree
from fsxwarm.model.meter import Meter
from fsxwarm.ports.access import Access
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.store import Store
from fsxwarm.ports.tree import Tree


@dataclass(frozen=True, slots=True)
class Means:
    """Its ports to the world.

    `tree` and `hsm` act as root and are shared by all jobs; `access` hands out those with a job owner's rights;
    `archive` tells what S3 holds; `wall` tells the time in seconds since the epoch. `skipping` finds the file systems
    (st_dev) whose servers skip duplicates, see `fsxwarm.engine.servers`; None: what the plan says of them stays true.
    """

    tree: Tree
    hsm: Hsm
    access: Access
    store: Store
    archive: Archive
    wall: Callable[[], float]
    skipping: Callable[[], Awaitable[frozenset[int]]] | None = None

    def metered(self, meter: Meter) -> Means:
        """The same, with every call to the file system counted."""
        return replace(
            self,
            tree=MeteredTree(self.tree, meter),
            hsm=MeteredHsm(self.hsm, meter),
            access=MeteredAccess(self.access, meter),
        )
