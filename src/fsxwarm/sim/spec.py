"""What a simulated FSx for Lustre is made of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that calls take; zero by default, so that only transfers take time.

    `process` is a call's own, the others are added for each file. `per_queued` is what a metadata target spends on each
    request in its queue for one search through it: for an action it searches its log, up to 2.15 for a look at a
    released file and for a restore that begins its list of layout locks. Searches of one target happen one after
    another, so that a deep queue slows everything. Measured on 2.15.8: 0.5 ms against 0.35 ms with 550 queued.
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

    `agents` transfers run at a time and share the bandwidth evenly; each takes `latency` at least. `max_requests` is
    how many a metadata target's coordinator lets run (None: as many as there are agents); `loop` its period (0: it
    starts a request as soon as it may; upstream 10), which only requests that did not wake it wait for. `mdt_threads`
    is how many blocked calls a target bears before it answers nobody, `client_rate` how many files a second one client
    can ask for (None: any number; 85 to 170 were seen on real ones). Files up to 1 GiB go to one OST, larger ones to
    all. `request_timeout` is active_request_timeout. `report_every` is how often an agent reports bytes moved,
    `space_delay` how late freed space shows up.
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
    mdt_threads: int = 128
    client_rate: float | None = None
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
