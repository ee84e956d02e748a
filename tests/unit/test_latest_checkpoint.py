"""The newest complete checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fsxwarm.engine.latest import newest
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.sim import vloop
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import RELEASED
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World


def found(files: Mapping[str, int], pattern: str, marker: str = "DONE") -> str:
    """What is newest among files, given by path with when they were written."""

    async def work() -> bytes:
        world = World(WorldSpec())
        names = VirtualNamespace(world)
        for path, time in files.items():
            above = path.rpartition("/")[0]
            parts = above.split("/")
            for depth in range(3, len(parts) + 1):
                folder = "/".join(parts[:depth]).encode()
                if folder not in made:
                    made.add(folder)
                    names.make_folder(folder)
            names.make_file(path.encode(), 1000, RELEASED, time=time)
        return await newest(SimTree(Clockwork(world), names), pattern, marker)

    made: set[bytes] = set()
    return vloop.run(work()).decode()


STEPS = {
    "/fsx/ckpt/step-900/DONE": 7,
    "/fsx/ckpt/step-900/weights": 6,
    "/fsx/ckpt/step-1000/DONE": 5,
    "/fsx/ckpt/step-1000/rank/0/weights": 5,
    "/fsx/ckpt/step-1100/weights": 9,
    "/fsx/ckpt/step-1200/deeper/DONE": 9,
    "/fsx/ckpt/other/DONE": 9,
    "/fsx/ckpt/DONE": 9,
}


@pytest.mark.parametrize(
    ("pattern", "marker", "newest_one"),
    [
        ("/fsx/ckpt/step-*", "DONE", "/fsx/ckpt/step-1000"),
        ("/fsx/ckpt/step-[0-9]*", "D?NE", "/fsx/ckpt/step-1000"),
        ("/fsx/ckpt/step-*/", "deeper/DONE", "/fsx/ckpt/step-1200"),
        ("/fsx/ckpt/step-900", "DONE", "/fsx/ckpt/step-900"),
        ("/fsx/ck*/step-9*", "DONE", "/fsx/ckpt/step-900"),
        ("/fsx/*", "DONE", "/fsx/ckpt"),
    ],
)
def test_numbers_count_as_numbers_and_only_complete_ones_do(pattern: str, marker: str, newest_one: str) -> None:
    assert found(STEPS, pattern, marker) == newest_one


def test_names_without_an_order_are_told_apart_by_their_markers_times() -> None:
    files = {"/fsx/ckpt/zebra/DONE": 100, "/fsx/ckpt/ant/DONE": 200, "/fsx/ckpt/cat-7/DONE": 150}
    assert found(files, "/fsx/ckpt/*") == "/fsx/ckpt/ant"


@pytest.mark.parametrize(
    ("pattern", "marker", "kind", "why"),
    [
        ("/fsx/ckpt/step-*", "COMPLETE", Kind.NO_SUCH_PATH, "no complete checkpoint"),
        ("/fsx/ckpt/run-*", "DONE", Kind.NO_SUCH_PATH, "no complete checkpoint"),
        ("/fsx/nothing/step-*", "DONE", Kind.NO_SUCH_PATH, "/fsx/nothing"),
        ("/fsx/ckpt/step-[", "DONE", Kind.USAGE, "never closed"),
        ("/fsx/ckpt/step-*", "", Kind.USAGE, "names no checkpoints"),
        ("/", "DONE", Kind.USAGE, "names no checkpoints"),
        ("/fsx/**", "DONE", Kind.USAGE, "names no checkpoints"),
    ],
)
def test_what_cannot_be_found_is_said(pattern: str, marker: str, kind: Kind, why: str) -> None:
    with pytest.raises(FsxwarmError, match=why) as caught:
        found(STEPS, pattern, marker)
    assert caught.value.kind is kind
