"""The guard's few requests: spent in the order of the walk, however the looks at the files come back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from aws.paper_cloud import PaperCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.guard import ReleaseGuard
from fsxwarm.engine.release import Releaser, release_all
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.release import Reason
from fsxwarm.model.s3 import CheckS3, Stored
from paper import CLEAN, File, Paper

SIZE = 10_000


class Uneven(Paper):
    """A file system whose looks at flags take unequal times."""

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        chance = random.Random(paths[0])
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        return await super().states(paths, keys)


def _guard(cloud: PaperCloud, mode: CheckS3) -> ReleaseGuard:
    atlas = Atlas(cloud, [Mounted(b"/fsx", "10.0.0.7@tcp:/abc")])
    return ReleaseGuard(atlas, mode, pytest.fail, strict=False)


async def _released(world: Paper, guard: ReleaseGuard) -> Releaser:
    releaser = Releaser(world, world, keeper=guard)
    await release_all(releaser, Selection(world, [b"/fsx"], whole=True))
    return releaser


async def test_a_dense_tree_is_checked_whole_with_one_request_a_thousand() -> None:
    names = [f"f{number:05d}" for number in range(5_000)]
    cloud = PaperCloud({f"p/{name}": Stored(SIZE, 0) for name in names})
    del cloud.objects["p/f04321"]
    guard = _guard(cloud, CheckS3.AUTO)
    releaser = await _released(Uneven({f"/fsx/{name}".encode(): File(CLEAN, size=SIZE) for name in names}), guard)
    assert guard.found.checked.files == 5_000
    assert cloud.lists == sorted(cloud.lists)
    assert len(cloud.lists) == guard.found.requests == 5
    assert releaser.result.released.files == 4_999
    assert releaser.result.left[Reason.NO_OBJECT].first == [b"/fsx/f04321"]


async def test_in_a_sparse_tree_the_first_of_the_walk_are_checked_and_the_rest_is_said_to_be_not() -> None:
    """Twelve hundred objects of others between any two files: each file would need a request of its own."""
    names = [f"{number:04d}" for number in range(600)]
    cloud = PaperCloud({f"p/{name}": Stored(SIZE, 0) for name in names}, page=1)
    guard = _guard(cloud, CheckS3.AUTO)
    await _released(Uneven({f"/fsx/{name}".encode(): File(CLEAN, size=SIZE) for name in names}), guard)
    assert len(cloud.lists) == 5  # the first five, which is more than one for each 200
    assert cloud.lists == sorted(cloud.lists)
    assert guard.found.checked.files == 5
    assert guard.found.unchecked.files == 595
    with_always = PaperCloud(dict(cloud.objects), page=1)
    guard = _guard(with_always, CheckS3.ALWAYS)
    await _released(Uneven({f"/fsx/{name}".encode(): File(CLEAN, size=SIZE) for name in names}), guard)
    assert guard.found.checked.files == 600
