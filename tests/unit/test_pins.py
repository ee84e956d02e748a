"""Pins are set and cleared over a selection."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from fsxwarm.engine.pin import Pinned, pin_all
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.tally import Tally
from fsxwarm.ports.hsm import CallHungError
from paper import CLEAN, GONE, File, Paper


async def _pin(world: Paper, *, on: bool) -> Pinned:
    result = Pinned(on)
    await pin_all(world, Selection(world, [b"/fsx"], whole=True), result)
    return result


async def test_every_file_is_pinned_resident_or_not_and_unpinned_again() -> None:
    world = Paper({b"/fsx/1": File(CLEAN), b"/fsx/2": File(GONE), b"/fsx/3": File(Flags(0), size=0)})
    before = [file.flags for file in world.files.values()]
    assert (await _pin(world, on=True)).done == Tally(3, 20_000)
    assert all(file.flags & Flags.NORELEASE for file in world.files.values())
    assert (await _pin(world, on=False)).done.files == 3
    assert [file.flags for file in world.files.values()] == before


async def test_files_of_others_are_failures_by_name_and_the_rest_is_pinned() -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": File(errno=errno.EPERM), b"/fsx/3": File()})
    result = await _pin(world, on=True)
    assert result.done.files == 2
    assert result.failed.first == [Trouble(b"/fsx/2", errno.EPERM)]


async def test_files_that_vanish_are_no_failures() -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": File()})
    world.before = lambda _: world.files.pop(b"/fsx/1", None) and None
    result = await _pin(world, on=True)
    assert (result.done.files, result.vanished, result.failed.count) == (1, 1, 0)


async def test_many_files_are_pinned_in_few_calls() -> None:
    world = Paper({b"/fsx/%d" % n: File() for n in range(1_001)})
    assert (await _pin(world, on=True)).done.files == 1_001
    assert len(world.calls) == 6


class _Hung(Paper):
    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        raise CallHungError(f"lfs hsm_{'set' if on else 'clear'} of {len(paths)}", 60)


async def test_a_hanging_call_fails_its_files() -> None:
    result = await _pin(_Hung({b"/fsx/1": File()}), on=True)
    assert result.failed.first[0].errno == errno.ETIMEDOUT
