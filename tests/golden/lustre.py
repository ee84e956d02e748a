"""A simulated Lustre put into a condition, and one call of `lfs` on it."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fsxwarm.model.hsm import WEDGED_MOVED, Action, Flags
from fsxwarm.sim import lfs
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.lfs.kernel import Target
from fsxwarm.sim.metadata import MetadataServers
from fsxwarm.sim.mounted import LustreClient
from fsxwarm.sim.nodes import Node, Stage
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World
from golden.conditions import USERS, Condition, File
from golden.machine import MemoryMachine, Reached

VERSION: Final = (2, 15, 8)
TEMPORARY: Final = b"/tmp"


class Blocked(Enum):
    """The call hangs in the kernel."""

    BLOCKED = "blocked"


BLOCKED: Final = Blocked.BLOCKED


@dataclass(frozen=True, slots=True)
class Servers(MetadataServers):
    """Servers whose targets are as full as the condition says."""

    measured: tuple[Target, ...] = ()

    def targets(self) -> list[Target]:
        return list(self.measured)


class Lustre:
    def __init__(self, condition: Condition, version: tuple[int, ...] = VERSION) -> None:
        self.condition = condition
        self.version = version
        self.machine = MemoryMachine(condition.things)
        spec = WorldSpec(mdts=1, version=version, users_may_restore=condition.others_may_restore)
        self.world = World(spec)
        for inode in self.machine.files:
            if isinstance(inode.thing, File):
                owner = Caller(inode.thing.owner, frozenset({inode.thing.owner}))
                node = self.world.create(
                    inode.thing.size, inode.thing.flags, caller=owner, mode=inode.thing.mode, fid=inode.fid
                )
                self._settle(node, inode.thing)
        # What the condition says to be waiting waits: coordinators start nothing.
        for coordinator in self.world.coordinators:
            coordinator.stopped_until = math.inf
            coordinator.control = Control(condition.coordinator)
        self.servers = Servers(self.world, "lustre", lambda: 0.0, condition.targets)
        for argv in condition.before:
            self.run(argv, "root")

    def run(self, argv: tuple[bytes, ...], user: str) -> lfs.Outcome | Blocked:
        uid = USERS[user]
        caller = Caller(uid, frozenset({uid})) if uid else ROOT
        kernel = LustreClient(self.machine, self.servers, caller, self.condition.cwd)
        outcome = lfs.start(argv, kernel, self._read_list, self.version)
        if isinstance(outcome, lfs.Send):
            call = self.servers.send(outcome.request, caller)
            return BLOCKED if call.errno is None else outcome.answered(call.errno)
        return outcome

    def truth(self, path: bytes, command: str) -> Flags | Action:
        """What the servers hold of a file, by its path."""
        kernel: LustreClient[Reached] = LustreClient(self.machine, self.servers, ROOT, self.condition.cwd)
        if command == "hsm_action":
            return kernel.hsm_action(path)
        return Flags(kernel.hsm_state(path).flags)

    def _read_list(self, path: bytes) -> bytes:
        if path == TEMPORARY:
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if path not in self.condition.lists:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return self.condition.lists[path]

    def _settle(self, node: Node, thing: File) -> None:
        if thing.flags & Flags.EXISTS:
            node.archive_id = thing.archive_id
        node.unflushed = thing.unflushed
        if thing.doing.idle:
            return
        node.verb = thing.doing.verb
        coordinator = self.world.coordinators[node.mdt]
        coordinator.add(node)
        if thing.doing.running:
            coordinator.waiting.remove(node)
            coordinator.running.add(node)
            node.stage = Stage.WEDGED if thing.doing.moved == WEDGED_MOVED else Stage.FROZEN
            node.begun = thing.doing.moved
