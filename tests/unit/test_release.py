"""Release gives space back and never loses data."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.release import Released, Releaser, candidates, release_all
from fsxwarm.engine.selection import Selection
from fsxwarm.model.hsm import IDLE, Action, Flags, Verb
from fsxwarm.model.release import Reason
from fsxwarm.model.tally import Tally
from paper import CLEAN, GONE, File, Paper

RESTORING = Action(Verb.RESTORE, running=True, moved=5)


async def _release(world: Paper, *, dry_run: bool = False, used_before: int | None = None) -> Released:
    releaser = Releaser(world, world, dry_run=dry_run)
    return await release_all(releaser, Selection(world, [b"/fsx"], whole=True), used_before=used_before)


async def test_what_the_archive_holds_is_released_in_batches_of_50() -> None:
    world = Paper({b"/fsx/%03d" % n: File(size=1_000) for n in range(120)})
    result = await _release(world)
    assert result.released == Tally(120, 120_000)
    assert all(file.flags.released for file in world.files.values())
    assert sorted(count for name, count in world.calls if name == "release") == [20, 50, 50]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (File(CLEAN | Flags.DIRTY), Reason.DIRTY),
        (File(Flags(0)), Reason.NEVER_ARCHIVED),
        (File(Flags.EXISTS), Reason.NEVER_ARCHIVED),
        (File(CLEAN | Flags.NORELEASE), Reason.PINNED),
        (File(CLEAN | Flags.LOST), Reason.LOST),
        (File(GONE | Flags.LOST), Reason.LOST),
        (File(GONE, action=RESTORING), Reason.RESTORING),
        (File(CLEAN, action=RESTORING), Reason.RESTORING),
        (File(CLEAN, action=Action(Verb.ARCHIVE)), Reason.BUSY),
        (File(CLEAN, errno=errno.EACCES), Reason.UNREADABLE),
        (File(CLEAN, errno=errno.ETIMEDOUT), Reason.HUNG),
        (File(CLEAN, refuse=errno.EACCES), Reason.NOT_YOURS),
        (File(CLEAN, refuse=errno.EPERM), Reason.BUSY),
    ],
)
async def test_a_file_that_must_stay_is_left_alone_named_and_in_nobodys_way(file: File, reason: Reason) -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": file, b"/fsx/3": File()})
    before = file.flags
    result = await _release(world)
    assert file.flags == before
    assert {reason: left.first for reason, left in result.left.items()} == {reason: [b"/fsx/2"]}
    assert sorted(world.released_paths) == [b"/fsx/1", b"/fsx/3"]
    assert result.released.files == 2


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (File(CLEAN, errno=errno.EIO), errno.EIO),
        (File(CLEAN, errno=errno.ENOTCONN), errno.ENOTCONN),
        (File(CLEAN, errno=errno.ENAMETOOLONG), errno.ENAMETOOLONG),
        (File(CLEAN, refuse=errno.EIO), errno.EIO),
        (File(CLEAN, refuse=errno.EROFS), errno.EROFS),
    ],
)
async def test_a_file_at_which_a_call_fails_is_named_with_its_errno_and_in_nobodys_way(file: File, code: int) -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": file, b"/fsx/3": File()})
    result = await _release(world)
    assert [(trouble.path, trouble.errno) for trouble in result.troubles.first] == [(b"/fsx/2", code)]
    assert result.left == {}
    assert sorted(world.released_paths) == [b"/fsx/1", b"/fsx/3"]


async def test_many_refused_files_do_not_keep_the_others_from_release() -> None:
    world = Paper({b"/fsx/%02d" % n: File(refuse=errno.EACCES if n % 3 else 0) for n in range(50)})
    result = await _release(world)
    assert result.released.files == 17
    assert result.left[Reason.NOT_YOURS].tally.files == 33


async def test_what_is_released_or_empty_has_nothing_to_give_back() -> None:
    world = Paper({b"/fsx/1": File(GONE), b"/fsx/2": File(size=0)})
    result = await _release(world)
    assert (result.already.files, result.released.files, result.left) == (2, 0, {})


async def test_a_small_file_whose_stat_proves_nothing_is_looked_at_and_released() -> None:
    class Tiny(File):
        @property
        def blocks(self) -> int:
            return 1

    world = Paper({b"/fsx/1": Tiny(size=100), b"/fsx/2": Tiny(size=100, flags=Flags(0))})
    result = await _release(world)
    assert world.released_paths == [b"/fsx/1"]
    assert result.left[Reason.NEVER_ARCHIVED].tally.files == 1


async def test_a_name_that_means_another_file_by_now_is_left_alone() -> None:
    world = Paper({b"/fsx/1": File(), b"/fsx/2": File()})

    def swap(call: str) -> None:
        if call == "stat":
            world.files[b"/fsx/1"] = File(ino=99)

    world.before = swap
    result = await _release(world)
    assert world.released_paths == [b"/fsx/2"]
    assert result.left[Reason.CHANGED].first == [b"/fsx/1"]


async def test_a_file_that_becomes_dirty_between_look_and_request_is_kept_and_the_rest_released() -> None:
    world = Paper({b"/fsx/%d" % n: File() for n in range(5)})

    def write(call: str) -> None:
        if call == "release":
            world.files[b"/fsx/2"].flags |= Flags.DIRTY

    world.before = write
    result = await _release(world)
    assert len(world.released_paths) == 4
    assert result.left[Reason.DIRTY].first == [b"/fsx/2"]


async def test_a_file_that_vanishes_takes_no_other_with_it() -> None:
    world = Paper({b"/fsx/%d" % n: File() for n in range(5)})

    def remove(call: str) -> None:
        if call == "release":
            world.files.pop(b"/fsx/2", None)

    world.before = remove
    result = await _release(world)
    assert (result.released.files, result.vanished, result.left) == (4, 1, {})


async def test_recently_used_files_are_kept() -> None:
    world = Paper({b"/fsx/old": File(used=100), b"/fsx/edge": File(used=200), b"/fsx/new": File(used=300)})
    result = await _release(world, used_before=200)
    assert world.released_paths == [b"/fsx/old"]
    assert result.recent.files == 2


async def test_a_dry_run_asks_for_nothing_and_tells_the_same() -> None:
    def world() -> Paper:
        return Paper({b"/fsx/1": File(), b"/fsx/2": File(CLEAN | Flags.DIRTY), b"/fsx/3": File(GONE)})

    dry, wet = world(), world()
    would = await _release(dry, dry_run=True)
    did = await _release(wet)
    assert dry.released_paths == []
    assert (would.released, would.left, would.already) == (did.released, did.left, did.already)


async def test_candidates_are_counted_by_stat_alone() -> None:
    world = Paper({b"/fsx/1": File(size=1_000), b"/fsx/2": File(GONE), b"/fsx/3": File(size=2_000, used=500)})
    selection = Selection(world, [b"/fsx"], whole=True)
    assert await candidates(selection, used_before=400) == Tally(1, 1_000)
    assert world.calls == []


@given(
    st.lists(
        st.builds(
            File,
            flags=st.integers(0, 0x7F).map(Flags),
            size=st.integers(0, 5_000),
            action=st.sampled_from([IDLE, IDLE, IDLE, RESTORING, Action(Verb.ARCHIVE)]),
            refuse=st.sampled_from([0, 0, 0, 0, errno.EACCES, errno.EPERM, errno.EIO]),
            errno=st.sampled_from([0, 0, 0, 0, errno.EACCES]),
        ),
        max_size=130,
    )
)
async def test_only_releasable_idle_files_lose_their_data_and_each_file_is_counted_once(files: list[File]) -> None:
    world = Paper({b"/fsx/%03d" % n: file for n, file in enumerate(files)}, {b"/fsx"})
    before = {path: (file.flags, file.action) for path, file in world.files.items()}
    result = await _release(world)
    for path in world.released_paths:
        flags, action = before[path]
        assert flags.releasable
        assert action.idle
    left = sum(left.tally.files for left in result.left.values())
    assert result.released.files == len(world.released_paths)
    assert result.released.files + result.already.files + left + result.troubles.count == len(files)
    kept = [path for path, (flags, _) in before.items() if flags.releasable and path not in world.released_paths]
    for path in kept:
        file = world.files[path]
        assert file.refuse or file.errno or not file.size or not file.action.idle
