"""Warming end to end, over the simulated FSx in virtual time: what is asked for, how it ends, with which status."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish, Say, Word
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.units import Amount
from fsxwarm.sim.calls import Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import RELEASED, RESIDENT, Dataset, make
from fsxwarm.sim.faults import CallFault, Fault, share_of_files
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

MB = 10**6


class Stage:
    """A world, a run over it, and a listener that remembers."""

    def __init__(self, **spec: Any) -> None:
        self.spec = WorldSpec(**spec)
        self.world = World(self.spec)
        self.names = VirtualNamespace(self.world)
        self.paths: list[bytes] = []
        self.finished: dict[bytes, Finish] = {}
        self.words: list[Word] = []
        self.troubles: list[Trouble] = []
        self.ready_at: float | None = None

    def fill(self, files: int, size: int = MB, **more: Any) -> None:
        self.paths = make(self.names, Dataset(files, fixed(size), **more))

    def settled(self, finish: Finish) -> None:
        assert finish.entry.path not in self.finished
        self.finished[finish.entry.path] = finish

    def said(self, say: Say) -> None:
        self.words.append(say.word)

    def trouble(self, trouble: Trouble) -> None:
        self.troubles.append(trouble)

    def ready(self) -> None:
        assert self.ready_at is None
        self.ready_at = asyncio.get_running_loop().time()

    def warmer(
        self,
        wish: Wish | None = None,
        *,
        paths: Sequence[bytes] | None = None,
        listed: AsyncIterator[Sequence[bytes]] | None = None,
        **policy: Any,
    ) -> Warmer:
        clockwork = Clockwork(self.world)
        hsm, tree = SimHsm(clockwork, self.names), SimTree(clockwork, self.names)
        selection = Selection(tree, [self.names.mount.path] if paths is None else paths, listed=listed)
        return Warmer(tree, hsm, selection, Policy(**policy), wish or Wish(), self)

    def resident(self) -> int:
        return sum(not self.names.file(path).node.flags.released for path in self.paths)

    def outcomes(self, warmer: Warmer) -> dict[Outcome, int]:
        return {outcome: tally.files for outcome, tally in warmer.progress.settled.items() if tally.files}


def play(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(play())


def test_all_is_warmed_and_nothing_asked_for_twice() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(500, released=0.7)
        warmer = stage.warmer()
        assert await warmer.run() is Exit.DONE
        assert stage.resident() == 500
        assert stage.world.counts["duplicates"] == 0
        assert stage.outcomes(warmer)[Outcome.RESTORED] == stage.world.counts["restored"]
        assert sum(stage.outcomes(warmer).values()) == 500

    play(go)


def test_a_warm_tree_costs_no_request_and_no_look() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(300, released=0.0)
        warmer = stage.warmer()
        assert await warmer.run() is Exit.DONE
        assert stage.world.counts["requests"] == stage.world.counts["state"] == stage.world.counts["action"] == 0

    play(go)


def test_an_empty_folder_is_fine() -> None:
    async def go() -> None:
        assert await Stage().warmer().run() is Exit.DONE

    play(go)


def test_what_failed_is_named_with_its_reason_and_the_status_says_incomplete() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(400)
        stage.world.faults.restore.append(share_of_files(0.05, Fault.ACCESS_DENIED))
        warmer = stage.warmer()
        assert await warmer.run() is Exit.INCOMPLETE
        failed = {path for path, finish in stage.finished.items() if finish.outcome is Outcome.FAILED}
        assert failed == {path for path in stage.paths if stage.names.file(path).node.flags.released}
        assert {stage.finished[path].reason for path in failed} == {Reason.RESTORE_FAILED}
        assert {stage.finished[path].attempts for path in failed} == {3}

    play(go)


def test_a_fault_that_passes_is_retried() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(100)
        stage.world.faults.restore.append(share_of_files(0.3, Fault.ACCESS_DENIED, tries=2))
        assert await stage.warmer().run() is Exit.DONE
        assert stage.resident() == 100

    play(go)


def test_the_deadline_ends_it_and_what_is_in_flight_goes_on() -> None:
    async def go() -> None:
        stage = Stage(bandwidth=1e6)
        stage.fill(100)
        warmer = stage.warmer(Wish(deadline=30.0))
        began = asyncio.get_running_loop().time()
        assert await warmer.run() is Exit.DEADLINE
        assert asyncio.get_running_loop().time() - began == pytest.approx(30.0, abs=1.0)
        assert len(stage.finished) == 100
        assert warmer.progress.left_in_flight.files > 0
        await asyncio.sleep(1000)
        asked = sum(finish.attempts > 0 for finish in stage.finished.values())
        assert stage.resident() >= asked

    play(go)


def test_ctrl_c_stops_asking_settles_everything_and_running_again_resumes() -> None:
    async def go() -> None:
        stage = Stage(bandwidth=1e7)
        stage.fill(200)
        warmer = stage.warmer()
        task = asyncio.ensure_future(warmer.run())
        await asyncio.sleep(8)
        task.cancel()
        assert await task is Exit.INTERRUPTED
        assert len(stage.finished) == 200
        requests = stage.world.counts["requests"]
        await asyncio.sleep(5)
        assert stage.world.counts["requests"] == requests
        stage.finished.clear()
        assert await stage.warmer().run() is Exit.DONE
        assert stage.world.counts["duplicates"] == 0

    play(go)


def test_too_little_room_is_known_before_anything_is_asked_for() -> None:
    async def go() -> None:
        stage = Stage(osts=2, ost_size=60 * MB)
        stage.fill(200)
        warmer = stage.warmer()
        assert await warmer.run() is Exit.NO_ROOM
        assert stage.world.counts["requests"] == 0
        assert warmer.short_of is not None
        assert {finish.reason for finish in stage.finished.values()} == {Reason.NO_ROOM}

    play(go)


def test_fit_warms_in_order_as_far_as_there_is_room() -> None:
    async def go() -> None:
        stage = Stage(osts=2, ost_size=60 * MB, mdts=1)
        stage.fill(200)
        warmer = stage.warmer(Wish(fit=True))
        assert await warmer.run() is Exit.INCOMPLETE
        order = [finish.outcome for _, finish in sorted(stage.finished.items())]
        restored = stage.outcomes(warmer)[Outcome.RESTORED]
        assert restored == 114  # 120 MB less the reserve of 5 %
        assert order[:restored] == [Outcome.RESTORED] * restored

    play(go)


def test_no_reserve_asked_for_means_no_measuring() -> None:
    async def go() -> None:
        stage = Stage(osts=1, ost_size=50 * MB)
        stage.fill(45)
        assert await stage.warmer(Wish(reserve=Amount())).run() is Exit.DONE

    play(go)


def test_ready_is_told_once_when_the_head_of_the_order_is_there_and_the_rest_goes_on() -> None:
    async def go() -> None:
        stage = Stage(bandwidth=1e7)
        stage.fill(100)
        began = asyncio.get_running_loop().time()
        assert await stage.warmer(Wish(ready=0.2)).run() is Exit.DONE
        assert stage.ready_at is not None
        assert stage.ready_at - began < (asyncio.get_running_loop().time() - began) * 0.8
        assert stage.resident() == 100

    play(go)


def test_a_list_is_warmed_in_its_own_order_each_file_once_and_missing_ones_are_counted() -> None:
    async def go() -> None:
        stage = Stage(mdts=1)
        stage.fill(60)
        order = [*reversed(stage.paths), *stage.paths[:5], b"/fsx/nosuch"]

        async def listed() -> AsyncIterator[Sequence[bytes]]:
            yield order[:30]
            yield order[30:]

        warmer = stage.warmer(paths=[], listed=listed(), window=WindowPolicy(fixed=1))
        assert await warmer.run() is Exit.INCOMPLETE
        assert list(stage.finished) == list(reversed(stage.paths))
        assert [trouble.errno for trouble in stage.troubles] == [errno.ENOENT]

    play(go)


def test_flags_decide_and_odd_files_cost_the_others_nothing() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(120)
        top = stage.names.mount.path
        for name, flags in {
            b"lost": RELEASED | Flags.LOST,
            b"never": Flags(0),
            b"dirty": RESIDENT | Flags.DIRTY,
            b"pinned": RELEASED | Flags.NORELEASE,
            b"-dash: (0x0000000d) released\n\xff": RELEASED,
            b"empty": RELEASED,
        }.items():
            stage.names.make_file(top + b"/" + name, 0 if name == b"empty" else 4096, flags)
        stage.names.link(top + b"/pinned", top + b"/second-name")
        warmer = stage.warmer()
        assert await warmer.run() is Exit.INCOMPLETE
        bad = {path: finish for path, finish in stage.finished.items() if not finish.outcome.warm}
        assert {path: finish.reason for path, finish in bad.items()} == {top + b"/lost": Reason.LOST}
        assert stage.world.counts["duplicates"] == 0

    play(go)


def test_a_server_that_refuses_this_user_everything_ends_it_with_what_to_do() -> None:
    async def go() -> None:
        stage = Stage(users_may_restore=False)
        stage.fill(200)
        clockwork = Clockwork(stage.world)
        hsm, tree = SimHsm(clockwork, stage.names, Caller(1000, frozenset({1000}))), SimTree(clockwork, stage.names)
        warmer = Warmer(tree, hsm, Selection(tree, [stage.names.mount.path]), Policy(), Wish(), stage)
        with pytest.raises(FsxwarmError) as caught:
            await warmer.run()
        assert caught.value.kind is Kind.NO_PERMISSION
        assert stage.world.counts["requests"] < 100

    play(go)


def test_a_call_that_hangs_after_its_work_is_not_repeated() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(30)
        first = iter([CallFault.HANG_AFTER])
        stage.world.faults.call.append(lambda kind, _: next(first, None) if kind == "restore" else None)
        assert await stage.warmer().run() is Exit.DONE
        assert Word.CALL_HUNG in stage.words
        assert stage.world.counts["duplicates"] == 0

    play(go)


def test_a_large_tree_is_restored_with_few_flags_read() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(6000)
        warmer = stage.warmer()
        assert await warmer.run() is Exit.DONE
        assert stage.outcomes(warmer) == {Outcome.RESTORED: 6000}
        assert stage.world.counts["state"] < 600

    play(go)


def test_files_that_only_their_flags_tell_apart_get_their_outcome_all_the_same() -> None:
    async def go() -> None:
        stage = Stage()
        stage.fill(6000)
        lost, dirty, new = (stage.names.file(stage.paths[number]).node for number in (5000, 5100, 5200))
        lost.flags |= Flags.LOST
        dirty.flags |= Flags.DIRTY
        new.flags, new.unflushed = Flags(0), True
        warmer = stage.warmer()
        assert await warmer.run() is Exit.INCOMPLETE
        ends = [stage.finished[stage.paths[number]] for number in (5000, 5100, 5200)]
        assert [(end.outcome, end.reason) for end in ends] == [
            (Outcome.BLOCKED, Reason.LOST), (Outcome.BLOCKED, Reason.DIRTY), (Outcome.RESIDENT, None)
        ]  # fmt: skip
        assert stage.outcomes(warmer)[Outcome.RESTORED] == 5997

    play(go)
