"""The simulated servers restore as Lustre does: order, refusals, duplicates, wedged compounds, failures, cancelling."""

from __future__ import annotations

import errno

import pytest

from fsxwarm.model.hsm import IDLE, WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.faults import Fault, Faults, files, share_of_files
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED
ALICE, BOB = Caller(1001, frozenset({1001})), Caller(1002, frozenset({1002}))
SPEC = WorldSpec(mdts=1, agents=2, bandwidth=1e6, latency=1.0)
V2_15, V2_16, V2_17 = (2, 15, 8), (2, 16), (2, 17)


def cold(world: World, count: int = 1, size: int = 1000, *, mdt: int = 0) -> list[Node]:
    return [world.create(size, COLD, mdt=mdt) for _ in range(count)]


def ask(world: World, nodes: list[Node], now: float = 0.0, caller: Caller = ROOT, verb: Verb = Verb.RESTORE) -> Call:
    return world.request(verb, [node.fid for node in nodes], caller, now)


def restore(world: World, *nodes: Node, now: float = 0.0, caller: Caller = ROOT) -> Call:
    return ask(world, list(nodes), now, caller)


def action(world: World, node: Node, now: float) -> Action:
    return world.action(node.fid, now)


def settle(world: World, until: float = 1e6) -> float:
    """Let everything happen; return when the last thing did."""
    last = world.now
    while (when := world.next_event()) is not None and when <= until:
        world.advance(when)
        world.validate()
        last = when
    return last


# -- one file ---------------------------------------------------------------------------------------------------------


def test_a_restore_takes_its_latency_and_leaves_the_file_clean() -> None:
    world = World(SPEC)
    (node,) = cold(world)
    assert restore(world, node).errno == 0
    world.advance(0.999)
    assert node.flags == COLD
    assert settle(world) == pytest.approx(1.0)
    assert node.flags == CLEAN
    assert action(world, node, 2.0) == IDLE


def test_a_restore_takes_as_long_as_its_bytes() -> None:
    world = World(SPEC)
    restore(world, *cold(world, size=5_000_000))
    assert settle(world) == pytest.approx(5.0)


def test_an_empty_file_is_restored_too() -> None:
    world = World(SPEC)
    (node,) = cold(world, size=0)
    restore(world, node)
    assert settle(world) == pytest.approx(1.0)
    assert not node.flags.released


def test_transfers_share_the_bandwidth_evenly() -> None:
    world = World(SPEC)
    short, long = cold(world, size=2_000_000) + cold(world, size=6_000_000)
    restore(world, short, long)
    world.advance(4.0)
    assert (short.flags, long.flags) == (CLEAN, COLD)
    assert settle(world) == pytest.approx(8.0), "alone, the long one gets all of it"


def test_no_more_transfers_run_than_there_are_agents() -> None:
    world = World(SPEC)
    restore(world, *cold(world, 5))
    assert settle(world) == pytest.approx(3.0)


def test_waiting_then_running_then_nothing() -> None:
    world = World(WorldSpec(mdts=1, agents=1, latency=1.0))
    first, second = cold(world, 2)
    restore(world, first, second)
    assert action(world, first, 0.0) == Action(Verb.RESTORE, running=True)
    assert action(world, second, 0.0) == Action(Verb.RESTORE)
    assert action(world, second, 1.0) == Action(Verb.RESTORE, running=True)
    assert action(world, first, 1.0) == action(world, second, 2.0) == IDLE


def test_small_files_jump_to_done_and_big_ones_report_every_few_seconds() -> None:
    world = World(WorldSpec(mdts=1, agents=1, bandwidth=1 << 20, latency=0.0, report_every=5.0))
    (node,) = cold(world, size=20 << 20)
    restore(world, node)
    seen = [action(world, node, second).moved >> 20 for second in (1.0, 4.0, 5.0, 7.0, 9.0, 10.0, 16.0)]
    assert seen == [0, 0, 5, 5, 5, 10, 16]


def test_what_more_runs_than_agents_has_moved_nothing() -> None:
    world = World(WorldSpec(mdts=1, agents=1, max_requests=3, latency=1.0))
    nodes = cold(world, 4)
    restore(world, *nodes)
    assert [action(world, node, 0.5).running for node in nodes] == [True, True, True, False]
    assert settle(world) == pytest.approx(4.0)


# -- many files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [(200, 1000), (200, 2_000_000), (200, 500_000), (2, 8_000_000)])
def test_the_lower_bound_is_reached(count: int, size: int) -> None:
    spec = WorldSpec(mdts=2, agents=8, bandwidth=1e6, latency=2.0)
    world = World(spec)
    for number in range(0, count, 50):
        some = [world.create(size, COLD, mdt=number // 50 % 2) for _ in range(min(50, count))]
        restore(world, *some)
    bound = spec.lower_bound(count, count * size)
    assert bound <= settle(world) <= 1.03 * bound + spec.latency


def test_a_request_takes_fifty_two_files_and_no_more() -> None:
    world = World(SPEC)
    nodes = cold(world, 53)
    assert restore(world, *nodes).errno == errno.E2BIG
    assert world.restoring == 0
    assert restore(world, *nodes[:52]).errno == 0
    assert world.restoring == 52


def test_a_file_named_twice_counts_once() -> None:
    world = World(SPEC)
    (node,) = cold(world)
    assert restore(world, node, node, node).errno == 0
    assert (world.restoring, world.counts["duplicates"]) == (1, 0)


def test_requests_start_in_their_order() -> None:
    world = World(WorldSpec(mdts=1, agents=1, latency=1.0))
    nodes = cold(world, 5)
    done: list[Node] = []
    world.on_data = lambda node, _: done.append(node)
    restore(world, *nodes[3:])
    restore(world, *nodes[:3])
    settle(world)
    assert done == nodes[3:] + nodes[:3]


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (CLEAN, 0),
        (Flags(0), 0),
        (Flags.EXISTS, 0),
        (CLEAN | Flags.LOST, 0),
        (CLEAN | Flags.NORELEASE, 0),
        (CLEAN | Flags.DIRTY, errno.EPERM),
        (COLD | Flags.LOST, errno.EPERM),
        (COLD | Flags.NORELEASE, 0),
    ],
)
def test_what_a_restore_of_each_kind_comes_to(flags: Flags, wanted: int) -> None:
    world = World(SPEC)
    node = world.create(1000, flags)
    assert restore(world, node).errno == wanted
    settle(world)
    assert node.flags == (flags if wanted else flags & ~Flags.RELEASED)


def test_the_server_stops_at_the_first_it_refuses() -> None:
    world = World(SPEC)
    first, bad, last = cold(world, 3)
    bad.flags |= Flags.LOST
    assert restore(world, first, bad, last).errno == errno.EPERM
    settle(world)
    assert [node.flags for node in (first, bad, last)] == [CLEAN, COLD | Flags.LOST, COLD]


def test_each_metadata_target_stops_for_itself() -> None:
    world = World(WorldSpec(mdts=2))
    first, bad, last = cold(world, 3)
    (other,) = cold(world, mdt=1)
    bad.flags |= Flags.LOST
    assert restore(world, first, bad, last, other).errno == errno.EPERM
    settle(world)
    assert [node.flags.released for node in (first, bad, last, other)] == [False, True, True, False]


def test_a_file_that_is_not_there_stops_a_request_too() -> None:
    world = World(SPEC)
    first, gone, last = cold(world, 3)
    world.unlink(gone, 0.0)
    assert restore(world, first, gone, last).errno == errno.ENOENT
    settle(world)
    assert [node.flags.released for node in (first, last)] == [False, True]


def test_what_stands_before_a_refused_file_starts_late() -> None:
    """A request that fails does not wake the coordinator: up to its loop's period passes."""
    world = World(WorldSpec(mdts=1, latency=1.0, loop=10.0))
    good, bad, other = cold(world, 3)
    bad.flags |= Flags.LOST
    restore(world, good, bad, now=1.0)
    assert action(world, good, 9.9) == Action(Verb.RESTORE)
    assert action(world, good, 10.0) == Action(Verb.RESTORE, running=True)
    restore(world, other, now=12.0)
    assert action(world, other, 12.0).running, "one that is taken wakes it"


def test_anybody_may_restore_unless_the_mask_says_no() -> None:
    world = World(SPEC)
    node = world.create(1000, COLD, caller=ALICE, mode=0)
    assert restore(world, node, caller=BOB).errno == 0
    world = World(WorldSpec(users_may_restore=False))
    node = world.create(1000, COLD, caller=ALICE)
    assert [restore(world, node, caller=caller).errno for caller in (BOB, ALICE, ROOT)] == [errno.EPERM] * 2 + [0]


# -- duplicates -------------------------------------------------------------------------------------------------------


def test_up_to_2_15_a_duplicate_hangs_until_that_restore_ends() -> None:
    world = World(WorldSpec(mdts=1, latency=1.0, version=V2_15))
    before, again, after = cold(world, 3)
    restore(world, again)
    call = restore(world, before, again, after, now=0.5)
    assert (call.errno, call.blocked_on) == (None, again)
    assert (world.counts["duplicates"], world.counts["blocked"]) == (1, 1)
    assert not action(world, before, 0.5).idle, "items before it are queued"
    assert action(world, after, 0.5).idle, "items after it are not"
    world.advance(1.0)
    assert call.errno == 0
    assert not action(world, after, 1.0).idle


def test_a_duplicate_that_hung_wedges_what_is_queued_behind_it() -> None:
    """Its request is recorded although the file is resident by then: a bad one in a compound."""
    world = World(WorldSpec(mdts=1, latency=1.0, version=V2_15))
    again, after = cold(world, 2)
    restore(world, again)
    restore(world, again, after)
    assert action(world, after, 1.0).wedged
    assert (action(world, again, 1.0), again.flags) == (IDLE, CLEAN)


def test_several_duplicates_hang_one_after_another() -> None:
    world = World(WorldSpec(mdts=1, latency=1.0, version=V2_15))
    (node,) = cold(world)
    restore(world, node)
    calls = [restore(world, node) for _ in range(3)]
    assert [call.errno for call in calls] == [None] * 3
    settle(world)
    assert [call.errno for call in calls] == [0] * 3
    assert (node.flags, world.restoring, world.coordinators[0].held) == (CLEAN, 0, 0)


def test_from_2_16_on_a_duplicate_is_skipped() -> None:
    world = World(WorldSpec(mdts=1, latency=1.0, version=V2_16))
    again, after = cold(world, 2)
    restore(world, again)
    assert restore(world, again, after).errno == 0
    assert (world.restoring, world.counts["duplicates"], world.counts["blocked"]) == (2, 1, 0)
    settle(world)
    assert (again.flags, after.flags) == (CLEAN, CLEAN)


def test_calls_that_hang_use_up_a_metadata_targets_threads() -> None:
    world = World(WorldSpec(mdts=2, latency=1.0, mdt_threads=2, version=V2_15))
    node, other = cold(world, 2)
    (elsewhere,) = cold(world, mdt=1)
    restore(world, node)
    restore(world, node)
    assert world.admit(0, 0.0).errno == 0
    restore(world, node)
    look, request = world.admit(0, 0.0), restore(world, other)
    assert (look.errno, request.errno, world.starved) == (None, None, True)
    assert (world.admit(1, 0.0).errno, restore(world, elsewhere).errno) == (0, 0), "only that target's"
    world.advance(1.0)
    assert (look.errno, request.errno, world.starved) == (0, 0, False)


# -- wedged and frozen ------------------------------------------------------------------------------------------------


def wedge(version: tuple[int, ...]) -> tuple[World, list[Node]]:
    world = World(WorldSpec(mdts=1, agents=8, latency=1.0, version=version, request_timeout=3600.0))
    nodes = cold(world, 4)
    world.stop_coordinators(5.0, 0.0)
    restore(world, *nodes)
    world.unlink(nodes[1], 1.0)
    world.advance(5.0)
    return world, nodes


def test_a_vanished_file_wedges_its_compound() -> None:
    world, (first, _, third, last) = wedge(V2_16)
    for node in (first, third, last):
        assert action(world, node, 1000.0) == Action(Verb.RESTORE, running=True, moved=WEDGED_MOVED)
        assert action(world, node, 1000.0).wedged
        assert node.flags == COLD
    world.validate()


def test_wedged_requests_end_with_the_timeout() -> None:
    world, (first, *_) = wedge(V2_15)
    assert action(world, first, 3604.9).wedged
    assert action(world, first, 3605.0) == IDLE
    assert (first.flags, first.failure) == (COLD, "timed out")


def test_a_cancel_and_a_new_restore_cure_a_wedged_file_at_once() -> None:
    world, (first, *_) = wedge(V2_15)
    assert ask(world, [first], 10.0, verb=Verb.CANCEL).errno == 0
    assert action(world, first, 10.0) == IDLE
    restore(world, first, now=10.0)
    world.advance(11.0)
    assert first.flags == CLEAN


def test_2_17_skips_the_bad_ones() -> None:
    world, (first, _, third, last) = wedge(V2_17)
    settle(world)
    assert [node.flags for node in (first, third, last)] == [CLEAN] * 3


def test_a_file_that_vanishes_while_it_is_restored_harms_nobody() -> None:
    world = World(SPEC)
    first, gone = cold(world, 2)
    restore(world, first, gone)
    world.unlink(gone, 0.5)
    settle(world)
    assert (first.flags, world.restoring, world.osts.all[0].used + world.osts.all[1].used) == (CLEAN, 0, 1000)


def test_an_agent_that_dies_leaves_its_bytes_frozen() -> None:
    world = World(WorldSpec(mdts=1, agents=1, max_requests=2, bandwidth=1 << 20, latency=0.0, report_every=1.0))
    victim, other = cold(world, size=10 << 20) + cold(world, size=1 << 20)
    restore(world, victim, other)
    world.kill_agents(1.0, 4.5)
    assert action(world, victim, 5.0) == action(world, victim, 3000.0) == Action(Verb.RESTORE, True, 4 << 20)
    assert other.flags == CLEAN, "a new agent takes the next one on, not that one"
    assert ask(world, [victim], 3000.0, verb=Verb.CANCEL).errno == 0
    restore(world, victim, now=3000.0)
    world.advance(3010.0)
    assert victim.flags == CLEAN


def test_frozen_requests_count_against_max_requests() -> None:
    world = World(WorldSpec(mdts=1, agents=2, max_requests=1, latency=10.0))
    victim, other = cold(world, 2)
    restore(world, victim, other)
    world.kill_agents(1.0, 1.0)
    assert action(world, other, 3000.0) == Action(Verb.RESTORE)
    assert action(world, other, 3602.0).running


def test_frozen_requests_end_with_the_timeout() -> None:
    world = World(WorldSpec(mdts=1, agents=1, latency=10.0))
    (node,) = cold(world)
    restore(world, node)
    world.kill_agents(1.0, 1.0)
    assert not action(world, node, 3600.0).idle
    assert action(world, node, 3601.0).idle


def test_stopped_agents_go_on_where_they_stopped() -> None:
    world = World(WorldSpec(mdts=1, agents=2, bandwidth=1e6, latency=1.0))
    small, big = cold(world) + cold(world, size=4_000_000)
    restore(world, small, big)
    world.freeze_agents(0.5)
    assert world.next_event() is None
    assert (small.flags, action(world, big, 100.0).running) == (COLD, True)
    world.thaw_agents(100.0)
    world.advance(100.6)
    assert small.flags == CLEAN
    assert settle(world) == pytest.approx(103.501, abs=0.01)


def test_what_stopped_agents_had_begun_ends_although_it_was_cancelled() -> None:
    world = World(WorldSpec(mdts=1, agents=1, max_requests=1, latency=1.0))
    begun, waiting = cold(world, 2)
    restore(world, begun, waiting)
    world.freeze_agents(0.5)
    assert ask(world, [begun, waiting], 1.0, verb=Verb.CANCEL).errno == 0
    assert [action(world, node, 1.0).idle for node in (begun, waiting)] == [False, True]
    world.thaw_agents(2.0)
    settle(world)
    assert (begun.flags, waiting.flags, world.restoring) == (CLEAN, COLD, 0)


# -- failures ---------------------------------------------------------------------------------------------------------

INVISIBLE = [Fault.OBJECT_MISSING, Fault.UNSUPPORTED_CLASS, Fault.ACCESS_DENIED, Fault.BUCKET_MISSING, Fault.DISK_FULL]


@pytest.mark.parametrize("fault", INVISIBLE)
def test_a_failed_restore_is_invisible_to_clients(fault: Fault) -> None:
    world = World(SPEC, Faults([files(lambda _: True, fault)]))
    (node,) = cold(world)
    assert restore(world, node).errno == 0
    assert not action(world, node, 0.5).idle
    world.advance(1.0)
    assert (action(world, node, 1.0), node.flags) == (IDLE, COLD)
    assert (node.failure, world.counts["failed"]) == (fault.value, 1)


def test_a_fault_may_pass_after_some_tries() -> None:
    world = World(SPEC, Faults([share_of_files(1.0, Fault.OBJECT_MISSING, tries=2)]))
    (node,) = cold(world)
    for second in range(3):
        assert node.flags == COLD
        restore(world, node, now=2.0 * second)
        world.advance(2.0 * second + 1.0)
    assert (node.flags, node.failure) == (CLEAN, None)


@pytest.mark.parametrize(("fault", "moved"), [(Fault.STUCK, 0), (Fault.DIES, 4 << 20), (Fault.WEDGED, WEDGED_MOVED)])
def test_faults_that_leave_a_request_running_for_ever(fault: Fault, moved: int) -> None:
    world = World(WorldSpec(mdts=1, bandwidth=8 << 20), Faults([files(lambda _: True, fault, tries=1)]))
    (node,) = cold(world, size=8 << 20)
    restore(world, node)
    assert action(world, node, 100.0) == Action(Verb.RESTORE, running=True, moved=moved)
    world.advance(3601.0)
    restore(world, node, now=3601.0)
    world.advance(3700.0)
    assert node.flags == CLEAN


def test_a_full_ost_fails_restores_while_the_file_system_has_room() -> None:
    world = World(WorldSpec(mdts=1, agents=4, osts=2, ost_size=10_000))
    big, fits = cold(world, size=11_000) + cold(world, size=9_000)
    restore(world, big, fits)
    settle(world)
    assert (big.failure, big.flags, fits.flags) == ("disk full", COLD, CLEAN)
    assert sorted(ost.free for ost in world.osts.all) == [1_000, 10_000]


def test_room_is_taken_when_a_restore_begins() -> None:
    world = World(WorldSpec(mdts=1, agents=4, osts=1, ost_size=10_000))
    first, second = cold(world, 2, size=6_000)
    restore(world, first, second)
    settle(world)
    assert (first.flags, second.failure) == (CLEAN, "disk full")


# -- the coordinator --------------------------------------------------------------------------------------------------


def test_disabled_takes_requests_and_starts_none() -> None:
    world = World(SPEC)
    world.set_control(Control.DISABLED, 0.0)
    (node,) = cold(world)
    assert restore(world, node).errno == 0
    assert action(world, node, 100.0) == Action(Verb.RESTORE)
    world.set_control(Control.ENABLED, 100.0)
    world.advance(101.0)
    assert node.flags == CLEAN


def test_a_cancel_is_not_heard_while_disabled() -> None:
    world = World(SPEC)
    world.set_control(Control.DISABLED, 0.0)
    (node,) = cold(world)
    restore(world, node)
    assert ask(world, [node], verb=Verb.CANCEL).errno == 0
    assert action(world, node, 1.0) == Action(Verb.RESTORE)
    world.set_control(Control.ENABLED, 2.0)
    assert (action(world, node, 2.0), node.flags) == (IDLE, COLD)


def test_shut_down_it_takes_nothing_and_still_tells() -> None:
    world = World(SPEC)
    (node,) = cold(world)
    world.set_control(Control.SHUTDOWN, 0.0)
    assert restore(world, node).errno == errno.EAGAIN
    assert (action(world, node, 1.0), world.state(node.fid, 1.0).flags) == (IDLE, COLD)
    warm = world.create(10, CLEAN)
    assert ask(world, [warm], verb=Verb.RELEASE).errno == 0


def test_without_agents_requests_wait_for_one() -> None:
    world = World(WorldSpec(mdts=1, agents=0, latency=1.0))
    (node,) = cold(world)
    assert restore(world, node).errno == 0
    assert action(world, node, 100.0) == Action(Verb.RESTORE)
    world.set_agents(1, 100.0)
    world.advance(101.0)
    assert node.flags == CLEAN


def test_agents_and_bandwidth_change_in_the_middle() -> None:
    world = World(WorldSpec(mdts=1, agents=4, bandwidth=4e6, latency=1.0))
    restore(world, *cold(world, 16, size=1_000_000))
    world.advance(1.0)
    world.set_agents(2, 1.0)
    world.set_bandwidth(1e6, 1.0)
    assert settle(world) == pytest.approx(13.0, rel=0.01)


def test_the_deepest_queue_is_kept() -> None:
    world = World(WorldSpec(mdts=2))
    restore(world, *cold(world, 30))
    settle(world)
    assert (world.deepest, world.coordinators[1].deepest, world.restoring) == (30, 0, 0)


# -- cancelling -------------------------------------------------------------------------------------------------------


def test_only_root_cancels() -> None:
    world = World(SPEC)
    node = world.create(1000, COLD, caller=ALICE)
    restore(world, node)
    assert ask(world, [node], caller=ALICE, verb=Verb.CANCEL).errno == errno.EPERM
    assert not action(world, node, 0.5).idle


def test_cancelled_files_stay_released_and_may_be_asked_for_again() -> None:
    world = World(WorldSpec(mdts=1, agents=1, bandwidth=1e6))
    running, waiting = cold(world, 2, size=10_000_000)
    restore(world, running, waiting)
    assert ask(world, [running, waiting], 5.0, verb=Verb.CANCEL).errno == 0
    assert (world.restoring, world.osts.all[0].used) == (0, 0)
    assert restore(world, running, now=6.0).errno == 0
    assert settle(world) == pytest.approx(16.0)
    assert (running.flags, waiting.flags) == (CLEAN, COLD)


def test_there_may_be_nothing_to_cancel() -> None:
    world = World(SPEC)
    assert ask(world, cold(world), verb=Verb.CANCEL).errno == 0
