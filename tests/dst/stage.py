"""Plays a plan: the real engine, over simulated servers, on a virtual clock, with everything that goes wrong."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from dst.hearing import CheckedWarming, Hearing
from dst.ledger import BrokenCheckError, Check, Ledger, key_of
from dst.outsiders import Outsiders
from dst.plan import STUCK, USER, BadCalls, Command, Plan
from dst.watch import Process, WatchedHsm, WatchedTree
from fsxwarm.engine.pin import Pinned, pin_all
from fsxwarm.engine.release import Releaser, release_all
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.status import Survey
from fsxwarm.engine.warm import Warmer
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Key
from fsxwarm.model.hsm import Flags
from fsxwarm.sim import vloop
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.faults import CallFault, Fault, Faults
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.world import World

ENDS_WITHIN = 1.0
"""Seconds in which an interrupted command must have ended."""
SPINS = 20_000
"""Turns of the loop in which time must have passed."""


@dataclass(slots=True)
class Played:
    """What came of a plan: the promise that was broken, the state and outcome of each file, its story."""

    plan: Plan
    broken: BaseException | None = None
    lasted: float = 0.0
    flags: dict[bytes, Flags] = field(default_factory=dict)
    outcomes: list[dict[bytes, str]] = field(default_factory=list)
    stories: dict[bytes, list[tuple[float, str]]] = field(default_factory=dict)


def play(plan: Plan, *, story: bool = False) -> Played:
    """Play a plan and check it; with crashes and a quiet plan, hold it against the same one without them."""
    played = Played(plan)
    try:
        vloop.run(_Stage(plan, played, story=story).play(), spins=SPINS)
        if plan.quiet and any(command.crashes for command in plan.commands):
            calm = Played(plan)
            vloop.run(_Stage(plan.without_crashes(), calm, story=False).play(), spins=SPINS)
            _same(played, calm)
    except Exception as broken:  # noqa: BLE001 - whatever goes wrong is what the simulation looks for
        played.broken = broken
    return played


def _same(crashed: Played, calm: Played) -> None:
    if crashed.flags != calm.flags:
        other = {path for path in calm.flags if crashed.flags.get(path) != calm.flags[path]}
        raise BrokenCheckError(Check.SURVIVES_CRASHES, f"other flags without the crash: {other}", crashed.lasted)
    for mine, theirs in zip(crashed.outcomes, calm.outcomes, strict=True):
        other = {path for path in mine.keys() | theirs.keys() if mine.get(path, "warm") != theirs.get(path, "warm")}
        if other:
            words = [(path, mine.get(path), theirs.get(path)) for path in other]
            raise BrokenCheckError(Check.SURVIVES_CRASHES, f"other outcomes without the crash: {words}", crashed.lasted)


def bound(plan: Plan) -> float:
    """The time by which everything must have settled, worked out from what the plan lets go wrong."""
    spec, count = plan.spec, len(plan.files)
    agents = min([spec.agents, *(int(deed.number) for deed in plan.deeds if deed.what == "set agents" and deed.number)])
    slots = min(agents, spec.max_requests or agents)
    rounds = -(-count // slots)
    once = plan.bytes / spec.bandwidth + rounds * (spec.latency + spec.loop) + spec.loop
    stuck = any(bad.fault in STUCK for bad in plan.bad_files) or bool(plan.deeds)
    if stuck:
        once += rounds * spec.request_timeout
    policies = [command.policy for command in plan.commands if command.what == "preload"]
    policy = max(policies, key=lambda policy: policy.cap + policy.limbo)
    tries = policy.attempts + policy.cures * stuck
    each = (
        once + 1.5 * policy.cap + policy.limbo * bool(plan.bad_calls) + 60.0 + 5 * plan.deadline * bool(plan.bad_calls)
    )
    return plan.faults_end + 10.0 + 20.0 * count * spec.costs.process + tries * each + policy.give_up * stuck


class _Stage:
    """One play."""

    def __init__(self, plan: Plan, played: Played, *, story: bool) -> None:
        self._plan = plan
        self._played = played
        self._story = story

    async def play(self) -> None:
        plan = self._plan
        world = World(plan.spec, self._faults())
        self._clockwork = Clockwork(world)
        self._names = VirtualNamespace(world)
        self._ledger = Ledger(world, self._names, self._clockwork.now, story=self._story)
        self._outsiders = Outsiders(self._ledger, self._names)
        self._nodes: dict[bytes, Node] = {}
        self._hearings: dict[int, Hearing] = {}
        self._make_files()
        limit = bound(plan)
        self._played.outcomes = [{} for _ in plan.commands]
        try:
            async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
                group.create_task(self._outsiders.act(plan.deeds))
                for number, command in enumerate(plan.commands):
                    group.create_task(self._command(number, command), name=f"{command.what} {number}")
        except TimeoutError:
            self._note_end()
            self._ledger.fail(Check.ENDS_IN_TIME, f"not settled after {limit:.0f} s: {self._unsettled()}")
        except BaseExceptionGroup as group_error:
            self._note_end()
            raise self._ledger.broken or _first(group_error) from None
        await self._quiet_down(limit)
        await self._final_survey()
        self._ledger.must(not world.lost_data, Check.LOSES_NOTHING, f"data was lost: {world.lost_data}")
        self._note_end()
        if self._ledger.broken is not None:
            raise self._ledger.broken

    def _unsettled(self) -> list[bytes]:
        return [path for hearing in self._hearings.values() for path in hearing.unsettled()]

    # ---- the scene ---------------------------------------------------------------------------------------------

    def _make_files(self) -> None:
        for file in self._plan.files:
            self._names.make_folder(file.path.rpartition(b"/")[0])
            owner = Caller(file.uid, frozenset({file.uid}))
            made = self._names.make_file(file.path, file.size, file.flags, caller=owner, mode=file.mode)
            self._ledger.enter(made.node)
            self._nodes[file.path] = made.node
            for link in file.links:
                self._names.make_folder(link.rpartition(b"/")[0])
                self._names.link(file.path, link)
        for target, path in self._plan.symlinks:
            self._names.make_folder(path.rpartition(b"/")[0])
            self._names.symlink(target, path)
        for command in self._plan.commands:
            for path in command.paths:
                if path not in self._nodes:
                    self._names.make_folder(path)

    def _faults(self) -> Faults:
        faults = Faults()
        chance = random.Random(self._plan.seed + 1)
        for bad in self._plan.bad_files:
            faults.restore.append(self._bad_file(bad.path, bad.fault, bad.tries))
        for calls in self._plan.bad_calls:
            faults.call.append(_bad_calls(calls, chance))
        return faults

    def _bad_file(self, path: bytes, fault: Fault, tries: int) -> Callable[[Node, int], Fault | None]:
        return lambda node, tried: fault if node is self._nodes.get(path) and tried < tries else None

    # ---- commands ----------------------------------------------------------------------------------------------

    async def _command(self, number: int, command: Command) -> None:
        await asyncio.sleep(command.at)
        crashes = [at for at in command.crashes if at > command.at]
        life = 0
        while True:
            life += 1
            looks = self._plan.spec.duplicates_block or not command.policy.skip_duplicates
            name = f"{command.what} {number}.{life}"
            process = Process(name, self._ledger, orphans=command.orphans, looks=looks)
            task = asyncio.create_task(self._run(number, command, process))
            if not crashes:
                await self._to_the_end(command, task, process)
                return
            await asyncio.wait({task}, timeout=max(0.0, crashes.pop(0) - self._ledger.now))
            if task.done():
                await task
                return
            await _kill(task, process)
            await asyncio.sleep(command.restart)

    async def _to_the_end(self, command: Command, task: asyncio.Task[None], process: Process) -> None:
        try:
            if command.interrupt is not None:
                await asyncio.wait({task}, timeout=command.interrupt)
                if not task.done():
                    task.cancel()
                    await asyncio.wait({task}, timeout=ENDS_WITHIN)
                    ended = task.done()
                    self._ledger.must(ended, Check.ENDS_IN_TIME, f"{process.name} goes on after being interrupted")
            await task
        finally:
            if not task.done():
                await _kill(task, process)

    async def _run(self, number: int, command: Command, process: Process) -> None:
        caller = ROOT if command.root else Caller(USER, frozenset({USER}))
        hsm = WatchedHsm(SimHsm(self._clockwork, self._names, caller, deadline=self._plan.deadline), process)
        tree = WatchedTree(SimTree(self._clockwork, self._names, caller, deadline=self._plan.deadline), process)
        try:
            match command.what:
                case "preload":
                    await self._preload(number, command, process, Selection(tree, command.paths), hsm, tree)
                case "release":
                    await self._release(Selection(tree, command.paths, whole=True), process, hsm, tree)
                case "pin" | "unpin":
                    await self._pin(Selection(tree, command.paths, whole=True), process, hsm, on=command.what == "pin")
                case "status":
                    selection = Selection(tree, command.paths, whole=True)
                    await Survey(hsm, selection, flags=True).run()
        except FsxwarmError as error:
            gone = error.kind is Kind.NO_SUCH_PATH
            refused = error.kind is Kind.NO_PERMISSION and not command.root
            if process.alive and not (gone or refused):
                self._ledger.fail(Check.SETTLES, f"{process.name} gave up: {error}")

    async def _preload(
        self, number: int, command: Command, process: Process, selection: Selection, hsm: WatchedHsm, tree: WatchedTree
    ) -> None:
        hearing = Hearing(self._plan, command, process)
        self._hearings[number] = hearing
        warmer = Warmer(tree, hsm, selection, command.policy, command.wish, hearing)
        warmer.machine = CheckedWarming(command.policy, self._ledger.now, process)
        status = await warmer.run()
        if not process.alive:
            return
        hearing.check_end(warmer, status)
        outcomes = self._played.outcomes[number]
        for finish in hearing.finished.values():
            word = "warm" if finish.outcome.warm else f"{finish.outcome}: {finish.reason}"
            outcomes[finish.entry.path] = word

    async def _release(self, selection: Selection, process: Process, hsm: WatchedHsm, tree: WatchedTree) -> None:
        result = await release_all(Releaser(tree, hsm), selection)
        counted = result.released.files + result.already.files + result.recent.files + result.vanished
        counted += sum(left.tally.files for left in result.left.values())
        counted += result.troubles.count - process.troubles  # without the walk's
        found = len(process.delivered)
        self._ledger.must(counted == found, Check.SETTLES, f"{process.name} counted {counted} of {found} files")

    async def _pin(self, selection: Selection, process: Process, hsm: WatchedHsm, *, on: bool) -> None:
        result = Pinned(on)
        await pin_all(hsm, selection, result)
        counted = result.done.files + result.failed.count + result.vanished
        found = len(process.delivered)
        self._ledger.must(counted == found, Check.SETTLES, f"{process.name} counted {counted} of {found} files")

    # ---- the end -----------------------------------------------------------------------------------------------

    async def _quiet_down(self, limit: float) -> None:
        """Let go on what goes on at FSx by itself."""
        until = max(limit, self._ledger.now) + self._plan.spec.request_timeout * (len(self._plan.files) + 1)
        while self._ledger.world.restoring and self._ledger.now < until:  # noqa: ASYNC110 - virtual time is cheap
            await asyncio.sleep(5.0)

    async def _final_survey(self) -> None:
        """What a status says now that nothing changes any more must be the truth."""
        self._ledger.world.faults.call.clear()
        process = Process("final status", self._ledger, orphans=False)
        hsm = WatchedHsm(SimHsm(self._clockwork, self._names), process)
        tree = WatchedTree(SimTree(self._clockwork, self._names), process)
        status = await Survey(hsm, Selection(tree, [b"/fsx"], whole=True), flags=True).run()
        nodes = {key_of(node): node for path in self._names.walk() if (node := self._ledger.at(path)) is not None}
        for released, said in ((True, status.all.released), (False, status.all.resident)):
            sizes = [node.size for node in nodes.values() if node.flags.released is released]
            same = (said.files, said.bytes) == (len(sizes), sum(sizes))
            self._ledger.must(
                same, Check.SETTLES, f"status counts {said}, {len(sizes)} files of {sum(sizes)} bytes are"
            )

    def _note_end(self) -> None:
        self._played.lasted = self._ledger.now
        paths: dict[Key, bytes] = {}
        for path in self._names.walk():
            node = self._ledger.at(path)
            if node is not None:
                self._played.flags[path] = node.flags
                paths[key_of(node)] = path
        for path, node in self._nodes.items():
            paths[key_of(node)] = path
        for key, events in self._ledger.stories.items():
            self._played.stories[paths.get(key, b"%d" % key.ino)] = events


async def _kill(task: asyncio.Task[None], process: Process) -> None:
    """Let a process die: nothing of it is heard or done any more."""
    process.alive = False
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    if not task.cancelled():
        task.exception()


def _bad_calls(bad: BadCalls, chance: random.Random) -> Callable[[str, float], CallFault | None]:
    def rule(kind: str, now: float) -> CallFault | None:
        if kind != bad.kind or not bad.start <= now < bad.end:
            return None
        return bad.fault if chance.random() < bad.share else None

    return rule


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
