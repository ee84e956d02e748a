"""What is counted and said of a warming, over simulated servers on a virtual clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from fsxwarm.cli.progress import line_of
from fsxwarm.cli.saying import Saying
from fsxwarm.cli.snapshot import Snapshot, busiest, snapshot
from fsxwarm.engine.account import Account
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.errors import Exit
from fsxwarm.model.entry import Entry
from fsxwarm.model.hsm import Flags
from fsxwarm.model.mdt import LaneId
from fsxwarm.model.messages import Say, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.model.tally import Tally
from fsxwarm.sim import vloop
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.faults import Fault, Faults, share_of_files
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED


@dataclass
class Run:
    """A warming that has ended, with what could be seen of it each second."""

    code: Exit
    account: Account
    warmer: Warmer
    seen: list[Snapshot] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def _warmed(
    files: dict[bytes, Flags],
    *,
    spec: WorldSpec | None = None,
    faults: Faults | None = None,
    wish: Wish | None = None,
    policy: Policy | None = None,
) -> Run:
    async def main() -> Run:
        world = World(spec or WorldSpec(latency=1.0), faults)
        names, clockwork = VirtualNamespace(world), Clockwork(world)
        names.make_folder(b"/fsx/data")
        for path, flags in files.items():
            names.make_file(path, 10_000, flags)
        tree, hsm = SimTree(clockwork, names), SimHsm(clockwork, names)
        saying = Saying()
        account = Account(say=saying.said, ready=saying.ready)
        warmer = Warmer(tree, hsm, Selection(tree, [b"/fsx/data"]), policy or Policy(), wish or Wish(), account)
        seen: list[Snapshot] = []
        lines: list[str] = []

        async def watch() -> None:
            now = asyncio.get_running_loop().time
            while True:
                await asyncio.sleep(1.0)
                seen.append(snapshot(warmer, account, now()))
                lines.extend(saying.due(seen[-1], now()))

        watching = asyncio.create_task(watch())
        code = await warmer.run()
        watching.cancel()
        lines.extend(saying.rest())
        return Run(code, account, warmer, seen, lines)

    return vloop.run(main())


def _names(count: int) -> list[bytes]:
    return [b"/fsx/data/%04d" % number for number in range(count)]


def test_what_is_cold_at_the_end_is_counted_by_reason_and_named() -> None:
    lost, dirty, bare, good = _names(4)
    files = {lost: COLD | Flags.LOST, dirty: COLD | Flags.DIRTY, bare: Flags.RELEASED, good: COLD}
    run = _warmed(files)
    assert run.code is Exit.INCOMPLETE
    assert {key: (cold.tally.files, cold.first) for key, cold in run.account.cold.items()} == {
        (Outcome.BLOCKED, Reason.LOST): (1, [lost]),
        (Outcome.BLOCKED, Reason.DIRTY): (1, [dirty]),
        (Outcome.BLOCKED, Reason.NOT_ARCHIVED): (1, [bare]),
    }


def test_names_are_kept_of_the_first_alone() -> None:
    faults = Faults(restore=[share_of_files(1.0, Fault.OBJECT_MISSING)])
    run = _warmed(dict.fromkeys(_names(300), COLD), faults=faults)
    cold = run.account.cold[Outcome.FAILED, Reason.RESTORE_FAILED]
    assert cold.tally == Tally(300, 3_000_000)
    assert len(cold.first) == 10
    assert run.warmer.progress.left_in_flight == Tally(), "what has failed is not in flight any more"


def test_files_that_fail_do_not_make_the_others_wait() -> None:
    """They were once taken for slow ones, and each look came later than the one before: hours instead of minutes."""
    faults = Faults(restore=[share_of_files(0.5, Fault.OBJECT_MISSING)])
    run = _warmed(dict.fromkeys(_names(2_000), COLD), faults=faults)
    assert run.account.cold[Outcome.FAILED, Reason.RESTORE_FAILED].tally.files > 900
    assert run.warmer.progress.ended is not None
    assert run.warmer.progress.ended < 600.0


def test_much_the_same_is_said_once_in_a_while() -> None:
    (seen,) = _warmed({b"/fsx/data/a": COLD}).seen[-1:]
    saying = Saying()
    lines = []
    for second in range(3_600):
        saying.said(_said(Word.RETRY, b"/fsx/a"))
        lines += saying.due(seen, float(second))
    assert 5 <= len(lines) <= 15
    assert sum(int(line.split()[0].replace(",", "")) for line in lines + saying.rest()) == 3_600


def test_requests_that_hang_are_counted_as_well_as_their_files() -> None:
    (seen,) = _warmed({b"/fsx/data/a": COLD}).seen[-1:]
    names = [b"/fsx/%d" % number for number in range(32)]
    one, alone, two = Saying(), Saying(), Saying()
    one.said(_said(Word.CALL_HUNG, *names))
    assert one.due(seen, 0.0) == ["a request for 32 files hangs in the kernel; they are watched, such as /fsx/0"]
    alone.said(_said(Word.CALL_HUNG, b"/fsx/a"))
    assert alone.due(seen, 0.0) == ["a request for 1 file hangs in the kernel; it is watched: /fsx/a"]
    for _ in range(2):
        two.said(_said(Word.CALL_HUNG, *names))
    assert two.due(seen, 0.0) == ["2 requests for 64 files hang in the kernel; they are watched, such as /fsx/0"]


def test_a_snapshot_follows_the_run() -> None:
    run = _warmed(dict.fromkeys(_names(500), COLD) | {b"/fsx/data/warm": CLEAN})
    assert run.code is Exit.DONE
    shares = [seen.share for seen in run.seen]
    assert shares == sorted(shares)
    middle = run.seen[len(run.seen) // 2]
    assert 0 < middle.share < 1
    assert middle.already == 1
    assert middle.found.files == 501
    assert 0 < middle.in_flight <= middle.window
    assert middle.in_flight == sum(lane.in_flight for lane in middle.lanes)
    assert "of 5.01 MB" in line_of(middle)
    assert "501 files" in line_of(middle)


def test_an_empty_folder_is_no_division_by_zero() -> None:
    run = _warmed({})
    assert run.code is Exit.DONE
    assert all(seen.share == 0.0 and line_of(seen) for seen in run.seen)


def test_readiness_is_said_once() -> None:
    run = _warmed(dict.fromkeys(_names(300), COLD), wish=Wish(ready=0.3))
    assert run.account.is_ready
    assert len([line for line in run.lines if line.startswith("ready")]) == 1


def test_files_on_one_of_several_targets_are_worth_a_word_once() -> None:
    (seen,) = _warmed({b"/fsx/data/a": COLD}).seen[-1:]
    saying = Saying()
    assert saying.due(replace(seen, lopsided=None), 0.0) == []
    (line,) = saying.due(replace(seen, lopsided=1), 1.0)
    assert "MDT1" in line
    assert saying.due(replace(seen, lopsided=1), 2.0) == []


@pytest.mark.parametrize(
    ("settled", "lopsided"),
    [({0: 600, 1: 500}, None), ({0: 10, 1: 990}, 1), ({0: 5, 1: 95}, None), ({0: 5_000}, None)],
)
def test_a_target_stands_out_where_it_has_nearly_all_of_many_files(
    settled: dict[int, int], lopsided: int | None
) -> None:
    lanes = Counter({LaneId(7, mdt): files for mdt, files in settled.items()})
    assert busiest(lanes) == lopsided


def _said(word: Word, *paths: bytes, seconds: float = 5.0) -> Say:
    return Say(word, tuple(Entry(path, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0o100644) for path in paths), seconds)


@pytest.mark.parametrize("word", list(Word))
def test_each_word_is_one_line_that_no_name_can_break(word: Word) -> None:
    saying = Saying()
    saying.said(_said(word, b"/fsx/a\nb\x1b[31m\xff", b"/fsx/c"))
    (line,) = saying.rest()
    assert line.isprintable()
    assert saying.rest() == []


def test_stalled_are_those_that_do_not_move_now() -> None:
    """Each of a few files stalls once and is cured: a running total would count on to the end."""
    faults = Faults(restore=[lambda _, tried: Fault.STUCK if not tried else None])
    run = _warmed(dict.fromkeys(_names(3), COLD), faults=faults, policy=Policy(may_cancel=True))
    assert run.code is Exit.DONE
    stuck = [seen for seen in run.seen if seen.stalled]
    assert stuck
    assert max(seen.stalled for seen in stuck) == 3
    assert run.seen[-1].stalled == 0
    assert "3 stalled" in line_of(next(seen for seen in stuck if seen.stalled == 3))
    assert all(seen.stalled <= seen.in_flight for seen in run.seen)


def test_where_nothing_moves_that_is_said_instead_of_a_rate_of_nothing() -> None:
    faults = Faults(restore=[lambda node, _: Fault.STUCK if node.fid.oid % 2 else None])
    run = _warmed(dict.fromkeys(_names(50), COLD), faults=faults, policy=Policy(give_up=400.0))
    lines = [line_of(seen) for seen in run.seen if seen.stalled and seen.stalled == seen.in_flight]
    assert lines
    assert all("all that is in flight has stalled" in line for line in lines)
    assert not [line for line in lines if "files/s" in line]
    assert not [line for line in map(line_of, run.seen) if "0 files/s, 0 B/s" in line and "the limit" in line]
