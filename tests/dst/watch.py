"""The ports of one client process with an observer in between: it notes what was seen and asked, and checks both."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from errno import ENOENT
from typing import TypeVar

from dst.ledger import Check, Ledger, Moment, key_of
from fsxwarm.model.entry import Entry, Key, Resident, Trouble
from fsxwarm.model.hsm import MAX_REQUEST, Action, Flags
from fsxwarm.model.mdt import LaneId, lane_of
from fsxwarm.ports.hsm import CallHungError, Hsm, Reply, Space
from fsxwarm.ports.tree import Batch, Filters, Place, Stat, Tree
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.nodes import Node

T = TypeVar("T")

FRESH = 2.0
_FORBIDDEN = (1, 13)


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer about one file: when it was asked for, when it came, what it said and what was true."""

    started: float
    at: float
    answer: Flags | Action | Trouble
    truth: Moment | None


class Process:
    """One run of fsxwarm: what it has seen and asked for. Dead, it hears and says nothing more."""

    def __init__(self, name: str, ledger: Ledger, *, orphans: bool, looks: bool = True) -> None:
        self.name = name
        self.looks = looks
        """Whether it has to look at a file's action before it asks for it for the first time. Where it need not, the
        servers skip duplicates: it may ask again for what was refused in company and cannot be seen."""
        self.ledger = ledger
        self.orphans = orphans
        self.alive = True
        self.states: dict[bytes, Seen] = {}
        self.actions: dict[bytes, Seen] = {}
        self.idle: dict[bytes, list[Moment]] = defaultdict(list)
        """Moments of late in which a look found the file released, and it had no action."""
        self.asked: dict[bytes, float] = {}
        self.asked_times: Counter[bytes] = Counter()
        self.ours: dict[Fid, int] = {}
        """The actions that our requests queued, by their numbers."""
        self.calling: dict[bytes, int] = {}
        """In calls that are not back yet."""
        self.hung: set[bytes] = set()
        """In a call that hung, be it over or not."""
        self.hanging: dict[bytes, Awaitable[Reply] | None] = {}
        """In a call that hangs, not seen in flight since; with what will give its answer."""
        self.refused_alone: set[bytes] = set()
        self.failed_looks: Counter[bytes] = Counter()
        self.refused: Counter[bytes] = Counter()
        self.given_up: set[Key] = set()
        """Settled while their restores went on: no longer waited for, and not counted."""
        self.decided: list[tuple[float, LaneId, int]] = []
        """Windows at which requests were decided on."""
        self.entries: dict[Key, Entry] = {}
        self.troubles = 0
        self.residents = 0
        self.resident_bytes = 0
        self.delivered: Counter[Key] = Counter()
        self.items: list[Entry | Resident] = []
        """What the walk found, in its order, each file once."""
        self.born = ledger.now

    async def breathe(self) -> None:
        """Wait for ever if the process is dead."""
        if not self.alive:
            await asyncio.get_running_loop().create_future()

    def in_flight(self, node: Node) -> bool:
        """Whether a file's restore goes on that we asked for, and wait for."""
        if not node.in_flight or not node.flags.released or key_of(node) in self.given_up:
            return False
        return self.ours.get(node.fid) == node.number

    def blind(self, path: bytes) -> bool:
        """Whether a file's action cannot be seen by this user."""
        seen = self.actions.get(path) or self.states.get(path)
        last = max((s for s in (self.actions.get(path), self.states.get(path)) if s), key=lambda s: s.at, default=seen)
        return last is not None and isinstance(last.answer, Trouble) and last.answer.errno in _FORBIDDEN

    def look(self, kind: dict[bytes, Seen], path: bytes, started: float, answer: Flags | Action | Trouble) -> None:
        ledger = self.ledger
        node = ledger.at(path)
        truth = None if node is None else ledger.moment(node)
        kind[path] = Seen(started, ledger.now, answer, truth)
        if isinstance(answer, Trouble):
            self.failed_looks[path] += 1
        elif isinstance(answer, Action) and answer.restoring:
            self.hanging.pop(path, None)
        elif truth is not None and truth.released and not truth.restoring:
            recent = self.idle[path]
            recent.append(truth)
            del recent[:-4]
        if node is not None and ledger.telling:
            ledger.tell(key_of(node), f"{self.name} sees {answer!r}")

    # ---- what it may ask ---------------------------------------------------------------------------------------

    def check_restore(self, paths: Sequence[bytes]) -> None:
        """Check a request for restores as it is being sent."""
        ledger, now = self.ledger, self.ledger.now
        ledger.must(0 < len(paths) <= MAX_REQUEST, Check.ASKS_RIGHTLY, f"{len(paths)} files in one request")
        nodes = [ledger.at(path) for path in paths]
        fids = [node.fid for node in nodes if node is not None]
        ledger.must(len(set(paths)) == len(paths), Check.ASKS_RIGHTLY, f"one file twice in a request: {paths}")
        for path, node in zip(paths, nodes, strict=True):
            ledger.must(path not in self.calling, Check.ASKS_RIGHTLY, f"{path!r} is being asked for already")
            if node is not None:
                ledger.tell(key_of(node), f"{self.name} asks for it, with {len(paths) - 1} others")
                ours = self.in_flight(node) and (self.looks or not self.blind(path))
                ledger.must(not ours, Check.ASKS_RIGHTLY, f"{path!r} is asked for while in flight for us")
            ended = self.hanging.get(path)
            over = path not in self.hanging or (isinstance(ended, asyncio.Future) and ended.done())
            ledger.must(over, Check.ASKS_RIGHTLY, f"{path!r} is asked for again while the call that asked for it hangs")
            if not self.blind(path) and (self.looks or self.asked_times[path]):
                self._check_look(path, node, now)
        self._check_window(fids, now)

    def _check_look(self, path: bytes, node: Node | None, now: float) -> None:
        ledger, seen = self.ledger, self.actions.get(path)
        if seen is None or not isinstance(seen.answer, Action):
            ledger.fail(Check.ASKS_RIGHTLY, f"{path!r} is asked for without a look at its action")
            return
        ledger.must(seen.answer.idle, Check.ASKS_RIGHTLY, f"{path!r} is asked for though {seen.answer} was seen")
        age = now - seen.started
        ledger.must(age <= FRESH + 1e-6, Check.ASKS_RIGHTLY, f"{path!r} is asked for by a look {age:.3f} s old")
        before = self.asked.get(path)
        fresh = before is None or seen.started >= before
        ledger.must(fresh, Check.ASKS_RIGHTLY, f"{path!r} is asked for again by the look before the last request")
        if node is not None and node.in_flight:
            since = seen.truth is None or seen.truth.number != node.number
            ledger.must(since, Check.ASKS_RIGHTLY, f"{path!r} is asked for, and was in flight when looked at")

    def _check_window(self, fids: Sequence[Fid], now: float) -> None:
        """Count per metadata target what is ours at FSx or on its way there."""
        ledger = self.ledger
        self.decided = [decision for decision in self.decided if decision[0] >= now - FRESH - 1.0]
        ours = {fid for fid in self.ours if (n := ledger.world.nodes.get(fid)) and self.in_flight(n)}
        ours |= {node.fid for path in self.calling if (node := ledger.at(path)) is not None}
        counts = Counter(
            lane_of(key_of(ledger.world.nodes[fid])) for fid in ours | set(fids) if fid in ledger.world.nodes
        )
        asked = {lane_of(key_of(ledger.world.nodes[fid])) for fid in fids if fid in ledger.world.nodes}
        for lane in asked:
            window = max((size for _, where, size in self.decided if where == lane), default=None)
            if window is not None and counts[lane] > window:
                there = [(fid, ledger.world.nodes[fid]) for fid in ours if fid in ledger.world.nodes]
                what = f"{counts[lane]} in flight at target {lane.mdt}, the window is {window}: {there}"
                ledger.fail(Check.ASKS_RIGHTLY, what)

    def check_release(self, paths: Sequence[bytes]) -> None:
        """Check a request for releases as it is being sent."""
        ledger = self.ledger
        ledger.must(0 < len(paths) <= MAX_REQUEST, Check.ASKS_RIGHTLY, f"{len(paths)} files in one request")
        for path in paths:
            state, action = self.states.get(path), self.actions.get(path)
            before = self.asked.get(path, -1.0)
            looked = state is not None and action is not None and min(state.started, action.started) >= before
            ledger.must(looked, Check.LOSES_NOTHING, f"{path!r} is released without a look")
            if state is None or action is None:
                return
            idle = isinstance(action.answer, Action) and action.answer.idle
            ledger.must(idle, Check.LOSES_NOTHING, f"{path!r} is released though {action.answer} was seen")
            good = isinstance(state.answer, Flags) and state.answer.releasable
            ledger.must(good, Check.LOSES_NOTHING, f"{path!r} is released though {state.answer!r} was seen")
            node = ledger.at(path)
            if node is not None:
                ledger.tell(key_of(node), f"{self.name} releases it")


class WatchedHsm:
    """The Hsm port of one process."""

    def __init__(self, inner: Hsm, process: Process) -> None:
        self._inner = inner
        self._process = process
        self._ledger = process.ledger

    @property
    def abandoned(self) -> int:
        return self._inner.abandoned

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        await self._process.breathe()
        started = self._now()
        try:
            answers = await self._inner.states(paths, keys)
        except CallHungError:
            self._process.failed_looks.update(paths)
            raise
        for path, answer in zip(paths, answers, strict=True):
            self._process.look(self._process.states, path, started, answer)
        return answers

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        await self._process.breathe()
        started = self._now()
        try:
            answers = await self._inner.actions(paths, keys)
        except CallHungError:
            self._process.failed_looks.update(paths)
            raise
        for path, answer in zip(paths, answers, strict=True):
            self._process.look(self._process.actions, path, started, answer)
        return answers

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        await self._process.breathe()
        return await self._inner.released(paths)

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        await self._process.breathe()
        self._process.check_restore(paths)
        return await self._call(self._inner.restore(paths, keys), paths)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        await self._process.breathe()
        self._process.check_release(paths)
        return await self._call(self._inner.release(paths, keys), paths)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        await self._process.breathe()
        for path in paths:
            node = self._ledger.at(path)
            if node is not None and node.in_flight:
                self._ledger.tell(key_of(node), f"{self._process.name} cancels it")
                seen = self._process.actions.get(path)
                ran = seen is not None and isinstance(seen.answer, Action) and seen.answer.running
                self._ledger.must(ran, Check.ASKS_RIGHTLY, f"{path!r} is cancelled, which was not seen running")
        return await self._inner.cancel(paths, keys)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        await self._process.breathe()
        return await self._inner.pin(paths, on=on)

    async def space(self, mount: bytes) -> Space | Trouble:
        await self._process.breathe()
        return await self._inner.space(mount)

    async def version(self) -> tuple[int, ...] | Trouble:
        await self._process.breathe()
        return await self._inner.version()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _call(self, call: Awaitable[Reply], paths: Sequence[bytes]) -> Reply:
        """Run a child that may outlive the process; note what it brought into flight."""
        process, sent = self._process, self._now()
        before = {path: node.number for path in paths if (node := self._ledger.at(path)) is not None}
        for path in paths:
            process.asked[path] = sent
            process.asked_times[path] += 1
            process.calling[path] = process.calling.get(path, 0) + 1
        child = asyncio.ensure_future(call)
        try:
            reply = await asyncio.shield(child)
        except asyncio.CancelledError:
            if process.alive or not process.orphans:
                child.cancel()
            child.add_done_callback(_unheard)
            raise
        except CallHungError as hung:
            process.hung.update(paths)
            process.hanging.update(dict.fromkeys(paths, hung.ended))
            raise
        finally:
            for path in paths:
                del process.calling[path]
                node = self._ledger.at(path)
                if node is not None and node.in_flight and node.number != before.get(path):
                    process.ours[node.fid] = node.number
        if reply.errno:
            process.refused.update(paths)
            if len(paths) == 1:
                process.refused_alone.add(paths[0])
        return reply


def _unheard(child: asyncio.Future[Reply]) -> None:
    """Nobody is left who could hear how a child ended, not even that it hangs."""
    if not child.cancelled():
        child.exception()


class WatchedTree:
    """The Tree port of one process."""

    def __init__(self, inner: Tree, process: Process) -> None:
        self._inner = inner
        self._process = process

    @property
    def abandoned(self) -> int:
        return self._inner.abandoned

    async def close(self) -> None:
        await self._inner.close()

    async def resolve(self, path: bytes) -> Place | Trouble:
        await self._process.breathe()
        return await self._inner.resolve(path)

    async def walk(self, root: Place, filters: Filters, *, whole: bool = False) -> AsyncIterator[Batch]:
        async for batch in self._inner.walk(root, filters, whole=whole):
            await self._process.breathe()
            self._note(batch)
            yield batch

    async def listed(
        self, paths: AsyncIterator[Sequence[bytes]], filters: Filters, *, whole: bool = False
    ) -> AsyncIterator[Batch]:
        async for batch in self._inner.listed(paths, filters, whole=whole):
            await self._process.breathe()
            self._note(batch)
            yield batch

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        await self._process.breathe()
        return await self._inner.stat(paths)

    def _note(self, batch: Batch) -> None:
        process = self._process
        process.troubles += sum(not (batch.folder and trouble.errno == ENOENT) for trouble in batch.troubles)
        for item in batch.items:
            if isinstance(item, Resident):
                process.residents += item.files
                process.resident_bytes += item.bytes
                process.items.append(item)
            else:
                process.delivered[item.key] += 1
                if process.delivered[item.key] == 1:
                    process.entries[item.key] = item
                    process.items.append(item)
