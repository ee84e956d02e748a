"""Waiting until files are resident that somebody else restores, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from fsxwarm.engine.selection import Selection
from fsxwarm.engine.waiting import Waiting
from fsxwarm.sim import vloop
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import RELEASED, RESIDENT
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

MB = 10**6


class Scene:
    """Ten released files of 1 MB, `f0` to `f9`, and what can be done to them; a restore takes a second."""

    def __init__(self, *, files: int = 10, size: int = MB, stat_settles: bool = True, agents: int = 32) -> None:
        self.world = World(WorldSpec(latency=1.0, agents=agents))
        self.names = VirtualNamespace(self.world)
        self.clockwork = Clockwork(self.world)
        self.hsm, self.tree = SimHsm(self.clockwork, self.names), SimTree(self.clockwork, self.names)
        self.paths = [b"/fsx/f%04d" % number for number in range(files)]
        for path in self.paths:
            self.names.make_file(path, size, RELEASED)
        self.stat_settles = stat_settles
        self.said: list[str] = []

    def waiting(self, share: float = 1.0, paths: Sequence[bytes] = (b"/fsx",)) -> Waiting:
        selection = Selection(self.tree, paths)
        return Waiting(self.hsm, selection, share, stat_settles=self.stat_settles, say=self.said.append)

    async def until(self, waiting: Waiting, within: float) -> bool:
        """Whether it ends within so many seconds."""
        try:
            async with asyncio.timeout(within):
                await waiting.run()
        except TimeoutError:
            return False
        return True


@pytest.mark.parametrize("stat_settles", [True, False])
@pytest.mark.parametrize("size", [0, 300, MB])
def test_it_ends_once_all_are_resident(*, stat_settles: bool, size: int) -> None:
    async def work() -> None:
        scene = Scene(stat_settles=stat_settles, size=size)
        assert not await scene.until(scene.waiting(), 30)
        await scene.hsm.restore(scene.paths[:9])
        waiting = scene.waiting()
        assert not await scene.until(waiting, 30)
        assert waiting.left.files == 1
        await scene.hsm.restore(scene.paths[9:])
        assert await scene.until(scene.waiting(), 30)
        assert not scene.said

    vloop.run(work())


def test_a_share_is_the_first_bytes_in_order() -> None:
    async def work() -> None:
        scene = Scene()
        await scene.hsm.restore(scene.paths[3:])
        assert not await scene.until(scene.waiting(0.2), 30)
        await scene.hsm.restore(scene.paths[:2])
        waiting = scene.waiting(0.2)
        assert await scene.until(waiting, 30)
        assert (waiting.wanted, waiting.found.files) == (2 * MB, 10)
        assert not await scene.until(scene.waiting(0.21), 30)

    vloop.run(work())


def test_a_file_that_vanishes_is_not_waited_for() -> None:
    async def work() -> None:
        scene = Scene()
        waiting = scene.waiting()
        task = asyncio.create_task(scene.until(waiting, 60))
        await asyncio.sleep(5)
        await scene.hsm.restore(scene.paths[1:])
        scene.names.unlink(scene.paths[0], scene.clockwork.now())
        assert await task
        assert (waiting.vanished, waiting.left.files) == (1, 0)

    vloop.run(work())


def test_a_file_that_is_replaced_is_another_file() -> None:
    async def work() -> None:
        scene = Scene(files=1)
        waiting = scene.waiting()
        task = asyncio.create_task(scene.until(waiting, 60))
        await asyncio.sleep(5)
        scene.names.unlink(scene.paths[0], scene.clockwork.now())
        scene.names.make_file(scene.paths[0], MB, RELEASED)
        assert await task
        assert waiting.vanished == 1

    vloop.run(work())


def test_it_says_when_nobody_restores_anything() -> None:
    async def work() -> None:
        scene = Scene()
        assert not await scene.until(scene.waiting(), 300)
        assert len(scene.said) == 3  # after one minute, two and four
        assert "does a preload run?" in scene.said[0]

    vloop.run(work())


def test_a_slow_restore_is_no_reason_to_say_so() -> None:
    async def work() -> None:
        scene = Scene(files=1, size=10**12)
        await scene.hsm.restore(scene.paths)
        assert not await scene.until(scene.waiting(), 300)
        assert not scene.said

    vloop.run(work())


def test_many_files_cost_few_looks() -> None:
    """Only files that come first are looked at, and flags of few."""

    async def work() -> None:
        scene = Scene(files=20_000, agents=1000)
        task = asyncio.create_task(scene.until(scene.waiting(), 600))
        for start in range(0, 20_000, 50):
            await scene.hsm.restore(scene.paths[start : start + 50])
            await asyncio.sleep(0.2)
        assert await task
        assert scene.world.counts["state calls"] < 200
        assert scene.world.counts["getattr"] < 20 * 20_000

    vloop.run(work())


def test_resident_files_are_nothing_to_wait_for() -> None:
    async def work() -> None:
        scene = Scene(files=0)
        for number in range(5):
            scene.names.make_file(b"/fsx/r%d" % number, MB, RESIDENT)
        waiting = scene.waiting()
        assert await scene.until(waiting, 1)
        assert (waiting.found.files, waiting.left.files) == (5, 0)

    vloop.run(work())
