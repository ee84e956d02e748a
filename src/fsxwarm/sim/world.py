"""The servers of a simulated FSx for Lustre as clients, administrators and accidents meet them.

Time is told, never asked: every method takes `now` (seconds) and first lets happen what was due by then.
"""

from __future__ import annotations

import errno
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Final

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.faults import Faults
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.nodes import Node, Stage
from fsxwarm.sim.requests import Requests, make_fid
from fsxwarm.sim.spec import WorldSpec

_NO_FLAGS: Final = Flags(0)


class World(Requests):
    """All servers of one file system. Nothing in it is left to chance.

    `counts` has what was asked of them: `requests`, `<verb> requests`, `items`, `state`, `action` (by the ports also
    `opens`, `getattr` and `<kind> calls`), `released`, `restored`, `failed`, `blocked` (calls), `starved` (calls that
    found no thread) and `duplicates`: items whose restore was in flight already, which no good client sends.
    `on_item` hears of every item that the servers come to.
    `lost_data` holds the files that were released although the archive did not have their data.
    """

    def __init__(self, spec: WorldSpec, faults: Faults | None = None) -> None:
        super().__init__(spec, faults)
        self._oids = itertools.count(1)

    # ---- files, and what others do to them ---------------------------------------------------------------------

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
        """Make a file; resident data takes up space.

        `fid` tells the metadata target; without it `mdt` does, without both they take turns.
        """
        if fid is None:
            number = next(self._oids)
            fid = make_fid((number - 1) % self.spec.mdts if mdt is None else mdt, number)
        node = Node(fid, size, flags, mdt=self.mdt_of(fid), uid=caller.uid, gid=min(caller.gids, default=0), mode=mode)
        self.nodes[fid] = node
        if not flags & Flags.RELEASED:
            self._take_space(node)
        return node

    def unlink(self, node: Node, now: float) -> None:
        """Remove a file. Neither coordinator nor agent is told: a restore of it fails when its turn or end comes."""
        self.advance(now)
        node.gone = True
        self.nodes.pop(node.fid, None)
        if not node.flags & Flags.RELEASED:
            self._give_space(node)
        self._dispatch()

    def read(self, node: Node, now: float) -> Call:
        """Somebody reads a file: a released one is restored first; ENODATA when that fails."""
        return self._touch(node, now, lambda: None)

    def write(self, node: Node, size: int, now: float) -> Call:
        """Somebody writes into a file: a released one is restored first; then it is dirty, if it was archived."""

        def written() -> None:
            self._give_space(node)
            node.size = size
            self._take_space(node)
            node.content += 1
            if node.flags & Flags.EXISTS:
                node.flags |= Flags.DIRTY

        return self._touch(node, now, written)

    def chmod(self, node: Node, mode: int, now: float) -> Call:
        """Somebody changes a file's mode, which waits for a restore that is queued or running, and starts none."""
        self.advance(now)
        call = Call(Verb.NONE, [node], ROOT)

        def changed(_: int) -> None:
            node.mode = mode

        call.when_done(changed)
        if node.in_flight:
            self._block(call, node)
        else:
            call.finish(0)
        return call

    def _touch(self, node: Node, now: float, then: Callable[[], None]) -> Call:
        self.advance(now)
        call = Call(Verb.NONE, [node], ROOT)
        call.when_done(lambda problem: None if problem else then())
        if not node.flags & Flags.RELEASED:
            call.finish(0)
        elif node.in_flight:
            self._block(call, node)
        elif not node.flags.restorable or self._coordinator(node).control is Control.SHUTDOWN:
            call.finish(errno.ENODATA)
        else:
            self._queue(node, Verb.RESTORE)
            self._coordinator(node).woken = True
            self._block(call, node)
        self._dispatch()
        return call

    def release_task(self, nodes: Iterable[Node], now: float) -> int:
        """A data repository task releases what may be released and is not in use; returns how many files."""
        self.advance(now)
        released = 0
        for node in nodes:
            idle = node.verb is Verb.NONE and not node.unflushed and not node.gone
            if idle and node.flags.releasable:
                self._release(node)
                released += 1
        self.on_change()
        return released

    def reimport(self, node: Node, size: int, now: float) -> None:
        """The object changed in S3 (AutoImport CHANGED): a clean file takes its size and turns cold."""
        self.advance(now)
        if node.verb is Verb.NONE and node.flags.releasable:
            self._release(node)
        if node.verb is Verb.NONE and node.flags.restorable:
            node.size = size

    # ---- what administrators and accidents do ------------------------------------------------------------------

    def set_control(self, control: Control, now: float) -> None:
        """Set `hsm_control` on all metadata targets."""
        self.advance(now)
        for coordinator in self.coordinators:
            coordinator.control = control
            coordinator.woken = True
        self._dispatch()

    def stop_coordinators(self, seconds: float, now: float) -> None:
        """No coordinator starts a request for a while."""
        self.advance(now)

        def wake() -> None:
            for coordinator in self.coordinators:
                coordinator.woken = True

        for coordinator in self.coordinators:
            coordinator.stopped_until = now + seconds
        self.at(now + seconds, wake)

    def set_agents(self, count: int, now: float) -> None:
        """Change how many agents there are; transfers under way go on. With none, requests wait."""
        self.advance(now)
        self.agents.count = count
        for coordinator in self.coordinators:
            if self.spec.max_requests is None:
                coordinator.max_requests = count
            coordinator.woken = True
        self._dispatch()

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Change how many bytes per second all agents get through together."""
        self.advance(now)
        self.agents.set_bandwidth(bandwidth, now)
        self.on_change()

    def kill_agents(self, share: float, now: float) -> None:
        """A share (0 to 1) of the busy agents dies: their files' bytes freeze. New agents take on new requests."""
        self.advance(now)
        busy = [n for c in self.coordinators for n in c.running if n.stage in {Stage.MOVING, Stage.SETTLING}]
        busy.sort(key=lambda node: node.number)
        for node in busy[: math.ceil(len(busy) * share)]:
            self.agents.freeze(node, now)
            self._expire_later(node)
        self._dispatch()

    def freeze_agents(self, now: float) -> None:
        """Stop all agents (SIGSTOP): nothing moves, nothing is begun, cancelling is not heard."""
        self.advance(now)
        self.agents.pause(now)
        self.on_change()

    def thaw_agents(self, now: float) -> None:
        """Let stopped agents go on: what they had taken on comes to its end, cancelled meanwhile or not."""
        self.advance(now)
        self.agents.resume(now)
        self._cancelled = [
            (node, number) for node, number in self._cancelled if node.stage not in {Stage.MOVING, Stage.SETTLING}
        ]
        self._dispatch()

    # ---- for tests ---------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise AssertionError when the model contradicts itself. Looks at every file."""
        running: set[Stage] = {Stage.MOVING, Stage.SETTLING}
        queued = 0
        for coordinator in self.coordinators:
            for node in coordinator.waiting:
                _check(node.stage is Stage.WAITING, f"{node} waits")
            for node in coordinator.running:
                _check(node.stage is not Stage.WAITING, f"{node} runs")
            for node in (*coordinator.waiting, *coordinator.running):
                _check(node.verb is not Verb.NONE and node.mdt == coordinator.mdt, f"{node} is queued")
            _check(len(set(coordinator.waiting)) == len(coordinator.waiting), "a file is queued twice")
            queued += len(coordinator)
        nodes = self.nodes.values()
        busy = sum(node.stage in running for c in self.coordinators for node in c.running)
        _check(busy == self.agents.busy, f"{busy} agents busy, {self.agents.busy} counted")
        _check(sum(n.verb is not Verb.NONE for n in nodes) <= queued, "an action is in no queue")
        for node in nodes:
            transferred = node.verb is Verb.RESTORE and node.stage in running
            _check(not transferred or node.flags.released, f"{node} is restored although it is there")
            _check(node.flags.released or node.on_osts is not None, f"{node} has no data anywhere")
            _check(not node.waiters or node.verb is not Verb.NONE, f"calls hang on {node} for nothing")
        _check(all(ost.used >= 0 for ost in self.osts.all), "less than nothing lies on an OST")
        _check(not self.lost_data, f"released without a copy: {self.lost_data}")

    def _take_space(self, node: Node) -> None:
        """Put data somewhere, even where there is no room: it is there."""
        if not self._reserve(node):
            self._use_space(node, self.osts.emptiest)


def _check(fact: bool, words: str) -> None:  # noqa: FBT001 - an assertion
    if not fact:
        raise AssertionError(words)
