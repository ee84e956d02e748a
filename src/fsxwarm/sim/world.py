"""The servers of a simulated FSx for Lustre: flags, coordinators, copy agents and OSTs, as one discrete-event model.

Time is told, never asked: every method takes `now` (seconds) and first lets happen what was due by then.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from fsxwarm.model.hsm import WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.coordinator import Control, Coordinator
from fsxwarm.sim.faults import Fault, Faults
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.nodes import Node, Stage
from fsxwarm.sim.osts import Osts
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.transfers import Transfers

MOST_ITEMS: Final = 52
"""Items that one request can hold (MDS_MAXREQSIZE; measured on 2.15.8)."""

_FIRST_SEQUENCE: Final = 0x200000402
_TARGET_SEQUENCES: Final = 1 << 30
_MIB: Final = 1 << 20

_NO_FLAGS: Final = Flags(0)


class World:
    """All servers of one file system.

    `counts` has what was asked of them: `requests`, `items`, `state`, `action`, `released`, `duplicates` (items whose
    restore was in flight already: what no good client sends), `blocked` calls. `on_data` is told whenever a file's
    data comes or goes; `on_change` whenever the time of the next event may have changed.
    """

    def __init__(self, spec: WorldSpec, faults: Faults | None = None) -> None:
        self.spec = spec
        self.faults = Faults() if faults is None else faults
        self.now = 0.0
        self.nodes: dict[Fid, Node] = {}
        self.agents = spec.agents
        self.counts: Counter[str] = Counter()
        most = spec.agents if spec.max_requests is None else spec.max_requests
        self.coordinators = [Coordinator(mdt, most) for mdt in range(spec.mdts)]
        self.transfers = Transfers(spec.bandwidth, spec.latency)
        self.osts = Osts(spec.osts, spec.ost_size)
        self.on_data: Callable[[Node, bool], None] = lambda _node, _resident: None
        self.on_change: Callable[[], None] = lambda: None
        self._busy_agents = 0
        self._turn = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._oids = itertools.count(1)

    # ---- files -------------------------------------------------------------------------------------------------

    def create(
        self,
        size: int,
        flags: Flags = _NO_FLAGS,
        *,
        caller: Caller = ROOT,
        mode: int = 0o644,
        mdt: int | None = None,
        fid: Fid | None = None,
    ) -> Node:
        """Make a file; resident data takes up space. Without `mdt` the metadata targets take turns."""
        number = next(self._oids)
        mdt = (number - 1) % self.spec.mdts if mdt is None else mdt
        made = Fid(_FIRST_SEQUENCE + mdt * _TARGET_SEQUENCES + number // 0x20000, number % 0x20000 + 1)
        node = Node(fid or made, size, flags, mdt=mdt, uid=caller.uid, gid=min(caller.gids, default=0), mode=mode)
        self.nodes[node.fid] = node
        if not flags & Flags.RELEASED:
            self._take_space(node)
        return node

    def unlink(self, node: Node, now: float) -> None:
        """Remove a file. A restore that waits is not told; one that runs ends with nothing."""
        self.advance(now)
        node.gone = True
        self.nodes.pop(node.fid, None)
        if not node.flags & Flags.RELEASED:
            self._give_space(node)
        if node.verb is not Verb.NONE and node.stage in {Stage.STARTED, Stage.MOVING, Stage.FROZEN}:
            self._end(node, restored=False)
        self._run(now)

    def write(self, node: Node, size: int, now: float) -> Call:
        """Somebody writes into a file: a released one is restored first; then it is dirty, if it was archived."""
        self.advance(now)
        call = Call(Verb.NONE, [node], ROOT)

        def written(problem: int) -> None:
            if not problem:
                self._give_space(node)
                node.size = size
                self._take_space(node)
                if node.flags & Flags.ARCHIVED:
                    node.flags |= Flags.DIRTY

        call.when_done(written)
        self._read(call, node)
        self._run(now)
        return call

    def read(self, node: Node, now: float) -> Call:
        """Somebody reads a file: a released one is restored first; ENODATA when that fails."""
        self.advance(now)
        call = Call(Verb.NONE, [node], ROOT)
        self._read(call, node)
        self._run(now)
        return call

    def _read(self, call: Call, node: Node) -> None:
        if not node.flags & Flags.RELEASED:
            call.finish(0)
            return
        if not node.in_flight:
            if not node.flags.restorable or self._coordinator(node).control is Control.SHUTDOWN:
                call.finish(errno.ENODATA)
                return
            self._queue(node, Verb.RESTORE)
        self._block(call, node)

    # ---- looking -----------------------------------------------------------------------------------------------

    def state(self, fid: Fid, now: float) -> Node:
        """HSM_STATE_GET. FileNotFoundError for what is gone."""
        self.advance(now)
        self.counts["state"] += 1
        return self._node(fid)

    def action(self, fid: Fid, now: float) -> Action:
        """HSM_ACTION. FileNotFoundError for what is gone."""
        self.advance(now)
        self.counts["action"] += 1
        node = self._node(fid)
        if node.verb is Verb.NONE:
            return Action()
        match node.stage:
            case Stage.WAITING:
                return Action(node.verb)
            case Stage.WEDGED:
                return Action(node.verb, running=True, moved=WEDGED_MOVED)
            case _:
                return Action(node.verb, running=True, moved=self._reported(node))

    def _reported(self, node: Node) -> int:
        """Agents tell every few seconds how far they are, so that small files jump from nothing to done."""
        if node.stage is not Stage.FROZEN and self.now - node.started < self.spec.report_every:
            return 0
        return int(self.transfers.moved(node, self.now)) // _MIB * _MIB

    def queued(self, mdt: int) -> int:
        """Requests queued or running at a metadata target."""
        return len(self.coordinators[mdt])

    @property
    def restoring(self) -> int:
        """Restores queued or running in all."""
        return sum(len(coordinator) for coordinator in self.coordinators)

    @property
    def deepest(self) -> int:
        """The deepest queue that any metadata target ever had."""
        return max(coordinator.deepest for coordinator in self.coordinators)

    # ---- requests ----------------------------------------------------------------------------------------------

    def request(self, verb: Verb, fids: Sequence[Fid], caller: Caller, now: float) -> Call:
        """LL_IOC_HSM_REQUEST: restore, release, cancel or archive. The call may hang: see `Call`."""
        self.advance(now)
        self.counts["requests"] += 1
        self.counts[f"{verb.value.lower()} requests"] += 1
        unique = list(dict.fromkeys(fids))
        call = Call(verb, [], caller)
        if len(unique) > MOST_ITEMS:
            call.finish(errno.E2BIG)
            return call
        try:
            call.left.extend(self._node(fid) for fid in unique)
        except FileNotFoundError:
            if verb is not Verb.RESTORE:
                call.finish(errno.ENOENT)
                return call
            for fid in unique:
                if fid not in self.nodes:
                    break
                call.left.append(self.nodes[fid])
            self._go_on(call)
            call.finish(errno.ENOENT)
            return call
        self._go_on(call)
        self._run(now)
        return call

    def _go_on(self, call: Call) -> None:
        """Deal with a request's items in their order, until one is refused or blocks."""
        deal = {
            Verb.RESTORE: self._restore_one,
            Verb.RELEASE: self._release_one,
            Verb.CANCEL: self._cancel_one,
            Verb.ARCHIVE: self._archive_one,
        }[call.verb]
        while call.left:
            node = call.left[0]
            self.counts["items"] += 1
            problem = errno.ENOENT if node.gone else deal(node, call)
            if problem is None:
                return
            if problem:
                call.finish(problem)
                return
            call.left.popleft()
        call.finish(0)

    def _restore_one(self, node: Node, call: Call) -> int | None:
        if node.in_flight:
            self.counts["duplicates"] += 1
            if not self.spec.duplicates_block:
                return 0
            self._block(call, node)
            return None
        refused = self._refuses_restore(node, call.caller)
        if not refused and node.flags.restorable and node.verb is Verb.NONE:
            self._queue(node, Verb.RESTORE)
        return refused

    def _refuses_restore(self, node: Node, caller: Caller) -> int:
        if self._coordinator(node).control is Control.SHUTDOWN:
            return errno.EAGAIN
        dirty = Flags.DIRTY | Flags.ARCHIVED
        allowed = not caller.uid or self.spec.users_may_restore
        if not allowed or node.flags & dirty == dirty or (node.flags.released and not node.flags.restorable):
            return errno.EPERM
        return 0

    def _release_one(self, node: Node, call: Call) -> int | None:
        if node.in_flight and self.spec.duplicates_block:
            self._block(call, node)
            return None
        if not _may_write(call.caller, node):
            return errno.EACCES
        if node.flags & Flags.RELEASED:
            return 0
        if not node.flags.releasable or node.unflushed or node.verb is not Verb.NONE:
            return errno.EPERM
        node.flags |= Flags.RELEASED
        self.counts["released"] += 1
        self._give_space(node)
        self.on_data(node, False)
        return 0

    def _cancel_one(self, node: Node, call: Call) -> int:
        if call.caller.uid:
            return errno.EPERM
        if node.verb is Verb.NONE:
            return 0
        coordinator = self._coordinator(node)
        if node.stage is Stage.WEDGED or coordinator.starts(self.now):
            self._end(node, restored=False)
        else:  # heard when the coordinator goes on
            node.cancelled = True
        return 0

    def _archive_one(self, node: Node, call: Call) -> int:
        if not _may_write(call.caller, node):
            return errno.EPERM
        if node.flags & Flags.RELEASED or node.verb is not Verb.NONE:
            return 0
        if node.flags & Flags.ARCHIVED and not node.flags & Flags.DIRTY:
            return 0
        if node.flags & Flags.NOARCHIVE:
            return errno.EPERM
        self._queue(node, Verb.ARCHIVE)
        return 0

    def change(self, fid: Fid, set_flags: int, clear_flags: int, archive_id: int, now: float) -> None:
        """HSM_STATE_SET: OSError EINVAL for flags that do not go together (mdt_hsm_state_set)."""
        self.advance(now)
        node = self._node(fid)
        flags = Flags((node.flags | set_flags) & ~clear_flags)
        archived = bool(flags & Flags.ARCHIVED)
        if (flags & (Flags.DIRTY | Flags.LOST) and not archived) or (flags & Flags.DIRTY and flags & Flags.RELEASED):
            raise OSError(errno.EINVAL, "Invalid argument")
        node.flags = flags
        if archive_id:
            node.archive_id = archive_id

    # ---- what administrators and accidents do ------------------------------------------------------------------

    def set_control(self, control: Control, now: float) -> None:
        """Set `hsm_control` on all metadata targets."""
        self.advance(now)
        for coordinator in self.coordinators:
            coordinator.control = control
        self._run(now)

    def stop_coordinators(self, seconds: float, now: float) -> None:
        """No coordinator starts a request for a while."""
        self.advance(now)
        for coordinator in self.coordinators:
            coordinator.stopped_until = now + seconds
        self._at(now + seconds, lambda: None)
        self._run(now)

    def set_agents(self, agents: int, now: float) -> None:
        """Change the number of agents; transfers under way go on."""
        self.advance(now)
        self.agents = agents
        for coordinator in self.coordinators:
            if self.spec.max_requests is None:
                coordinator.max_requests = agents
        self._run(now)

    def kill_agents(self, share: float, now: float) -> None:
        """A share of the running transfers loses its agent: their bytes freeze. New agents take new requests."""
        self.advance(now)
        running = [n for c in self.coordinators for n in c.running if n.stage in {Stage.STARTED, Stage.MOVING}]
        running.sort(key=lambda node: node.fid)
        for node in running[: math.ceil(len(running) * share)]:
            self.transfers.freeze(node, now)
            self._busy_agents -= 1
            self._expire_later(node)
        self._run(now)

    def freeze_agents(self, now: float) -> None:
        """Stop all agents (SIGSTOP): nothing moves, nothing new is begun, cancelling is not heard."""
        self.advance(now)
        for coordinator in self.coordinators:
            coordinator.stopped_until = math.inf
            for node in coordinator.running:
                if node.stage in {Stage.STARTED, Stage.MOVING}:
                    self.transfers.freeze(node, now)
                    self._busy_agents -= 1
        self._changed()

    def thaw_agents(self, now: float) -> None:
        """Let stopped agents go on: what they had taken on comes to its end, cancelled or not."""
        self.advance(now)
        for coordinator in self.coordinators:
            coordinator.stopped_until = now
            for node in sorted(coordinator.running, key=lambda node: node.fid):
                if node.stage is Stage.FROZEN:
                    self.transfers.start(node, now)
                    self._busy_agents += 1
        self._run(now)

    # ---- time --------------------------------------------------------------------------------------------------

    def next_event(self) -> float | None:
        """When something happens by itself next."""
        times = [self._timers[0][0]] if self._timers else []
        transfer = self.transfers.next_event()
        if transfer is not None:
            times.append(transfer)
        return min(times, default=None)

    def advance(self, now: float) -> None:
        """Let everything happen that is due by `now`, in its order."""
        while (when := self.next_event()) is not None and when <= now:
            self.now = max(self.now, when)
            self._happen(self.now)
        self.now = max(self.now, now)
        self.osts.settle(self.now)

    def _happen(self, now: float) -> None:
        begins, ends = self.transfers.take_due(now)
        for node in ends:
            self._arrived(node)
        for node in begins:
            self._begin(node)
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()
        self._run(now)

    def _at(self, when: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (when, next(self._count), then))
        self._changed()

    def _changed(self) -> None:
        self.on_change()

    # ---- the life of an action ---------------------------------------------------------------------------------

    def _node(self, fid: Fid) -> Node:
        node = self.nodes.get(fid)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return node

    def _coordinator(self, node: Node) -> Coordinator:
        return self.coordinators[node.mdt]

    def _queue(self, node: Node, verb: Verb) -> None:
        node.verb = verb
        node.asked = self.now
        node.cancelled = False
        if verb is Verb.ARCHIVE:
            node.flags |= Flags.EXISTS
            node.archive_id = node.archive_id or 1
        coordinator = self._coordinator(node)
        coordinator.add(node)
        if self.spec.loop and len(coordinator.waiting) == 1:
            self._at((math.floor(self.now / self.spec.loop) + 1) * self.spec.loop, lambda: None)

    def _run(self, now: float) -> None:
        """Let coordinators send compounds to free agents, each target in turn."""
        if self.spec.loop and now % self.spec.loop > 1e-9 * max(1.0, now):
            self._changed()
            return
        idle = 0
        while idle < len(self.coordinators) and self._busy_agents < self.agents:
            coordinator = self.coordinators[self._turn % len(self.coordinators)]
            self._turn += 1
            free = self.agents - self._busy_agents
            sent = coordinator.compound(free if self.spec.loop else 1) if coordinator.starts(now) else []
            idle = 0 if sent else idle + 1
            self._send(sent)
        if self.spec.loop and any(coordinator.waiting for coordinator in self.coordinators):
            self._at((math.floor(now / self.spec.loop + 1e-9) + 1) * self.spec.loop, lambda: None)
        self._changed()

    def _send(self, compound: list[Node]) -> None:
        """Send a compound to an agent: one bad file in it, and the others are never sent (fixed in 2.17)."""
        bad = [n for n in compound if n.verb is Verb.RESTORE and (n.gone or not n.flags & Flags.RELEASED)]
        for node in compound:
            if node in bad or node.cancelled:
                self._end(node, restored=False)
            elif bad and self.spec.compounds_wedge:
                self._wedge(node)
            else:
                self._start(node)

    def _start(self, node: Node) -> None:
        fault = self.faults.on_restore(node) if node.verb is Verb.RESTORE else None
        node.tries += 1
        node.failure = None
        if fault is Fault.WEDGED:
            self._wedge(node)
            return
        self._busy_agents += 1
        self.transfers.start(node, self.now)
        if fault is Fault.STUCK:
            self.transfers.freeze(node, self.now)
            self._busy_agents -= 1
            self._expire_later(node)
        elif fault is not None:
            node.failure = fault.value

    def _begin(self, node: Node) -> None:
        """The archive has answered."""
        if node.failure is None and node.verb is Verb.RESTORE and self.osts.place(node.size) is None:
            node.failure = Fault.DISK_FULL.value
        if node.failure is not None or node.gone:
            self._end(node, restored=False)
        else:
            self.transfers.move(node)

    def _arrived(self, node: Node) -> None:
        node.stage = Stage.STARTED  # its transfer is over and must not be counted again
        self._end(node, restored=True)

    def _wedge(self, node: Node) -> None:
        node.stage = Stage.WEDGED
        node.started = self.now
        self._expire_later(node)

    def _expire_later(self, node: Node) -> None:
        started = node.started

        def expire() -> None:
            if node.verb is not Verb.NONE and node.started == started and node.stage in {Stage.WEDGED, Stage.FROZEN}:
                node.failure = "timed out"
                self._end(node, restored=False)

        self._at(node.started + self.spec.request_timeout, expire)

    def _end(self, node: Node, *, restored: bool) -> None:
        """An action is over: the coordinator forgets it, data and flags change, those who hang on it go on."""
        verb = node.verb
        self._coordinator(node).remove(node)
        if node.stage in {Stage.STARTED, Stage.MOVING}:
            self.transfers.drop(node, self.now)
            self._busy_agents -= 1
        node.verb = Verb.NONE
        node.stage = Stage.WAITING
        if restored and not node.gone:
            if verb is Verb.RESTORE:
                node.flags &= ~Flags.RELEASED
                self._take_space(node)
                self.counts["restored"] += 1
                self.on_data(node, True)
            elif verb is Verb.ARCHIVE:
                node.flags = (node.flags | Flags.ARCHIVED) & ~(Flags.DIRTY | Flags.LOST)
        waiters, node.waiters = node.waiters, []
        for call in waiters:
            self._resume(call, node)

    def _block(self, call: Call, node: Node) -> None:
        self.counts["blocked"] += 1
        call.blocked_on = node
        node.waiters.append(call)

    def _resume(self, call: Call, node: Node) -> None:
        """A restore that a call hung on has ended, one way or the other."""
        call.blocked_on = None
        if call.verb is Verb.NONE:
            call.finish(errno.ENODATA if node.flags & Flags.RELEASED or node.gone else 0)
        else:
            self._go_on(call)

    # ---- space -------------------------------------------------------------------------------------------------

    def _take_space(self, node: Node) -> None:
        place = self.osts.place(node.size)
        node.on_osts = 0 if place is None else place
        self.osts.use(node.on_osts, node.size)

    def _give_space(self, node: Node) -> None:
        if self.spec.space_delay:
            self.osts.free_later(node.on_osts, node.size, self.now + self.spec.space_delay)
        else:
            self.osts.use(node.on_osts, -node.size)

    def validate(self) -> None:
        """Raise AssertionError when the model contradicts itself; for tests."""
        for coordinator in self.coordinators:
            for node in (*coordinator.waiting, *coordinator.running):
                if node.verb is Verb.NONE or node.mdt != coordinator.mdt:
                    raise AssertionError(f"{node} is queued without an action")
        busy = sum(n.stage in {Stage.STARTED, Stage.MOVING} for c in self.coordinators for n in c.running)
        if busy != self._busy_agents:
            raise AssertionError(f"{busy} agents busy, {self._busy_agents} counted")


def _may_write(caller: Caller, node: Node) -> bool:
    if caller.uid in {0, node.uid}:
        return True
    if node.gid in caller.gids:
        return bool(node.mode & 0o020)
    return bool(node.mode & 0o002)
