"""What status counts."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.selection import Selection
from fsxwarm.engine.status import Status, Survey
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.model.tally import Tally
from paper import CLEAN, GONE, File, Paper


async def _status(world: Paper, *paths: bytes, depth: int | None = None, flags: bool = False) -> Status:
    selection = Selection(world, paths or (b"/fsx",), whole=flags)
    return await Survey(world, selection, depth=depth, flags=flags).run()


async def test_resident_and_released_files_are_counted_with_their_bytes() -> None:
    world = Paper({b"/fsx/1": File(size=3_000), b"/fsx/2": File(GONE, size=1_000), b"/fsx/3": File(GONE, size=0)})
    status = await _status(world)
    assert (status.all.resident, status.all.released) == (Tally(1, 3_000), Tally(2, 1_000))
    assert status.all.share == 0.75
    assert not status.all_resident


async def test_a_warm_tree_costs_no_look_at_all() -> None:
    world = Paper({b"/fsx/%d" % n: File(size=5_000) for n in range(1_000)})
    status = await _status(world)
    assert status.all_resident
    assert status.all.resident.files == 1_000
    assert world.calls == []


async def test_looks_are_made_in_batches() -> None:
    world = Paper({b"/fsx/%d" % n: File(GONE) for n in range(1_000)})
    status = await _status(world)
    assert status.all.released.files == 1_000
    assert len(world.calls) == 5


async def test_an_empty_folder_is_all_resident() -> None:
    status = await _status(Paper({}, {b"/fsx"}))
    assert (status.total, status.all.share, status.all_resident) == (Tally(), 1.0, True)


async def test_files_that_may_not_be_read_are_settled_without_rights() -> None:
    world = Paper({b"/fsx/1": File(GONE, errno=errno.EACCES), b"/fsx/2": File(size=0, errno=errno.EACCES)})
    status = await _status(world)
    assert (status.all.released.files, status.all.resident.files, status.unknown.files) == (1, 1, 0)


async def test_what_nobody_tells_is_unknown_and_never_taken_for_resident() -> None:
    status = await _status(Paper({b"/fsx/1": File(GONE, errno=errno.EIO)}))
    assert status.unknown == Tally(1, 10_000)
    assert not status.all_resident


async def test_unreadable_folders_are_reported_and_the_rest_goes_on() -> None:
    world = Paper({b"/fsx/a/1": File(), b"/fsx/b/1": File(GONE)}, closed={b"/fsx/a"})
    status = await _status(world)
    assert [trouble.path for trouble in status.troubles.first] == [b"/fsx/a"]
    assert status.all.released.files == 1
    assert not status.all_resident


async def test_a_file_that_vanishes_is_counted_as_that() -> None:
    world = Paper({b"/fsx/1": File(GONE), b"/fsx/2": File(GONE)})
    world.before = lambda _: world.files.pop(b"/fsx/1", None) and None
    status = await _status(world)
    assert (status.vanished, status.all.released.files, status.unknown.files) == (1, 1, 0)


async def test_an_lfs_that_finds_nothing_does_not_pass_for_an_empty_tree() -> None:
    status = await _status(Paper({b"/fsx/1": File(GONE, errno=errno.ENOENT)}))
    assert (status.vanished, status.unknown.files, status.troubles.count) == (0, 1, 1)
    assert not status.all_resident


async def test_flags_are_counted_and_may_overlap() -> None:
    world = Paper(
        {
            b"/fsx/dirty-pinned": File(CLEAN | Flags.DIRTY | Flags.NORELEASE),
            b"/fsx/new": File(Flags(0)),
            b"/fsx/lost": File(GONE | Flags.LOST),
            b"/fsx/restoring": File(GONE, action=Action(Verb.RESTORE)),
            b"/fsx/secret": File(CLEAN, errno=errno.EACCES),
            b"/fsx/newer-client": File(CLEAN | Flags(0x180)),
        }
    )
    flags = (await _status(world, flags=True)).flags
    assert flags is not None
    counts = (flags.dirty, flags.pinned, flags.never_archived, flags.lost, flags.restoring, flags.unread)
    assert [tally.files for tally in counts] == [1, 1, 1, 1, 1, 1]
    assert ("actions", 2) in world.calls, "only released files can be restoring"


async def test_folders_are_cut_at_the_depth_below_each_path() -> None:
    world = Paper({b"/fsx/a/b/c/1": File(), b"/fsx/a/2": File(GONE), b"/fsx/3": File(), b"/fsx/d/e/4": File()})
    assert set((await _status(world, depth=1)).folders) == {b"/fsx", b"/fsx/a", b"/fsx/d"}
    deep = await _status(world, b"/fsx/a", b"/fsx/d", depth=1)
    assert set(deep.folders) == {b"/fsx/a", b"/fsx/a/b", b"/fsx/d/e"}
    assert deep.folders[b"/fsx/a/b"].resident.files == 1
    assert set((await _status(world, depth=0)).folders) == {b"/fsx"}


async def test_listed_files_are_broken_down_below_the_mount() -> None:
    async def listed() -> AsyncIterator[Sequence[bytes]]:
        yield [b"/fsx/a/b/1", b"/fsx/c"]

    world = Paper({b"/fsx/a/b/1": File(), b"/fsx/c": File(GONE)})
    selection = Selection(world, [], listed=listed(), whole=True)
    status = await Survey(world, selection, depth=1).run()
    assert set(status.folders) == {b"/fsx", b"/fsx/a"}


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 30)),
        st.builds(
            File,
            flags=st.sampled_from([CLEAN, GONE, Flags(0), CLEAN | Flags.DIRTY]),
            size=st.integers(0, 10_000),
            errno=st.sampled_from([0, 0, 0, errno.EACCES, errno.EIO]),
        ),
    ),
    st.integers(0, 2),
)
async def test_each_file_is_counted_once_and_folders_add_up(files: dict[tuple[int, int], File], depth: int) -> None:
    world = Paper({b"/fsx/%d/%d" % name: file for name, file in files.items()}, {b"/fsx"})
    status = await _status(world, depth=depth)
    assert status.total == Tally(len(files), sum(file.size for file in files.values()))
    released = [file for file in files.values() if file.flags.released and file.errno != errno.EIO]
    assert status.all.released.files == len(released)
    both = [coverage.resident + coverage.released for coverage in status.folders.values()]
    assert sum(tally.files for tally in both) + status.unknown.files == status.total.files
