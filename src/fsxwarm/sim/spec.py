"""What a simulated FSx for Lustre is made of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that calls take on the client; zero by default, so that only transfers take time.

    `per_queued` is added to a look-up for each request in the target's queue: up to 2.15 the server searches its list
    of layout locks, and for an action its log, linearly.
    """

    stat: float = 0.0
    state: float = 0.0
    action: float = 0.0
    request: float = 0.0
    process: float = 0.0
    per_queued: float = 0.0


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Sizes in bytes, times in seconds, bandwidth in bytes per second over all transfers.

    `agents` transfers run at a time and share the bandwidth evenly; each spends `latency` first. `max_requests` is how
    many a metadata target's coordinator lets run (None: as many as there are agents); `loop` its period (0: it starts
    a request as soon as there is an agent). Files go to the targets in turn, files up to 1 GiB to one OST, larger ones
    to all. `report_every` is how often an agent reports bytes moved; `space_delay` how late freed space shows up.
    """

    mdts: int = 2
    agents: int = 32
    max_requests: int | None = None
    bandwidth: float = 1e9
    latency: float = 0.05
    loop: float = 0.0
    osts: int = 2
    ost_size: int = 10**15
    version: tuple[int, ...] = (2, 15, 8)
    request_timeout: float = 3600.0
    report_every: float = 5.0
    space_delay: float = 0.0
    users_may_restore: bool = True
    costs: Costs = field(default_factory=Costs)

    @property
    def duplicates_block(self) -> bool:
        """Up to 2.15 a second request for a file in flight blocks until that restore ends (LU-15132)."""
        return self.version < (2, 16)

    @property
    def compounds_wedge(self) -> bool:
        """Before 2.17 one bad file wedges the others of its compound."""
        return self.version < (2, 17)

    def lower_bound(self, files: int, size: int) -> float:
        """Seconds that restoring `files` files of `size` bytes in all takes at the least."""
        return max(size / self.bandwidth, files * self.latency / self.agents)
