"""The selections of all shards together are the selection of one: for any tree, paths, list and number of shards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Resident
from fsxwarm.model.shard import Shard
from fsxwarm.ports.tree import Filters
from paper import CLEAN, GONE, File, Paper

NAMES = [b"/fsx/%s%d" % (folder, number) for folder in (b"", b"a/", b"a/b/", b"c/") for number in range(8)]
ROOTS = [b"/fsx", b"/fsx/a", b"/fsx/a/b", b"/fsx/c", b"/fsx/0"]


@st.composite
def worlds(draw: st.DrawFn) -> Paper:
    """Files in four folders, some of them hard links of each other, some resident."""
    inodes = draw(st.lists(st.integers(1, 2**64 - 1), min_size=1, max_size=20, unique=True))
    names = {b"/fsx/0": 0, b"/fsx/a/0": 0, b"/fsx/a/b/0": 0, b"/fsx/c/0": 0}
    names |= {name: draw(st.integers(0, len(inodes) - 1)) for name in draw(st.sets(st.sampled_from(NAMES)))}
    links = Counter(names.values())
    flags = [draw(st.sampled_from([CLEAN, GONE])) for _ in inodes]
    return Paper({
        name: File(flags[at], size=10_000 + at, ino=inodes[at], nlink=links[at]) for name, at in names.items()
    })  # fmt: skip


async def _chunks(paths: Sequence[bytes]) -> AsyncIterator[Sequence[bytes]]:
    for start in range(0, len(paths), 3):
        yield paths[start : start + 3]


def taken(
    world: Paper, roots: Sequence[bytes], listed: Sequence[bytes], shard: Shard | None
) -> tuple[Counter[int], int]:
    """How often each inode was handed on, and how many files were only counted as resident."""

    async def work() -> tuple[Counter[int], int]:
        files = _chunks(listed) if listed else None
        selection = Selection(world, roots, listed=files, filters=Filters(shard=shard))
        inodes: Counter[int] = Counter()
        counted = 0
        async for batch in selection.batches():
            for item in batch.items:
                if isinstance(item, Resident):
                    counted += item.files
                else:
                    inodes[item.ino] += 1
        return inodes, counted

    return asyncio.run(work())


@given(worlds(), st.lists(st.sampled_from(ROOTS), unique=True), st.lists(st.sampled_from(NAMES)), st.integers(1, 40))
def test_union_is_the_tree_and_intersection_is_empty(
    world: Paper, roots: list[bytes], listed: list[bytes], count: int
) -> None:
    whole, resident = taken(world, roots, listed, None)
    parts = [taken(world, roots, listed, Shard(index, count)) for index in range(1, count + 1)]
    together = sum((inodes for inodes, _ in parts), Counter[int]())
    assert together == whole
    assert all(times == 1 for times in together.values())
    assert sum(counted for _, counted in parts) == resident
