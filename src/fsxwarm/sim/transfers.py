"""The copy agents: so many transfers at a time, each with a latency of its own, sharing one bandwidth evenly.

Sharing is computed by one running sum, the bytes that a transfer active all the time would have got: a transfer that
begins at sum s with n bytes ends when the sum is s + n. So a change in the number of transfers costs nothing per file.
"""

from __future__ import annotations

import heapq
from typing import Final

from fsxwarm.sim.nodes import Node, Stage

_EVENT: Final = tuple[float, int, Node]


class Transfers:
    """Transfers under way. Times in seconds, sizes in bytes, bandwidth in bytes per second over all."""

    def __init__(self, bandwidth: float, latency: float) -> None:
        self.bandwidth = bandwidth
        self.latency = latency
        self.active = 0
        self._sum = 0.0
        self._since = 0.0
        self._number = 0
        self._starting: list[tuple[float, int, Node]] = []
        self._moving: list[tuple[float, int, Node]] = []

    def start(self, node: Node, now: float) -> None:
        """An agent takes a file on: first the archive is asked for it."""
        self._number += 1
        node.number = self._number
        node.stage = Stage.STARTED
        node.started = now
        heapq.heappush(self._starting, (now + self.latency + node.extra_time, node.number, node))

    def drop(self, node: Node, now: float) -> None:
        """A transfer ends before its time: its place in the heaps becomes void."""
        self.settle(now)
        if node.stage is Stage.MOVING:
            self.active -= 1
        node.number = 0

    def freeze(self, node: Node, now: float) -> None:
        """No byte moves any more."""
        node.begun = self.moved(node, now)
        self.drop(node, now)
        node.stage = Stage.FROZEN

    def moved(self, node: Node, now: float) -> float:
        """Bytes of a file that have arrived."""
        self.settle(now)
        if node.stage is Stage.FROZEN:
            return node.begun
        return max(0.0, self._sum - node.begun) if node.stage is Stage.MOVING else 0.0

    def settle(self, now: float) -> None:
        """Bring the running sum up to date."""
        if self.active and now > self._since:
            self._sum += (now - self._since) * self.bandwidth / self.active
        self._since = max(now, self._since)

    def next_event(self) -> float | None:
        """When the next transfer begins to move or ends."""
        self._clean()
        times = []
        if self._starting:
            times.append(self._starting[0][0])
        if self._moving:
            left = max(0.0, self._moving[0][0] - self._sum)
            times.append(self._since + left * self.active / self.bandwidth)
        return min(times, default=None)

    def take_due(self, now: float) -> tuple[list[Node], list[Node]]:
        """Advance to `now`, which is no later than `next_event`; return who begins to move, and who has arrived."""
        self.settle(now)
        self._clean()
        begins, ends = [], []
        while self._moving and self._moving[0][0] <= self._sum * (1 + 1e-12) + 1e-3:
            _, number, node = heapq.heappop(self._moving)
            if node.number == number:
                ends.append(node)
                self.drop(node, now)
        while self._starting and self._starting[0][0] <= now:
            _, number, node = heapq.heappop(self._starting)
            if node.number == number:
                begins.append(node)
        return begins, ends

    def move(self, node: Node) -> None:
        """The archive has answered: bytes begin to arrive."""
        node.stage = Stage.MOVING
        node.begun = self._sum
        node.mark = self._sum + node.size
        self.active += 1
        heapq.heappush(self._moving, (node.mark, node.number, node))

    def _clean(self) -> None:
        for heap in (self._starting, self._moving):
            while heap and heap[0][2].number != heap[0][1]:
                heapq.heappop(heap)
