"""Paths and lists become one stream of files, each once."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.order import Order
from fsxwarm.engine.selection import NOT_ON_LUSTRE, Selection
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.entry import Entry, Resident
from fsxwarm.ports.tree import Filters
from paper import GONE, File, Paper


async def _chunks(*chunks: Sequence[bytes]) -> AsyncIterator[Sequence[bytes]]:
    for chunk in chunks:
        yield chunk


async def _files(selection: Selection) -> list[bytes]:
    return [item.path async for batch in selection.batches() for item in batch.items if isinstance(item, Entry)]


def _world(*names: str, **changed: File) -> Paper:
    return Paper({name.encode(): changed.get(name.rpartition("/")[2], File(GONE)) for name in names})


async def test_files_and_folders_come_in_the_order_of_the_arguments() -> None:
    world = _world("/fsx/b/1", "/fsx/a/1", "/fsx/z", "/fsx/a/2")
    chosen = Selection(world, [b"/fsx/z", b"/fsx/b", b"/fsx/a"])
    assert await _files(chosen) == [b"/fsx/z", b"/fsx/b/1", b"/fsx/a/1", b"/fsx/a/2"]


async def test_duplicates_and_paths_inside_others_are_dropped() -> None:
    world = _world("/fsx/a/b/1", "/fsx/a/2", "/fsx/ab/3")
    chosen = Selection(world, [b"/fsx/a/b", b"/fsx/a/2", b"/fsx/a", b"/fsx/a", b"/fsx/ab", b"/fsx/a/b/1"])
    assert sorted(await _files(chosen)) == [b"/fsx/a/2", b"/fsx/a/b/1", b"/fsx/ab/3"]


async def test_hard_links_are_one_file() -> None:
    world = Paper({b"/fsx/a/1": File(GONE, ino=5, nlink=2), b"/fsx/b/1": File(GONE, ino=5, nlink=2)})
    assert await _files(Selection(world, [b"/fsx/a", b"/fsx/b"])) == [b"/fsx/a/1"]


async def test_proven_residents_are_counted_and_named_only_when_whole() -> None:
    world = Paper({b"/fsx/%d" % n: File(size=10_000) for n in range(5)})
    batches = [batch async for batch in Selection(world, [b"/fsx"]).batches()]
    counted = [item for batch in batches for item in batch.items]
    assert all(isinstance(item, Resident) for item in counted)
    assert sum(item.files for item in counted if isinstance(item, Resident)) == 5
    assert len(await _files(Selection(world, [b"/fsx"], whole=True))) == 5


async def test_a_list_keeps_its_order_and_its_folders_are_walked_in_place() -> None:
    world = _world("/fsx/3", "/fsx/d/1", "/fsx/d/2", "/fsx/1", "/fsx/2")
    listed = _chunks([b"/fsx/3", b"/fsx/d", b"/fsx/1"], [b"/fsx/d/1", b"/fsx/2", b"/fsx/3", b"/fsx/d"])
    chosen = Selection(world, [], listed=listed)
    assert await _files(chosen) == [b"/fsx/3", b"/fsx/d/1", b"/fsx/d/2", b"/fsx/1", b"/fsx/2"]


async def test_what_a_list_repeats_of_the_paths_comes_once() -> None:
    world = _world("/fsx/d/1", "/fsx/d/2", "/fsx/3")
    chosen = Selection(world, [b"/fsx/d"], listed=_chunks([b"/fsx/d/2", b"/fsx/3"]))
    assert await _files(chosen) == [b"/fsx/d/1", b"/fsx/d/2", b"/fsx/3"]


async def test_residents_of_a_list_are_counted_once_however_often_it_names_them() -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": File()})
    chosen = Selection(world, [], listed=_chunks([b"/fsx/1", b"/fsx/1", b"/fsx/2"], [b"/fsx/2"]))
    items = [item async for batch in chosen.batches() for item in batch.items]
    assert items == [Resident(2, 20_000)]


async def test_list_entries_that_are_missing_or_elsewhere_are_counted_and_named() -> None:
    world = _world("/fsx/1", "/home/me/2", "/etc/3")
    listed = _chunks([b"/fsx/none", b"/home/me/2", b"/fsx/1", b"/etc/3", b"/home"], [b"/fsx/1/below"])
    chosen = Selection(world, [], listed=listed)
    troubles = [trouble async for batch in chosen.batches() for trouble in batch.troubles]
    assert (chosen.missing.count, chosen.missing.first) == (2, [b"/fsx/none", b"/fsx/1/below"])
    assert (chosen.outside.count, sorted(chosen.outside.first)) == (3, [b"/etc/3", b"/home", b"/home/me/2"])
    assert {trouble.errno for trouble in troubles} == {errno.ENOENT, NOT_ON_LUSTRE}
    assert chosen.mounts == {7: b"/fsx"}


async def test_only_the_first_missing_ones_are_kept_by_name() -> None:
    listed = _chunks([b"/fsx/%d" % n for n in range(1000)])
    chosen = Selection(_world("/fsx/x"), [], listed=listed)
    assert await _files(chosen) == []
    assert chosen.missing.count == 1000
    assert len(chosen.missing.first) <= 10


@pytest.mark.parametrize(
    ("path", "kind", "status", "says"),
    [
        (b"/nowhere", Kind.NO_SUCH_PATH, Exit.USAGE, "/nowhere"),
        (b"/home", Kind.NOT_LUSTRE, Exit.CANNOT, "NFS"),
        (b"/etc", Kind.NOT_LUSTRE, Exit.CANNOT, "ext4"),
    ],
)
async def test_a_bad_path_is_refused_before_anything_is_walked(
    path: bytes, kind: Kind, status: Exit, says: str
) -> None:
    world = _world("/fsx/1", "/etc/x")
    with pytest.raises(FsxwarmError, match=says) as caught:
        await _files(Selection(world, [b"/fsx", path]))
    assert (caught.value.kind, caught.value.exit) == (kind, status)


async def test_filters_reach_the_walk_the_files_and_the_list() -> None:
    world = _world("/fsx/d/1.tmp", "/fsx/d/1.dat", "/fsx/2.tmp", "/fsx/3.tmp", "/fsx/3.dat")
    chosen = Selection(
        world,
        [b"/fsx/d", b"/fsx/2.tmp"],
        listed=_chunks([b"/fsx/3.tmp", b"/fsx/3.dat"]),
        filters=Filters(exclude=("*.tmp",)),
    )
    assert await _files(chosen) == [b"/fsx/d/1.dat", b"/fsx/3.dat"]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.LISTED, ["c", "a", "b"]),
        (Order.PATH, ["a", "b", "c"]),
        (Order.LARGEST, ["b", "a", "c"]),
        (Order.SMALLEST, ["c", "a", "b"]),
        (Order.NEWEST, ["a", "c", "b"]),
    ],
)
async def test_orders(order: Order, names: list[str]) -> None:
    world = Paper(
        {
            b"/fsx/a": File(GONE, size=20, used=300),
            b"/fsx/b": File(GONE, size=30, used=-5),
            b"/fsx/c": File(GONE, size=10, used=200),
        }
    )
    chosen = Selection(world, [], listed=_chunks([b"/fsx/c", b"/fsx/a", b"/fsx/b"]), order=order)
    assert [path.decode()[-1] for path in await _files(chosen)] == names


@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name and b"/" not in name),
        st.tuples(st.integers(0, 2**40), st.integers(-(2**40), 2**40)),
        max_size=20,
    ),
    st.sampled_from([Order.PATH, Order.LARGEST, Order.SMALLEST, Order.NEWEST]),
)
async def test_sorting_loses_and_changes_nothing(files: dict[bytes, tuple[int, int]], order: Order) -> None:
    world = Paper(
        {b"/fsx/" + name: File(GONE, size=size, used=used) for name, (size, used) in files.items()}, {b"/fsx"}
    )
    plain = [item async for batch in Selection(world, [b"/fsx"], whole=True).batches() for item in batch.items]
    ordered = [
        item
        async for batch in Selection(world, [b"/fsx"], whole=True, order=order).batches()
        for item in batch.items
        if isinstance(item, Entry)
    ]
    assert sorted(ordered) == sorted(item for item in plain if isinstance(item, Entry))
    key = {
        Order.PATH: lambda entry: (0, entry.path),
        Order.LARGEST: lambda entry: (-entry.size, entry.path),
        Order.SMALLEST: lambda entry: (entry.size, entry.path),
        Order.NEWEST: lambda entry: (-entry.mtime, entry.path),
    }[order]
    assert ordered == sorted(ordered, key=key)
