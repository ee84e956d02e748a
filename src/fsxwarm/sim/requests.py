"""What clients ask of the metadata servers: looks at files, and requests."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fsxwarm.model.hsm import IDLE, WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.faults import Faults
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.machinery import Machinery
from fsxwarm.sim.nodes import Node, Stage
from fsxwarm.sim.spec import WorldSpec

MOST_ITEMS: Final = 52
"""Items that one request can hold (MDS_MAXREQSIZE; measured on 2.15.8)."""

_FIRST_SEQUENCE: Final = 0x200000402
_TARGET_SEQUENCES: Final = 1 << 30
_OIDS: Final = 0x20000


def make_fid(mdt: int, number: int) -> Fid:
    """Make the FID of a metadata target's file `number`, counted from 1."""
    return Fid(_FIRST_SEQUENCE + mdt * _TARGET_SEQUENCES + number // _OIDS, number % _OIDS + 1)


class Requests(Machinery):
    """The servers' face to clients. See `World` for what it counts."""

    def __init__(self, spec: WorldSpec, faults: Faults | None = None) -> None:
        super().__init__(spec, faults)
        self.lost_data: list[Node] = []
        self.on_item: Callable[[Verb, Node, Caller], None] = lambda _verb, _node, _caller: None
        self._deal: dict[Verb, Callable[[Node, Call], int | None]] = {
            Verb.RESTORE: self._restore_one,
            Verb.RELEASE: self._release_one,
            Verb.CANCEL: self._cancel_one,
            Verb.ARCHIVE: self._archive_one,
            Verb.REMOVE: self._remove_one,
        }

    def mdt_of(self, fid: Fid) -> int:
        """Tell whose file a FID is: each metadata target has a range of sequences."""
        return min(max(0, fid.seq - _FIRST_SEQUENCE) // _TARGET_SEQUENCES, self.spec.mdts - 1)

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
            return IDLE
        match node.stage:
            case Stage.WAITING:
                return Action(node.verb)
            case Stage.SENT:
                return Action(node.verb, running=True)
            case Stage.WEDGED:
                return Action(node.verb, running=True, moved=WEDGED_MOVED)
            case _:
                moved = self.agents.report(node, self.now, self.spec.report_every)
                return Action(node.verb, running=True, moved=moved)

    def search_time(self, nodes: Iterable[Node], now: float, *, log: bool) -> float:
        """Book the metadata targets' search for some files, through the action log or the list of locks; seconds.

        The list of locks is searched up to 2.15, and for released files alone.
        """
        cost = self.spec.costs.per_queued
        if not cost or not (log or self.spec.duplicates_block):
            return 0.0
        done = now
        for node in nodes:
            if log or node.flags & Flags.RELEASED:
                coordinator = self._coordinator(node)
                done = max(done, coordinator.search(cost * len(coordinator), now))
        return done - now

    @property
    def starved(self) -> bool:
        """Whether blocked calls hold all threads of a metadata target."""
        return any(coordinator.held >= self.spec.mdt_threads for coordinator in self.coordinators)

    def admit(self, mdt: int, now: float) -> Call:
        """Wait for a thread of a metadata target: done at once, unless blocked calls hold them all."""
        self.advance(now)
        call = Call(Verb.NONE, [], ROOT)
        if self.coordinators[mdt].held < self.spec.mdt_threads:
            call.finish(0)
        else:
            self._starve(call, mdt)
        return call

    @property
    def restoring(self) -> int:
        """Requests queued or running in all."""
        return sum(len(coordinator) for coordinator in self.coordinators)

    @property
    def deepest(self) -> int:
        """The deepest queue that any metadata target ever had."""
        return max(coordinator.deepest for coordinator in self.coordinators)

    # ---- requests ----------------------------------------------------------------------------------------------

    def request(self, verb: Verb, fids: Sequence[Fid], caller: Caller, now: float) -> Call:
        """LL_IOC_HSM_REQUEST: restore, release, cancel, archive or remove. The call may hang: see `Call`.

        Each metadata target gets its own items, in their order, and stops at the first that it refuses; the others go
        on (lmv_iocontrol). A release is the client's doing: file after file, until one is refused.
        """
        self.advance(now)
        self.counts["requests"] += 1
        self.counts[f"{verb.value.lower()} requests"] += 1
        unique = list(dict.fromkeys(fids))
        call = Call(verb, [], caller)
        if len(unique) > MOST_ITEMS:
            call.finish(errno.E2BIG)
            return call
        nodes = [self.nodes.get(fid) or self._nobody(fid) for fid in unique]
        if verb is not Verb.RELEASE:
            nodes.sort(key=lambda node: node.mdt)
        call.left.extend(nodes)
        self._go_on(call)
        self._dispatch()
        return call

    def _nobody(self, fid: Fid) -> Node:
        """Stand in for a file that is not there."""
        nobody = Node(fid, 0, Flags(0), mdt=self.mdt_of(fid))
        nobody.gone = True
        return nobody

    def _go_on(self, call: Call) -> None:
        """Deal with a request's items in their order, until one blocks or none is left."""
        while call.left:
            node = call.left[0]
            if self._coordinator(node).held >= self.spec.mdt_threads:
                self._starve(call, node.mdt)
                return
            self.counts["items"] += 1
            self.on_item(call.verb, node, call.caller)
            problem = errno.ENOENT if node.gone else self._deal[call.verb](node, call)
            if problem is None:
                self._block(call, node)
                return
            call.left.popleft()
            if problem:
                call.refused = call.refused or problem
                self._skip(call, node.mdt)
            elif node.verb is call.verb:
                self._wake_behind(call, node.mdt)
        call.finish(call.refused)

    @staticmethod
    def _skip(call: Call, mdt: int) -> None:
        """After a refusal, leave the target's other items alone; a release ends altogether."""
        while call.left and (call.verb is Verb.RELEASE or call.left[0].mdt == mdt):
            call.left.popleft()

    def _wake_behind(self, call: Call, mdt: int) -> None:
        """Wake a coordinator behind the last of its items: a request that is refused before does not."""
        if not call.left or call.left[0].mdt != mdt:
            self.coordinators[mdt].woken = True

    def _starve(self, call: Call, mdt: int) -> None:
        self.counts["starved"] += 1
        self.coordinators[mdt].starved.append(call)

    def _shut(self, node: Node) -> bool:
        return self._coordinator(node).control is Control.SHUTDOWN

    def _restore_one(self, node: Node, call: Call) -> int | None:
        if self._shut(node):
            return errno.EAGAIN
        if not node.flags & (Flags.RELEASED | Flags.DIRTY):
            return 0
        if call.caller.uid and not self.spec.users_may_restore:
            return errno.EPERM
        if not node.flags.restorable:
            return errno.EPERM
        if node.in_flight:
            self.counts["duplicates"] += 1
            return None if self.spec.duplicates_block else 0
        self._queue(node, Verb.RESTORE)
        return 0

    def _release_one(self, node: Node, call: Call) -> int | None:
        if not _may_write(call.caller, node):
            return errno.EACCES
        if node.in_flight:
            return None
        if node.flags & Flags.RELEASED:
            return 0
        if not node.flags.releasable or node.unflushed or node.verb is not Verb.NONE:
            return errno.EPERM
        self._release(node)
        return 0

    def _release(self, node: Node) -> None:
        if node.archived != node.content:
            self.lost_data.append(node)
        node.flags |= Flags.RELEASED
        self.counts["released"] += 1
        self._give_space(node)
        self.on_data(node, False)

    def _cancel_one(self, node: Node, call: Call) -> int:
        if self._shut(node):
            return errno.EAGAIN
        if call.caller.uid:
            return errno.EPERM
        if node.verb is not Verb.NONE:
            self._cancel(node)
        return 0

    def _archive_one(self, node: Node, call: Call) -> int:
        if self._shut(node):
            return errno.EAGAIN
        if call.caller.uid:
            return errno.EPERM
        if node.verb is not Verb.NONE or node.flags & (Flags.ARCHIVED | Flags.DIRTY) == Flags.ARCHIVED:
            return 0
        if node.flags & (Flags.NOARCHIVE | Flags.RELEASED):
            return errno.EPERM
        self._queue(node, Verb.ARCHIVE)
        return 0

    def _remove_one(self, node: Node, call: Call) -> int:
        if self._shut(node):
            return errno.EAGAIN
        if call.caller.uid or node.flags & Flags.RELEASED:
            return errno.EPERM
        if node.verb is Verb.NONE and node.flags & Flags.EXISTS:
            self._queue(node, Verb.REMOVE)
        return 0

    def change(self, fid: Fid, set_flags: int, clear_flags: int, archive_id: int, now: float) -> None:
        """HSM_STATE_SET: OSError EINVAL for flags that do not go together (mdt_hsm_state_set)."""
        self.advance(now)
        node = self._node(fid)
        flags = Flags((node.flags | set_flags) & ~clear_flags)
        archived = bool(flags & Flags.ARCHIVED)
        dirty = bool(flags & Flags.DIRTY)
        if (
            (dirty and (not flags & Flags.EXISTS or flags & Flags.RELEASED))
            or (flags & Flags.RELEASED and not archived)
            or (flags & Flags.LOST and not archived)
        ):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        node.flags = flags
        if archive_id:
            node.archive_id = archive_id

    def _node(self, fid: Fid) -> Node:
        node = self.nodes.get(fid)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return node


def _may_write(caller: Caller, node: Node) -> bool:
    if caller.uid in {0, node.uid}:
        return True
    if node.gid in caller.gids:
        return bool(node.mode & 0o020)
    return bool(node.mode & 0o002)
