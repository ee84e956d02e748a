"""Release until there is room: the oldest first, and no more than needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.engine.make_room import MakeRoom, Room
from fsxwarm.engine.release import Released, Releaser
from fsxwarm.engine.selection import Selection
from fsxwarm.model.hsm import Flags
from fsxwarm.model.units import Amount
from fsxwarm.sim import vloop
from paper import CLEAN, GONE, File, Paper


async def _make_room(
    world: Paper, target: Amount, *, dry_run: bool = False, used_before: int | None = None
) -> tuple[Room, Released]:
    releaser = Releaser(world, world, dry_run=dry_run)
    room = await MakeRoom(
        world,
        releaser,
        lambda: Selection(world, [b"/fsx"], whole=True),
        target=target,
        mount=b"/fsx",
        used_before=used_before,
    ).run()
    return room, releaser.result


def _world(count: int, *, size: int = 10_000, total: int | None = None) -> Paper:
    files = {b"/fsx/%04d" % n: File(size=size, used=(n * 7919) % count) for n in range(count)}
    return Paper(files, {b"/fsx"}, total=total or count * size)


def _ages(world: Paper) -> list[int]:
    return sorted(world.files[path].used for path in world.released_paths)


async def test_the_oldest_go_first_and_it_stops_there() -> None:
    world = _world(1_000)
    room, result = await _make_room(world, Amount(percent=20))
    assert room.reached
    assert result.released.files == 200
    assert _ages(world) == list(range(200))


async def test_enough_room_needs_no_walk() -> None:
    world = _world(10, total=10**6)
    room, result = await _make_room(world, Amount(bytes=500_000))
    assert (room.reached, result.released.files, [name for name, _ in world.calls]) == (True, 0, ["space", "space"])


async def test_files_that_must_stay_are_made_up_for_by_the_next_older_ones() -> None:
    world = _world(1_000)
    for file in world.files.values():
        if file.used < 150:
            file.flags |= Flags.DIRTY
    room, _ = await _make_room(world, Amount(percent=20))
    assert room.reached
    assert _ages(world) == list(range(150, 350))


async def test_what_cannot_be_reached_is_told() -> None:
    world = _world(100)
    for file in world.files.values():
        if file.used >= 30:
            file.flags |= Flags.NORELEASE
    room, result = await _make_room(world, Amount(percent=50))
    assert not room.reached
    assert result.released.files == 30
    assert sum(left.tally.files for left in result.left.values()) == 70


async def test_recent_files_are_kept_whatever_the_need() -> None:
    world = _world(100)
    room, result = await _make_room(world, Amount(percent=50), used_before=20)
    assert not room.reached
    assert _ages(world) == list(range(20))
    assert result.recent.files == 80


async def test_space_that_shows_up_late_is_not_released_twice() -> None:
    world = _world(1_000, size=10_240)
    world.shows = 0.0
    room, result = await _make_room(world, Amount(percent=20))
    assert room.reached
    assert result.released.files == 200
    assert room.after == room.before


async def test_a_dry_run_changes_nothing_and_finds_the_same_files() -> None:
    world = _world(1_000)
    room, result = await _make_room(world, Amount(percent=20), dry_run=True)
    assert (room.reached, result.released.files, world.released_paths) == (True, 200, [])


async def test_files_of_one_second_stop_at_the_byte() -> None:
    world = Paper({b"/fsx/%03d" % n: File(used=5) for n in range(300)}, total=3_000_000)
    room, result = await _make_room(world, Amount(bytes=1_000_000))
    assert room.reached
    assert result.released.files == 100


@pytest.mark.parametrize("size", [100_000, 10_240])
def test_sparse_files_bring_less_than_their_size_and_more_are_released(size: int) -> None:
    class Half(File):
        @property
        def blocks(self) -> int:
            return 0 if self.flags.released else self.size // 1024

    files: dict[bytes, File] = {b"/fsx/%04d" % n: Half(size=size, used=n) for n in range(1_000)}
    world = Paper(files, {b"/fsx"}, total=1_000 * size, shows=0.5)
    room, _ = vloop.run(_make_room(world, Amount(percent=10)))
    assert room.reached
    assert 200 <= len(world.released_paths) <= 205
    assert _ages(world) == list(range(len(world.released_paths)))


@given(
    st.lists(
        st.builds(
            File,
            flags=st.sampled_from([CLEAN, CLEAN, CLEAN, GONE, CLEAN | Flags.DIRTY]),
            size=st.integers(1_024, 9_999),
            used=st.integers(0, 40),
        ),
        max_size=120,
    ),
    st.integers(1, 100),
)
@settings(deadline=None)
async def test_it_takes_the_oldest_that_may_go_and_just_enough(files: list[File], percent: int) -> None:
    world = Paper({b"/fsx/%03d" % n: file for n, file in enumerate(files)}, {b"/fsx"}, total=600_000)
    free = (await world.space(b"/fsx")).free  # type: ignore[union-attr]  # a paper world always knows its space
    loose = sorted((file.used, path) for path, file in world.files.items() if file.flags.releasable)
    need = Amount(percent=percent).of(world.total) - free
    room, _ = await _make_room(world, Amount(percent=percent))
    released = sorted((world.files[path].used, path) for path in world.released_paths)
    assert released == loose[: len(released)]
    freed = sum(world.files[path].size for _, path in released)
    assert room.reached == (need <= sum(world.files[path].size for _, path in loose))
    if released:
        assert freed - world.files[released[-1][1]].size < need
