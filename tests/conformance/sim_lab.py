"""The lab in memory: the simulated FSx in the same process and on the same event loop."""

from __future__ import annotations

import asyncio

from conformance.lab import SIZE, Lab
from fsxwarm.model.hsm import Flags
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

CLEAN = Flags.EXISTS | Flags.ARCHIVED


class SimLab(Lab):
    """A lab on a world of its own, quick enough to be waited for in real time."""

    mount = b"/fsx"
    folder = b"/fsx/lab"

    def __init__(self) -> None:
        world = World(WorldSpec(latency=0.01, mdts=1))
        self._clockwork = Clockwork(world)
        self._names = VirtualNamespace(world, self.mount)
        self._names.make_folder(self.folder)
        self.hsm = SimHsm(self._clockwork, self._names)
        self.tree = SimTree(self._clockwork, self._names)

    async def plain(self, *names: bytes) -> list[bytes]:
        return self._make(names, Flags(0))

    async def archived(self, *names: bytes) -> list[bytes]:
        return self._make(names, CLEAN)

    async def dirty(self, *names: bytes) -> list[bytes]:
        return self._make(names, CLEAN | Flags.DIRTY)

    def _make(self, names: tuple[bytes, ...], flags: Flags) -> list[bytes]:
        paths = [self.path(name) for name in names]
        for path in paths:
            self._names.make_file(path, SIZE, flags)
        return paths

    async def lose(self, *paths: bytes) -> None:
        for path in paths:
            self._names.file(path).node.flags |= Flags.LOST

    async def mkdir(self, name: bytes) -> bytes:
        self._names.make_folder(self.path(name))
        return self.path(name)

    async def link(self, target: bytes, name: bytes) -> bytes:
        self._names.link(target, self.path(name))
        return self.path(name)

    async def symlink(self, target: bytes, name: bytes) -> bytes:
        self._names.symlink(target, self.path(name))
        return self.path(name)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Let its time stand still."""
        self._clockwork.stop()
