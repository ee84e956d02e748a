"""The simulated servers release, archive, mark and are used by others as Lustre has it."""

from __future__ import annotations

import errno

import pytest

from fsxwarm.model.hsm import IDLE, Action, Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.faults import Fault, Faults, files
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED
ALICE, BOB = Caller(1001, frozenset({1001})), Caller(1002, frozenset({1002, 1001}))
SPEC = WorldSpec(mdts=1, agents=2, bandwidth=1e6, latency=1.0, osts=1, ost_size=10**9)


def ask(world: World, verb: Verb, *nodes: Node, caller: Caller = ROOT, now: float = 0.0) -> Call:
    return world.request(verb, [node.fid for node in nodes], caller, now)


def release(world: World, *nodes: Node, caller: Caller = ROOT, now: float = 0.0) -> Call:
    return ask(world, Verb.RELEASE, *nodes, caller=caller, now=now)


def settle(world: World) -> None:
    while (when := world.next_event()) is not None:
        world.advance(when)
        world.validate()


# -- release ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (CLEAN, 0),
        (COLD, 0),
        (Flags(0), errno.EPERM),
        (Flags.EXISTS, errno.EPERM),
        (CLEAN | Flags.DIRTY, errno.EPERM),
        (CLEAN | Flags.NORELEASE, errno.EPERM),
        (CLEAN | Flags.LOST, errno.EPERM),
        (CLEAN | Flags.NOARCHIVE, 0),
    ],
)
def test_what_a_release_of_each_kind_comes_to(flags: Flags, wanted: int) -> None:
    world = World(SPEC)
    node = world.create(1000, flags)
    assert release(world, node).errno == wanted
    assert node.flags == (flags if wanted else flags | Flags.RELEASED)
    assert world.lost_data == []


def test_a_release_goes_file_by_file_until_one_is_refused() -> None:
    world = World(WorldSpec(mdts=2))
    first, last = world.create(10, CLEAN, mdt=1), world.create(10, CLEAN, mdt=0)
    bad = world.create(10, CLEAN | Flags.DIRTY, mdt=1)
    assert release(world, first, bad, last).errno == errno.EPERM
    assert [node.flags.released for node in (first, bad, last)] == [True, False, False]


def test_a_write_not_flushed_yet_keeps_a_file() -> None:
    world = World(SPEC)
    node = world.create(10, CLEAN)
    node.unflushed = True
    assert release(world, node).errno == errno.EPERM


@pytest.mark.parametrize(
    ("mode", "caller", "wanted"),
    [
        (0o644, ALICE, 0),
        (0o444, ALICE, 0),
        (0o644, BOB, errno.EACCES),
        (0o664, BOB, 0),
        (0o666, Caller(1003, frozenset({1003})), 0),
        (0o664, Caller(1003, frozenset({1003})), errno.EACCES),
        (0o000, ROOT, 0),
    ],
)
def test_who_may_release(mode: int, caller: Caller, wanted: int) -> None:
    world = World(SPEC)
    node = world.create(10, CLEAN, caller=ALICE, mode=mode)
    assert release(world, node, caller=caller).errno == wanted


def test_a_release_of_a_file_being_restored_hangs_and_then_releases_it_again() -> None:
    world = World(SPEC)
    node = world.create(10, COLD)
    ask(world, Verb.RESTORE, node)
    call = release(world, node, now=0.5)
    assert (call.errno, call.blocked_on) == (None, node)
    settle(world)
    assert (call.errno, node.flags, world.counts["restored"], world.counts["released"]) == (0, COLD, 1, 1)


def test_a_release_gives_space_back_sooner_or_later() -> None:
    world = World(WorldSpec(osts=1, ost_size=10_000, space_delay=30.0))
    node = world.create(4_000, CLEAN)
    release(world, node, now=1.0)
    assert world.osts.all[0].free == 6_000
    world.advance(30.9)
    assert world.osts.all[0].free == 6_000
    world.advance(31.0)
    assert world.osts.all[0].free == 10_000


def test_a_large_file_lies_on_all_osts() -> None:
    world = World(WorldSpec(osts=4, ost_size=10**12))
    world.create(4 << 30, CLEAN)
    world.create(1 << 30, CLEAN)
    assert sorted(ost.used >> 30 for ost in world.osts.all) == [1, 1, 1, 2]


# -- flags ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "change", "wanted"),
    [
        (Flags(0), Flags.NORELEASE, 0),
        (Flags(0), Flags.NOARCHIVE, 0),
        (Flags(0), Flags.EXISTS, 0),
        (Flags(0), Flags.ARCHIVED, 0),
        (Flags(0), Flags.LOST, errno.EINVAL),
        (Flags(0), Flags.DIRTY, errno.EINVAL),
        (CLEAN, Flags.LOST, 0),
        (CLEAN, Flags.DIRTY, 0),
        (COLD, Flags.LOST, 0),
        (COLD, Flags.NORELEASE, 0),
        (COLD, Flags.DIRTY, errno.EINVAL),
    ],
)
def test_which_flags_can_be_set(flags: Flags, change: Flags, wanted: int) -> None:
    world = World(SPEC)
    node = world.create(10, flags)
    if wanted:
        with pytest.raises(OSError, match="Invalid argument") as refused:
            world.change(node.fid, change, 0, 0, 0.0)
        assert refused.value.errno == wanted
        assert node.flags == flags
    else:
        world.change(node.fid, change, 0, 0, 0.0)
        assert node.flags == flags | change
        world.change(node.fid, 0, change & ~flags, 0, 0.0)
        assert node.flags == flags


# -- archive ----------------------------------------------------------------------------------------------------------


def test_an_archive_takes_its_time_and_makes_a_file_releasable() -> None:
    world = World(SPEC)
    node = world.create(5_000_000)
    assert ask(world, Verb.ARCHIVE, node).errno == 0
    assert (world.action(node.fid, 1.0), node.flags) == (Action(Verb.ARCHIVE, running=True), Flags.EXISTS)
    assert release(world, node, now=1.0).errno == errno.EPERM
    settle(world)
    assert (world.action(node.fid, 9.0), node.flags) == (IDLE, CLEAN)
    assert release(world, node, now=9.0).errno == 0
    assert world.lost_data == []


def test_what_is_written_while_it_is_archived_stays_dirty() -> None:
    world = World(SPEC)
    node = world.create(5_000_000)
    ask(world, Verb.ARCHIVE, node)
    world.write(node, 6_000_000, 1.0)
    settle(world)
    assert node.flags == CLEAN | Flags.DIRTY
    ask(world, Verb.ARCHIVE, node, now=20.0)
    settle(world)
    assert node.flags == CLEAN


def test_archiving_is_roots_and_respects_noarchive() -> None:
    world = World(SPEC)
    node = world.create(10, caller=ALICE)
    assert ask(world, Verb.ARCHIVE, node, caller=ALICE).errno == errno.EPERM
    never = world.create(10, Flags.NOARCHIVE)
    assert ask(world, Verb.ARCHIVE, never).errno == errno.EPERM


# -- others -----------------------------------------------------------------------------------------------------------


def test_a_reader_waits_for_the_restore_that_it_starts() -> None:
    world = World(SPEC)
    node = world.create(10, COLD)
    call = world.read(node, 0.0)
    assert (call.errno, world.action(node.fid, 0.0).restoring) == (None, True)
    assert ask(world, Verb.RESTORE, node).errno is None, "a reader's restore is a restore"
    world.advance(1.0)
    assert (call.errno, node.flags) == (0, CLEAN)


def test_a_reader_gets_enodata_each_time_anew_when_the_restore_fails() -> None:
    world = World(SPEC, Faults([files(lambda _: True, Fault.OBJECT_MISSING)]))
    node = world.create(10, COLD)
    for start in (0.0, 10.0):
        call = world.read(node, start)
        world.advance(start + 1.0)
        assert (call.errno, node.flags) == (errno.ENODATA, COLD)
    assert node.tries == 2


def test_a_reader_of_a_lost_file_gets_enodata_at_once() -> None:
    world = World(SPEC)
    assert world.read(world.create(10, COLD | Flags.LOST), 0.0).errno == errno.ENODATA


def test_a_reader_of_a_resident_file_does_not_wait() -> None:
    world = World(SPEC)
    assert world.read(world.create(10, CLEAN), 0.0).errno == 0


def test_a_writer_of_a_released_file_restores_it_first_and_leaves_it_dirty() -> None:
    world = World(SPEC)
    node = world.create(10, COLD)
    call = world.write(node, 20, 0.0)
    assert (call.errno, node.size) == (None, 10)
    world.advance(1.0)
    assert (call.errno, node.size, node.flags, world.osts.all[0].used) == (0, 20, CLEAN | Flags.DIRTY, 20)


def test_a_writer_of_a_file_never_archived_leaves_no_mark() -> None:
    world = World(SPEC)
    node = world.create(10)
    world.write(node, 20, 0.0)
    assert node.flags == Flags(0)


def test_a_change_of_mode_waits_for_a_restore_and_starts_none() -> None:
    world = World(SPEC)
    node = world.create(10, COLD)
    assert world.chmod(node, 0o600, 0.0).errno == 0
    assert world.restoring == 0
    ask(world, Verb.RESTORE, node)
    call = world.chmod(node, 0o640, 0.5)
    assert (call.errno, node.mode) == (None, 0o600)
    world.advance(1.0)
    assert (call.errno, node.mode) == (0, 0o640)


def test_a_release_task_takes_what_may_be_released_and_leaves_the_rest() -> None:
    world = World(SPEC)
    clean, dirty, cold, busy = (world.create(10, flags) for flags in (CLEAN, CLEAN | Flags.DIRTY, COLD, COLD))
    ask(world, Verb.RESTORE, busy)
    assert world.release_task([clean, dirty, cold, busy], 0.5) == 1
    assert [node.flags for node in (clean, dirty, cold)] == [COLD, CLEAN | Flags.DIRTY, COLD]


def test_a_changed_object_makes_a_clean_file_cold_and_leaves_a_dirty_one() -> None:
    world = World(SPEC)
    clean, dirty = world.create(10, CLEAN), world.create(10, CLEAN | Flags.DIRTY)
    for node in (clean, dirty):
        world.reimport(node, 30, 0.0)
    assert [(node.flags, node.size) for node in (clean, dirty)] == [(COLD, 30), (CLEAN | Flags.DIRTY, 10)]
    ask(world, Verb.RESTORE, clean)
    settle(world)
    assert clean.flags == CLEAN


def test_data_that_only_fsx_had_is_found_missing() -> None:
    """The real flags can be forced, too: that a release loses data then is what tests must see."""
    world = World(SPEC)
    node = world.create(10, CLEAN)
    world.write(node, 20, 0.0)
    world.change(node.fid, 0, int(Flags.DIRTY), 0, 0.0)
    assert release(world, node).errno == 0
    assert world.lost_data == [node]
    with pytest.raises(AssertionError, match="released without a copy"):
        world.validate()


def test_a_schedule_happens_in_time() -> None:
    world = World(SPEC)
    node = world.create(10, CLEAN)
    world.at(5.0, lambda: world.unlink(node, world.now))
    world.advance(4.9)
    assert not node.gone
    world.advance(5.0)
    assert node.gone
    with pytest.raises(FileNotFoundError):
        world.state(node.fid, 5.0)
