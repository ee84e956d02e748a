"""A metadata target's coordinator: requests wait in their order, and go to the agents in compounds."""

from __future__ import annotations

from collections import deque
from enum import Enum

from fsxwarm.sim.calls import Call
from fsxwarm.sim.nodes import Node, Stage


class Control(Enum):
    """`hsm_control` of a metadata target."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    """Takes requests and starts none."""
    SHUTDOWN = "shutdown"
    """Takes none: EAGAIN."""


class Coordinator:
    """One target's queue. `running` holds all that counts against `max_requests`, the wedged and frozen too.

    `held` counts the target's threads that blocked calls hold, `starved` the calls that wait for a thread; `busy_until`
    is when its searches through long lists are done (seconds).
    """

    def __init__(self, mdt: int, max_requests: int) -> None:
        self.mdt = mdt
        self.max_requests = max_requests
        self.control = Control.ENABLED
        self.stopped_until = 0.0
        self.waiting: deque[Node] = deque()
        self.running: set[Node] = set()
        self.woken = False
        self.tick_set = False
        self.held = 0
        self.starved: deque[Call] = deque()
        self.busy_until = 0.0
        self.deepest = 0
        """The most requests that were ever queued or running at once."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.running)

    def add(self, node: Node) -> None:
        """Queue a request."""
        node.stage = Stage.WAITING
        self.waiting.append(node)
        self.deepest = max(self.deepest, len(self))

    def remove(self, node: Node) -> None:
        """Forget a request, wherever it stands."""
        if node in self.running:
            self.running.discard(node)
        else:
            self.waiting.remove(node)

    def starts(self, now: float) -> bool:
        """Whether it starts requests at this time."""
        return self.control is Control.ENABLED and now >= self.stopped_until

    def compound(self) -> list[Node]:
        """Take the next requests to be sent to the agents together: as many as may run."""
        count = min(self.max_requests - len(self.running), len(self.waiting))
        taken = [self.waiting.popleft() for _ in range(max(0, count))]
        self.running.update(taken)
        return taken

    def search(self, seconds: float, now: float) -> float:
        """Search a list for so long, behind the searches asked for before; return when it is done."""
        self.busy_until = max(now, self.busy_until) + seconds
        return self.busy_until
