"""The copy agents: so many transfers at a time, sharing one bandwidth evenly, each object taking its latency at least.

The latency runs beside the transfer, so that n files of s bytes take max(n s / bandwidth, n latency / agents) as soon
as enough of them are asked for: the bound against which a run is measured can be reached.

Sharing is computed by one running sum, the bytes that a transfer active all the time would have got: a transfer that
begins at sum s with n bytes ends when the sum is s + n. So a change in the number of transfers costs nothing per file.
"""

from __future__ import annotations

import heapq
from collections import deque
from math import inf
from typing import Final

from fsxwarm.sim.nodes import Node, Stage

_MIB: Final = 1 << 20


class Agents:
    """Transfers under way. Times in seconds, sizes in bytes, bandwidth in bytes per second over all.

    `queue` holds what coordinators sent and no agent has taken on; what is not `Stage.SENT` in it any more is void.
    """

    def __init__(self, count: int, bandwidth: float, latency: float) -> None:
        self.count = count
        self.bandwidth = bandwidth
        self.latency = latency
        self.busy = 0
        self.queue: deque[Node] = deque()
        self.paused_at = inf
        self._active = 0
        self._sum = 0.0
        self._since = 0.0
        self._moving: list[tuple[float, int, Node]] = []
        self._settling: list[tuple[float, int, Node]] = []

    @property
    def paused(self) -> bool:
        """Whether all of them are stopped."""
        return self.paused_at < inf

    @property
    def idle(self) -> bool:
        """Whether one could take something on."""
        return self.busy < self.count and not self.paused

    def begin(self, node: Node, now: float, *, delay: float = 0.0, doomed_at: float = inf, fails: bool = False) -> None:
        """Take a file on. `delay`: seconds more than its latency; `doomed_at`: bytes after which the agent dies."""
        self._settle(now)
        if not self._active:
            self._sum = 0.0  # a small sum is an exact one
        self.busy += 1
        node.due = now + self.latency + delay
        node.reported, node.reported_at = 0, now
        node.begun = self._sum
        node.doomed = doomed_at < node.size
        if fails:
            node.stage = Stage.SETTLING
            heapq.heappush(self._settling, (node.due, node.number, node))
            return
        node.stage = Stage.MOVING
        node.mark = self._sum + min(node.size, doomed_at)
        self._active += 1
        heapq.heappush(self._moving, (node.mark, node.number, node))

    def drop(self, node: Node, now: float) -> None:
        """Give a file up, or be done with it; the caller changes its stage, which makes its places in heaps void."""
        self._settle(now)
        self.busy -= 1
        if node.stage is Stage.MOVING:
            self._active -= 1

    def freeze(self, node: Node, now: float) -> None:
        """Its agent dies, and another takes the dead one's place."""
        moved = self.moved(node, now)
        self.drop(node, now)
        node.begun = moved
        node.stage = Stage.FROZEN

    def moved(self, node: Node, now: float) -> float:
        """Bytes of a file that have arrived."""
        self._settle(now)
        match node.stage:
            case Stage.MOVING:
                return min(node.size, max(0.0, self._sum - node.begun))
            case Stage.SETTLING:
                return node.size if node.failure is None else 0
            case Stage.FROZEN:
                return node.begun
            case _:
                return 0

    def report(self, node: Node, now: float, every: float) -> int:
        """Bytes moved as last reported: agents tell every so many seconds, so that small files jump from 0 to done."""
        if node.stage is Stage.FROZEN:
            return int(node.begun) // _MIB * _MIB
        if now - node.reported_at >= every and not self.paused:
            node.reported, node.reported_at = int(self.moved(node, now)) // _MIB * _MIB, now
        return node.reported

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Change the bandwidth."""
        self._settle(now)
        self.bandwidth = bandwidth

    def pause(self, now: float) -> None:
        """Stop all (SIGSTOP): nothing moves, nothing ends."""
        if not self.paused:
            self._settle(now)
            self.paused_at = now

    def resume(self, now: float) -> None:
        """Let all go on where they stopped."""
        if not self.paused:
            return
        stopped = now - self.paused_at
        self.paused_at = inf
        self._since = now
        for _, _, node in self._moving:
            node.due += stopped
        for _, _, node in self._settling:
            node.due += stopped
        self._settling = [(due + stopped, number, node) for due, number, node in self._settling]

    def next_event(self) -> float:
        """When the next transfer's bytes are there, or its latency over; infinity if none is under way."""
        if self.paused:
            return inf
        self._clean()
        settled = self._settling[0][0] if self._settling else inf
        return min(settled, self._arrival() if self._moving else inf)

    def take_due(self, now: float) -> list[Node]:
        """Return whose transfer is over at `now`, which is no later than `next_event`.

        A `doomed` one that is still moving is one whose agent dies now.
        """
        self._settle(now)
        self._clean()
        over: list[Node] = []
        while self._moving and self._arrival() <= now:
            _, _, node = heapq.heappop(self._moving)
            if node.doomed:
                over.append(node)
                continue
            node.stage = Stage.SETTLING
            self._active -= 1
            heapq.heappush(self._settling, (node.due, node.number, node))
            self._clean()
        while self._settling and self._settling[0][0] <= now:
            over.append(heapq.heappop(self._settling)[2])
            self._clean()
        return over

    def _arrival(self) -> float:
        left = max(0.0, self._moving[0][0] - self._sum)
        return self._since + left * self._active / self.bandwidth

    def _settle(self, now: float) -> None:
        """Bring the running sum up to date."""
        now = min(now, self.paused_at)
        if now > self._since:
            if self._active:
                self._sum += (now - self._since) * self.bandwidth / self._active
            self._since = now

    def _clean(self) -> None:
        for heap, stage in ((self._moving, Stage.MOVING), (self._settling, Stage.SETTLING)):
            while heap and (heap[0][2].number != heap[0][1] or heap[0][2].stage is not stage):
                heapq.heappop(heap)
