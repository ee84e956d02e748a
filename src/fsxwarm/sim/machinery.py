"""How actions live and die: queues, compounds, agents, space, timeouts, and the calls that hang on them."""

from __future__ import annotations

import errno
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Final

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.agents import Agents
from fsxwarm.sim.calls import Call
from fsxwarm.sim.coordinator import Coordinator
from fsxwarm.sim.faults import Fault, Faults
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.nodes import Node, Stage
from fsxwarm.sim.osts import Osts
from fsxwarm.sim.spec import WorldSpec

_DIES_AT: Final = 0.5
"""The share of a file's bytes that has moved when an agent dies in the middle."""
_RUNNING: Final = frozenset({Stage.MOVING, Stage.SETTLING})


class Machinery:
    """The servers' inside. `now` is the time up to which everything has happened, in seconds.

    `on_data` is told whenever a file's data comes or goes, `on_failed` whenever a restore fails (`Node.failure` says
    why), `on_change` whenever the time of the next event may have changed.
    """

    def __init__(self, spec: WorldSpec, faults: Faults | None = None) -> None:
        self.spec = spec
        self.faults = Faults() if faults is None else faults
        self.now = 0.0
        self.nodes: dict[Fid, Node] = {}
        self.counts: Counter[str] = Counter()
        most = spec.agents if spec.max_requests is None else spec.max_requests
        self.coordinators = [Coordinator(mdt, most) for mdt in range(spec.mdts)]
        self.agents = Agents(spec.agents, spec.bandwidth, spec.latency)
        self.osts = Osts(spec.osts, spec.ost_size)
        self.on_data: Callable[[Node, bool], None] = lambda _node, _resident: None
        self.on_failed: Callable[[Node], None] = lambda _node: None
        self.on_change: Callable[[], None] = lambda: None
        self._stirred = False
        self._cancelled: list[tuple[Node, int]] = []
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = itertools.count(1)

    # ---- time --------------------------------------------------------------------------------------------------

    def next_event(self) -> float | None:
        """When something happens by itself next; None: never."""
        when = min(self._timers[0][0] if self._timers else math.inf, self.agents.next_event())
        return None if when == math.inf else when

    def advance(self, now: float) -> None:
        """Let everything happen that is due by `now`, in its order."""
        while (when := self.next_event()) is not None and when <= now:
            self.now = max(self.now, when)
            self._happen()
        self.now = max(self.now, now)
        self.osts.settle(self.now)

    def at(self, when: float, then: Callable[[], None]) -> None:
        """Let something happen at a time: for schedules of faults and of what others do."""
        heapq.heappush(self._timers, (when, next(self._serial), then))
        self.on_change()

    def _happen(self) -> None:
        for node in self.agents.take_due(self.now):
            if node.stage is Stage.MOVING:
                self.agents.freeze(node, self.now)
                self._expire_later(node)
            else:
                self._end(node, restored=node.failure is None)
        while self._timers and self._timers[0][0] <= self.now:
            heapq.heappop(self._timers)[2]()
        self._dispatch()

    # ---- the life of an action ---------------------------------------------------------------------------------

    def _coordinator(self, node: Node) -> Coordinator:
        return self.coordinators[node.mdt]

    def _queue(self, node: Node, verb: Verb) -> None:
        node.verb = verb
        node.number = next(self._serial)
        if verb is Verb.ARCHIVE:
            node.flags |= Flags.EXISTS
            node.archive_id = node.archive_id or 1
            node.archiving = node.content
        self._coordinator(node).add(node)
        self._stirred = True

    def _cancel(self, node: Node) -> None:
        """Ask the coordinator to cancel what it has for a file; it does once it hears."""
        self._cancelled.append((node, node.number))
        self._stirred = True

    def _dispatch(self) -> None:
        """Let coordinators send what waits, and idle agents take on what was sent, until nothing stirs any more."""
        self._stirred = True
        while self._stirred:
            self._stirred = False
            if self._cancelled:
                self._obey_cancels()
            for coordinator in self.coordinators:
                if coordinator.waiting and self._sends(coordinator):
                    self._send(coordinator.compound())
            while self.agents.idle and self.agents.queue:
                node = self.agents.queue.popleft()
                if node.stage is Stage.SENT:
                    self._start(node)
        self.on_change()

    def _sends(self, coordinator: Coordinator) -> bool:
        """Whether a coordinator looks at its queue now. Failed requests do not wake it: those wait for its loop."""
        if not self.agents.count or not coordinator.starts(self.now):
            return False
        if coordinator.woken or not self.spec.loop:
            coordinator.woken = False
            return True
        if not coordinator.tick_set:
            coordinator.tick_set = True

            def tick() -> None:
                coordinator.tick_set, coordinator.woken = False, True

            self.at((math.floor(self.now / self.spec.loop + 1e-9) + 1) * self.spec.loop, tick)
        return False

    def _send(self, compound: list[Node]) -> None:
        """Send a compound to the agents: with one bad file in it, the others are never sent (fixed in 2.17)."""
        bad = {id(n) for n in compound if n.verb is Verb.RESTORE and (n.gone or not n.flags & Flags.RELEASED)}
        for node in compound:
            if id(node) in bad:
                self._end(node, restored=False)
            elif bad and self.spec.compounds_wedge:
                self._wedge(node)
            else:
                node.stage = Stage.SENT
                self.agents.queue.append(node)

    def _start(self, node: Node) -> None:
        fault = self.faults.on_restore(node) if node.verb is Verb.RESTORE else None
        node.tries += 1
        node.failure = None
        if fault is Fault.WEDGED:
            self._wedge(node)
            return
        dies = fault in {Fault.STUCK, Fault.DIES}
        if node.verb is Verb.RESTORE and (fault is None or dies) and not self._reserve(node):
            fault, dies = Fault.DISK_FULL, False
        if fault is not None and not dies:
            node.failure = fault.value
        self.agents.begin(
            node,
            self.now,
            delay=self._searched(node),
            doomed_at=node.size * _DIES_AT if fault is Fault.DIES else math.inf,
            fails=node.failure is not None,
        )
        if fault is Fault.STUCK or (fault is Fault.DIES and not node.doomed):
            self.agents.freeze(node, self.now)
            self._expire_later(node)

    def _searched(self, node: Node) -> float:
        """Seconds that the target searches its list of locks for a restore that begins."""
        if not self.spec.costs.per_queued or not self.spec.duplicates_block:
            return 0.0
        coordinator = self._coordinator(node)
        return coordinator.search(self.spec.costs.per_queued * len(coordinator), self.now) - self.now

    def _wedge(self, node: Node) -> None:
        node.stage = Stage.WEDGED
        self._expire_later(node)

    def _expire_later(self, node: Node) -> None:
        """active_request_timeout: what makes no progress is given up."""
        number = node.number

        def expire() -> None:
            if node.number == number and node.stage in {Stage.WEDGED, Stage.FROZEN}:
                node.failure = "timed out"
                self._end(node, restored=False)

        self.at(self.now + self.spec.request_timeout, expire)

    def _obey_cancels(self) -> None:
        cancelled, self._cancelled = self._cancelled, []
        for node, number in cancelled:
            if node.number != number or node.verb is Verb.NONE:
                continue
            has_agent = node.stage not in {Stage.WAITING, Stage.WEDGED}
            if self._coordinator(node).starts(self.now) and not (has_agent and self.agents.paused):
                node.failure = "cancelled"
                self._end(node, restored=False)
            else:
                self._cancelled.append((node, number))

    def _end(self, node: Node, *, restored: bool) -> None:
        """An action is over: the coordinator forgets it, data and flags change, those who hang on it go on."""
        verb, stage = node.verb, node.stage
        coordinator = self._coordinator(node)
        coordinator.remove(node)
        coordinator.woken = True
        if stage in _RUNNING:
            self.agents.drop(node, self.now)
        node.verb = Verb.NONE
        node.stage = Stage.WAITING
        node.number = 0
        self._stirred = True
        if node.gone:
            restored = False
        if verb is Verb.RESTORE:
            self._end_restore(node, restored=restored)
        elif verb is Verb.ARCHIVE and restored:
            self._end_archive(node)
        elif verb is Verb.REMOVE and restored:
            node.flags &= ~(Flags.EXISTS | Flags.ARCHIVED | Flags.DIRTY | Flags.LOST)
            node.archived = node.archive_id = 0
        waiters, node.waiters = node.waiters, None
        for call in waiters or ():
            self._coordinator(node).held -= 1
            self._resume(call, node)
        self._feed(coordinator)

    def _end_restore(self, node: Node, *, restored: bool) -> None:
        if restored:
            node.flags &= ~Flags.RELEASED
            self.counts["restored"] += 1
            self.on_data(node, True)
        elif node.flags & Flags.RELEASED or node.gone:
            self.counts["failed"] += 1
            self._give_space(node)
            self.on_failed(node)

    @staticmethod
    def _end_archive(node: Node) -> None:
        node.flags |= Flags.ARCHIVED
        node.flags &= ~Flags.LOST
        node.archived = node.archiving
        if node.archived == node.content:
            node.flags &= ~Flags.DIRTY
        else:
            node.flags |= Flags.DIRTY

    # ---- calls that hang ---------------------------------------------------------------------------------------

    def _block(self, call: Call, node: Node) -> None:
        """Let a call hang until the action of a file ends; it holds a thread of the metadata target."""
        self.counts["blocked"] += 1
        call.blocked_on = node
        if node.waiters is None:
            node.waiters = []
        node.waiters.append(call)
        self._coordinator(node).held += 1

    def _feed(self, coordinator: Coordinator) -> None:
        """Give threads that became free to calls that wait for one."""
        while coordinator.starved and coordinator.held < self.spec.mdt_threads:
            self._go_on(coordinator.starved.popleft())

    def _resume(self, call: Call, node: Node) -> None:
        """What a call hung on has ended, one way or the other.

        Up to 2.15 a restore that hung has its request recorded then, without another look at the file: the coordinator
        finds it resident, and wedges the others of its compound.
        """
        call.blocked_on = None
        if call.verb is Verb.NONE:
            call.finish(errno.ENODATA if node.flags & Flags.RELEASED or node.gone else 0)
            return
        if call.verb is Verb.RESTORE:
            if node.in_flight:  # somebody was quicker
                self._block(call, node)
                return
            call.left.popleft()
            self._queue(node, Verb.RESTORE)
        self._go_on(call)

    def _go_on(self, call: Call) -> None:
        raise NotImplementedError

    # ---- space -------------------------------------------------------------------------------------------------

    def _reserve(self, node: Node) -> bool:
        """Take up room for a file's data, if there is any."""
        place = self.osts.place(node.size)
        if place is None:
            return False
        self._use_space(node, place)
        return True

    def _use_space(self, node: Node, place: int) -> None:
        node.on_osts = place, node.size
        self.osts.use(place, node.size)

    def _give_space(self, node: Node) -> None:
        if node.on_osts is None:
            return
        place, size = node.on_osts
        node.on_osts = None
        if self.spec.space_delay:
            self.osts.free_later(place, size, self.now + self.spec.space_delay)
        else:
            self.osts.use(place, -size)
