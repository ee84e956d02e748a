"""Dry runs: what there is to restore, whether it fits, how long it takes."""

from __future__ import annotations

import errno

import pytest

from fsxwarm.engine.estimate import Estimate, Estimator, Speed, best
from fsxwarm.engine.selection import Selection
from fsxwarm.model.hsm import Flags
from fsxwarm.model.outcome import Reason
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import Amount
from paper import CLEAN, GONE, File, Paper


async def _estimate(world: Paper, reserve: Amount | None = None) -> Estimate:
    return await Estimator(world, Selection(world, [b"/fsx"]), reserve=reserve).run()


async def test_files_are_counted_by_what_a_preload_would_do_with_them() -> None:
    world = Paper(
        {
            b"/fsx/cold": File(GONE, size=1_000),
            b"/fsx/empty": File(GONE, size=0),
            b"/fsx/warm": File(CLEAN, size=2_000),
            b"/fsx/tiny": File(CLEAN, size=0),
            b"/fsx/lost": File(GONE | Flags.LOST, size=3_000),
            b"/fsx/dirty": File(GONE | Flags.DIRTY, size=4_000),
            b"/fsx/bare": File(Flags.RELEASED, size=5_000),
            b"/fsx/secret": File(GONE, size=6_000, errno=errno.EACCES),
            b"/fsx/broken": File(GONE, size=7_000, errno=errno.EIO),
        }
    )
    found = await _estimate(world)
    assert found.released == Tally(3, 7_000)
    assert found.resident == Tally(2, 2_000)
    assert found.blocked == {
        Reason.LOST: Tally(1, 3_000),
        Reason.DIRTY: Tally(1, 4_000),
        Reason.NOT_ARCHIVED: Tally(1, 5_000),
    }
    assert found.unknown == Tally(1, 7_000)
    assert found.troubles.count == 1
    assert not [call for call in world.calls if call[0] not in {"states", "released"}], "it asks for nothing"


async def test_a_warm_tree_needs_no_look() -> None:
    world = Paper({b"/fsx/%d" % number: File() for number in range(500)})
    found = await _estimate(world)
    assert found.resident.files == 500
    assert world.calls == []


@pytest.mark.parametrize(("percent", "fits"), [(0.0, True), (10.0, True), (11.0, False)])
async def test_the_need_is_held_against_free_space_less_the_reserve(percent: float, fits: bool) -> None:  # noqa: FBT001
    world = Paper({b"/fsx/a": File(GONE, size=900)}, total=1_000)
    found = await _estimate(world, Amount(percent=percent))
    assert found.fits is fits
    assert [(need.mount, need.bytes) for need in found.needs] == [(b"/fsx", 900)]


async def test_without_a_reserve_space_is_not_looked_at() -> None:
    found = await _estimate(Paper({b"/fsx/a": File(GONE, size=900)}, total=10))
    assert found.fits


def test_the_slower_of_files_and_bytes_decides() -> None:
    speed = Speed(files=100.0, bytes=1e9)
    assert speed.seconds(Tally(1_000, 10**6)) == 10.0
    assert speed.seconds(Tally(1, 5 * 10**9)) == 5.0
    assert Speed(0.0, 1e9).seconds(Tally(1_000_000, 10**9)) == 1.0


def test_the_best_of_each_kind_is_what_a_file_system_can_do() -> None:
    assert best([Speed(100.0, 1e6), Speed(3.0, 1e9)]) == Speed(100.0, 1e9)
    assert best([]) is None
    assert best([Speed(0.0, 0.0)]) is None
