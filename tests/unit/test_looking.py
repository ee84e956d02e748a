"""Looks become sights; what a tool says of a file that is gone is not believed while the file is there."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence

import pytest

from fsxwarm.engine.looking import Looker
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import IDLE, Action, Verb
from fsxwarm.model.messages import Look
from fsxwarm.ports.hsm import CallHungError
from fsxwarm.ports.tree import Stat
from fsxwarm.sim.vloop import run
from paper import GONE as RELEASED
from paper import File, Paper

WARM, COLD, LIAR = b"/fsx/warm", b"/fsx/cold", b"/fsx/liar"


def entry(world: Paper, path: bytes) -> Entry:
    file = world.files[path]
    return Entry(path, 7, file.ino, file.size, file.blocks, 1, 1, 1, 1, 0, 0o644)


@pytest.fixture
def world() -> Paper:
    return Paper({WARM: File(), COLD: File(RELEASED), LIAR: File(errno=errno.ENOENT)})


@pytest.mark.parametrize("how", list(Look))
async def test_each_way_of_looking_sees_what_it_can(world: Paper, how: Look) -> None:
    warm, cold = entry(world, WARM), entry(world, COLD)
    sights = await Looker(world, world).look(how, [warm, cold])
    for file, released in ((warm, False), (cold, True)):
        sight = sights[file.key]
        assert sight.trouble is None
        if how in {Look.STAT, Look.RELEASED}:
            assert sight.resident is not released
        if how in {Look.STATE, Look.BOTH}:
            assert sight.flags is not None
            assert sight.flags.released is released
        if how in {Look.ACTION, Look.BOTH}:
            assert sight.action == IDLE


async def test_a_file_that_the_tool_does_not_find_is_not_gone_while_it_is_there(world: Paper) -> None:
    liar = entry(world, LIAR)
    trouble = (await Looker(world, world).look(Look.STATE, [liar]))[liar.key].trouble
    assert trouble is not None
    assert trouble.errno == errno.EIO
    assert "it is there" in trouble.text


async def test_a_file_that_is_gone_is_gone(world: Paper) -> None:
    liar = entry(world, LIAR)
    del world.files[LIAR]
    for how in Look:
        trouble = (await Looker(world, world).look(how, [liar]))[liar.key].trouble
        assert trouble is not None
        assert trouble.errno == errno.ENOENT


async def test_a_name_that_another_file_took_is_not_our_file(world: Paper) -> None:
    cold = entry(world, COLD)
    world.files[COLD].ino += 1000
    trouble = (await Looker(world, world).look(Look.STAT, [cold]))[cold.key].trouble
    assert trouble is not None
    assert trouble.errno == errno.ESTALE


async def test_a_look_that_hangs_is_each_files_trouble(world: Paper) -> None:
    def hang(_: str) -> None:
        raise CallHungError("lfs hsm_state", 60.0)

    warm, cold = entry(world, WARM), entry(world, COLD)
    world.before = hang
    sights = await Looker(world, world).look(Look.STATE, [warm, cold])
    assert {sight.trouble and sight.trouble.errno for sight in sights.values()} == {errno.ETIMEDOUT}


async def test_on_an_old_client_nothing_is_statted_that_may_be_on_its_way(world: Paper) -> None:
    calls: list[str] = []
    world.before = calls.append
    warm, cold = entry(world, WARM), entry(world, COLD)
    await Looker(world, world, stat_settles=False).look(Look.BOTH, [warm, cold])
    assert calls
    assert "stat" not in calls
    await Looker(world, world).look(Look.BOTH, [warm, cold])
    assert "stat" in calls


async def test_flags_are_not_read_of_a_file_whose_restore_waits(world: Paper) -> None:
    world.files[COLD].action = Action(Verb.RESTORE)
    waiting, idle = entry(world, COLD), entry(world, WARM)
    looker = Looker(world, world)
    sights = await looker.look(Look.BOTH, [waiting, idle])
    assert (sights[waiting.key].action, sights[waiting.key].flags) == (Action(Verb.RESTORE), None)
    assert sights[idle.key].flags is not None
    assert (looker.cost[Look.ACTION], looker.cost[Look.STATE]) == (2, 1)
    world.files[COLD].action = Action(Verb.RESTORE, running=True, moved=1)
    assert (await looker.look(Look.BOTH, [waiting]))[waiting.key].flags is not None


class Hanging(Paper):
    """A file system whose stats never come back."""

    async def stat(self, paths: Sequence[bytes]) -> list[Stat | Trouble]:
        await asyncio.sleep(3600)
        return await super().stat(paths)


def test_what_was_seen_does_not_wait_for_a_stat_that_hangs() -> None:
    async def look() -> None:
        world = Hanging({WARM: File(), COLD: File(RELEASED)})
        warm, cold = entry(world, WARM), entry(world, COLD)
        sights = await Looker(world, world).look(Look.BOTH, [warm, cold])
        assert asyncio.get_running_loop().time() < 5
        assert sights[warm.key].resident is None
        assert [sight.flags and sight.flags.released for sight in sights.values()] == [False, True]

    run(look())
