"""Plans: what is to be restored where, whether it fits, and what would have to be released."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fsxwarm.engine.planner import Plan, Planner
from fsxwarm.engine.selection import Selection
from fsxwarm.model.forecast import Ran
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import Amount
from paper import CLEAN, GONE, File, Paper


async def _plan(world: Paper, *paths: bytes, depth: int = 1, reserve: Amount | None = None) -> Plan:
    async def seen(mount: bytes) -> Sequence[Ran]:
        assert mount == b"/fsx"
        return [Ran(50.0, 1000.0)]

    selection = Selection(world, paths or [b"/fsx"])
    return await Planner(world, selection, reserve=reserve or Amount(), depth=depth, seen=seen).run()


async def test_the_biggest_folders_come_first_at_the_depth_that_is_wished() -> None:
    world = Paper(
        {
            b"/fsx/a/x/1": File(GONE, size=100),
            b"/fsx/a/y/1": File(GONE, size=300),
            b"/fsx/b/1": File(GONE, size=350),
            b"/fsx/b/2": File(CLEAN, size=9_000),
            b"/fsx/top": File(GONE, size=5),
        }
    )
    assert (await _plan(world)).biggest(2) == [(b"/fsx/a", Tally(2, 400)), (b"/fsx/b", Tally(1, 350))]
    deeper = await _plan(world, depth=2)
    assert [path for path, _ in deeper.biggest(9)] == [b"/fsx/b", b"/fsx/a/y", b"/fsx/a/x", b"/fsx"]
    inner = await _plan(world, b"/fsx/a")
    assert [path for path, _ in inner.biggest(9)] == [b"/fsx/a/y", b"/fsx/a/x"]
    assert sum(tally.bytes for tally in deeper.folders.values()) == deeper.estimate.released.bytes == 755


async def test_the_slower_limit_makes_the_time_and_requests_are_counted() -> None:
    world = Paper({b"/fsx/%03d" % number: File(GONE, size=100) for number in range(120)})
    plan = await _plan(world)
    (part,) = plan.parts
    assert part.forecast.by_files.seconds == 120 / 50
    assert plan.seconds == 12_000 / 1000
    assert part.forecast.binds == "bytes/s"
    assert plan.requests == 3


@pytest.mark.parametrize(("reserve", "lacks"), [(Amount(), 0), (Amount(bytes=10), 10), (Amount(bytes=950), 950)])
async def test_what_does_not_fit_says_how_much_to_release(reserve: Amount, lacks: int) -> None:
    world = Paper({b"/fsx/a": File(GONE, size=600), b"/fsx/b": File(CLEAN, size=400)}, total=1_000)
    plan = await _plan(world, reserve=reserve)
    (need,) = plan.estimate.needs
    assert need.measure.lacks(need.bytes) == lacks
    assert plan.fits is (lacks == 0)


async def test_without_aws_the_file_system_stays_unknown_and_it_says_why() -> None:
    plan = await _plan(Paper({b"/fsx/a": File(GONE)}))
    (part,) = plan.parts
    assert part.system is None
    assert "not asked" in part.unknown
