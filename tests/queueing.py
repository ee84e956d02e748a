"""A small model of FSx for studying windows: agents behind a first-come-first-served coordinator, in virtual time.

Files wait in one queue for `agents`; each costs an agent `latency` seconds and then moves at `stream` bytes/s, or at
its share of `total` bytes/s over all, whichever is less. Clients see a file resident at their next poll.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import inf

from fsxwarm.model.policy import WindowPolicy
from fsxwarm.model.window import Window

REQUEST = 50


@dataclass(frozen=True, slots=True)
class Facility:
    """What the model is made of; `change` are times at which the number of agents becomes another one."""

    agents: int
    latency: float
    stream: float = 100e6
    total: float = inf
    poll: float = 0.5
    changes: tuple[tuple[float, int], ...] = ()
    stopped: tuple[float, float] = (inf, inf)


@dataclass
class Client:
    """One fsxwarm: what it still has to ask for, and what became of it."""

    window: Window
    sizes: Sequence[int]
    begins: float = 0.0
    asked: int = 0
    in_flight: int = 0
    seen: int = 0
    ended: float = 0.0
    done: list[tuple[int, float]] = field(default_factory=list)
    trace: list[tuple[float, int, int, int]] = field(default_factory=list)

    def mean_in_flight(self, start: float, end: float) -> float:
        """Time-weighted mean of files in flight between two times."""
        area = 0.0
        for (a, files, _, _), (b, _, _, _) in zip(self.trace, self.trace[1:], strict=False):
            area += files * max(0.0, min(b, end) - max(a, start))
        return area / max(1e-9, end - start)

    def seen_by(self, when: float) -> int:
        """Files seen resident by a time."""
        return next((seen for at, _, _, seen in reversed(self.trace) if at <= when), 0)


class Model:
    """Runs clients against a facility."""

    def __init__(self, facility: Facility, clients: list[Client]) -> None:
        self.facility = facility
        self.clients = clients
        self.agents = facility.agents
        self.waiting: deque[tuple[Client, int, float]] = deque()
        self.busy = 0
        self.moving: list[tuple[float, int, tuple[Client, int, float]]] = []
        self.served = 0.0
        self.since = 0.0
        self.number = count()
        self.events: list[tuple[float, int, Callable[[float], None]]] = []

    def run(self) -> float:
        """Run until every client has seen all its files; the time it took."""
        for when, agents in self.facility.changes:
            self._at(when, partial(self._change, agents))
        self._at(self.facility.stopped[1], self._start)
        for number, client in enumerate(self.clients):
            self._at(client.begins + 0.07 * number, partial(self._poll, client))
            self._at(client.begins + 0.07 * number, partial(self._tick, client))
        now = 0.0
        while any(client.seen < len(client.sizes) for client in self.clients):
            if self.moving and (end := self._next_end()) <= self.events[0][0]:
                now = end
                self._serve(now)
                self._finished(heapq.heappop(self.moving)[2], now)
            else:
                now, _, happen = heapq.heappop(self.events)
                self._serve(now)
                happen(now)
            self._start(now)
        return now

    def _at(self, when: float, happen: Callable[[float], None]) -> None:
        if when < inf:
            heapq.heappush(self.events, (when, next(self.number), happen))

    def _share(self) -> float:
        return min(self.facility.stream, self.facility.total / len(self.moving)) if self.moving else 0.0

    def _serve(self, now: float) -> None:
        self.served += (now - self.since) * self._share()
        self.since = now

    def _next_end(self) -> float:
        return self.since + max(0.0, self.moving[0][0] - self.served) / self._share()

    def _start(self, now: float) -> None:
        begin, end = self.facility.stopped
        if begin <= now < end:
            return
        while self.waiting and self.busy < self.agents:
            file = self.waiting.popleft()
            self.busy += 1
            if self.facility.total < inf:
                self._at(now + self.facility.latency, partial(self._move, file))
            else:
                took = self.facility.latency + file[1] / self.facility.stream
                self._at(now + took, partial(self._finished, file))

    def _change(self, agents: int, now: float) -> None:
        del now
        self.agents = agents

    def _move(self, file: tuple[Client, int, float], now: float) -> None:
        del now
        heapq.heappush(self.moving, (self.served + file[1], next(self.number), file))

    def _finished(self, file: tuple[Client, int, float], now: float) -> None:
        del now
        self.busy -= 1
        file[0].done.append(file[1:])

    def _poll(self, client: Client, now: float) -> None:
        done, client.done = client.done, []
        for size, asked in done:
            client.in_flight -= 1
            client.seen += 1
            client.window.settled(nbytes=size, took=now - asked, in_flight=client.in_flight, now=now)
        self._refill(client, now)
        client.trace.append((now, client.in_flight, client.window.size, client.seen))
        if client.seen == len(client.sizes):
            client.ended = now
        else:
            self._at(now + self.facility.poll, partial(self._poll, client))

    def _tick(self, client: Client, now: float) -> None:
        if client.seen < len(client.sizes):
            client.window.tick(client.in_flight, client.asked < len(client.sizes), now)
            self._refill(client, now)
            self._at(now + 1.0, partial(self._tick, client))

    def _refill(self, client: Client, now: float) -> None:
        left = len(client.sizes) - client.asked
        room = client.window.size - client.in_flight
        if client.in_flight and room < min(REQUEST, max(1, client.window.size // 4), left):
            return
        while left and room > 0 and now >= client.window.paused_until:
            files = min(REQUEST, room, left)
            for size in client.sizes[client.asked : client.asked + files]:
                self.waiting.append((client, size, now))
            client.asked += files
            client.in_flight += files
            client.window.submitted(files, client.in_flight, now)
            left -= files
            room = client.window.size - client.in_flight


def warm(facility: Facility, sizes: Sequence[int], *, fixed: int | None = None) -> Client:
    """Warm files with one client; the client afterwards."""
    client = Client(Window(WindowPolicy(fixed=fixed), 0.0), sizes)
    Model(facility, [client]).run()
    return client
