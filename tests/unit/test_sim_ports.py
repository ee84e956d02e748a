"""The ports over a simulated world, on virtual time: waiting, deadlines, costs, rights, faults."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.mdt import lane_of
from fsxwarm.ports.hsm import CallHungError, Reply
from fsxwarm.ports.tree import Batch, Filters, Place
from fsxwarm.sim import vloop
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.faults import CallFault, Faults, calls_between, share_of_calls
from fsxwarm.sim.layout import fixed
from fsxwarm.sim.lfs.kernel import Kind
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import Costs, WorldSpec
from fsxwarm.sim.world import World

T = TypeVar("T")

CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED
ALICE, BOB = Caller(1001, frozenset({1001})), Caller(1002, frozenset({1002}))
EVERYTHING = Filters()
A_SECOND_EACH = WorldSpec(latency=1.0)


@dataclass
class Site:
    world: World
    names: VirtualNamespace
    clockwork: Clockwork

    def hsm(self, caller: Caller = ROOT, deadline: float = 60.0) -> SimHsm:
        return SimHsm(self.clockwork, self.names, caller, deadline=deadline)

    def tree(self, caller: Caller = ROOT) -> SimTree:
        return SimTree(self.clockwork, self.names, caller)

    def files(self, *names: bytes, flags: Flags = COLD, size: int = 10_000) -> list[bytes]:
        paths = [b"/fsx/" + name for name in names]
        for path in paths:
            self.names.make_file(path, size, flags)
        return paths


def on_a_site(work: Callable[[Site], Awaitable[T]], spec: WorldSpec = A_SECOND_EACH, faults: Faults | None = None) -> T:
    async def main() -> T:
        world = World(spec, faults)
        result = await work(Site(world, VirtualNamespace(world), Clockwork(world)))
        world.validate()
        return result

    return vloop.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


def test_time_passes_by_itself_on_the_loop() -> None:
    async def work(site: Site) -> None:
        (path,) = site.files(b"a")
        assert await site.hsm().restore([path]) == Reply(0)
        await asyncio.sleep(0.99)
        assert await site.hsm().states([path]) == [COLD]
        await asyncio.sleep(0.02)
        assert site.world.counts["restored"] == 1, "nobody had to look"
        assert await site.hsm().states([path]) == [CLEAN]

    on_a_site(work)


def test_a_duplicate_comes_back_when_the_restore_ends() -> None:
    async def work(site: Site) -> None:
        (path,) = site.files(b"a")
        await site.hsm().restore([path])
        assert await site.hsm().restore([path]) == Reply(0)
        assert now() == pytest.approx(1.0)

    on_a_site(work)


def test_a_call_that_hangs_is_abandoned_at_its_deadline_and_may_end_later() -> None:
    async def work(site: Site) -> None:
        (path,) = site.files(b"a")
        hsm = site.hsm(deadline=5.0)
        await hsm.restore([path])
        with pytest.raises(CallHungError) as hung:
            await hsm.restore([path])
        assert (now(), hsm.abandoned) == (5.0, 1)
        assert hung.value.ended is not None
        assert await hung.value.ended == Reply(0)
        await asyncio.sleep(0)
        assert (now(), hsm.abandoned) == (20.0, 0)

    on_a_site(work, WorldSpec(latency=20.0))


@pytest.mark.parametrize("fault", [CallFault.HANG, CallFault.HANG_AFTER])
def test_a_hanging_request_has_done_its_work_or_not(fault: CallFault) -> None:
    async def work(site: Site) -> None:
        (path,) = site.files(b"a")
        hsm = site.hsm(deadline=5.0)
        with pytest.raises(CallHungError):
            await hsm.restore([path])
        assert await hsm.states([path]) == [CLEAN if fault is CallFault.HANG_AFTER else COLD]
        assert hsm.abandoned == 1

    on_a_site(work, faults=Faults(call=[calls_between(0.0, 1.0, fault, kinds=frozenset({"restore"}))]))


def test_looks_hang_and_fail_too() -> None:
    rules = [
        calls_between(0.0, 1.0, CallFault.HANG, kinds=frozenset({"state", "stat"})),
        calls_between(0.0, 1.0, CallFault.EIO, kinds=frozenset({"action", "space", "version"})),
    ]

    async def work(site: Site) -> None:
        (path,) = site.files(b"a")
        assert await site.hsm().actions([path]) == [Trouble(path, errno.EIO, "Input/output error")]
        assert isinstance(await site.hsm().space(b"/fsx"), Trouble)
        assert isinstance(await site.hsm().version(), Trouble)
        tree = site.tree()
        stats, state = await asyncio.gather(tree.stat([path]), site.hsm().states([path]), return_exceptions=True)
        assert stats == [Trouble(path, errno.ETIMEDOUT, "no answer")]
        assert isinstance(state, CallHungError)
        assert tree.abandoned == 1

    on_a_site(work, faults=Faults(call=list(rules)))


def test_single_files_of_a_look_may_fail() -> None:
    rule = share_of_calls(0.5, CallFault.EIO, kinds=frozenset({"file"}), seed=1)

    async def work(site: Site) -> None:
        paths = site.files(*(b"%d" % number for number in range(100)))
        answers = await site.hsm().states(paths)
        failed = [answer for answer in answers if isinstance(answer, Trouble)]
        assert {trouble.errno for trouble in failed} == {errno.EIO}
        assert 30 < len(failed) < 70

    on_a_site(work, faults=Faults(call=[rule]))


def test_eagain_and_eio_of_a_request_queue_nothing() -> None:
    rules = [
        calls_between(0.0, 1.0, CallFault.EAGAIN, kinds=frozenset({"restore"})),
        calls_between(1.0, 2.0, CallFault.EIO, kinds=frozenset({"restore"})),
    ]

    async def work(site: Site) -> None:
        paths = site.files(b"a")
        assert (await site.hsm().restore(paths)).errno == errno.EAGAIN
        await asyncio.sleep(1.0)
        assert (await site.hsm().restore(paths)).errno == errno.EIO
        assert (site.world.restoring, site.world.counts["restore requests"]) == (0, 0)

    on_a_site(work, faults=Faults(call=list(rules)))


def test_calls_cost_what_the_spec_says() -> None:
    costs = Costs(stat=0.001, state=0.01, action=0.02, request=0.001, process=0.5)

    async def took(call: Awaitable[object]) -> float:
        started = now()
        await call
        return now() - started

    async def work(site: Site) -> None:
        paths = site.files(*(b"%d" % number for number in range(10)), flags=CLEAN)
        hsm, tree = site.hsm(), site.tree()
        assert await took(hsm.states(paths)) == pytest.approx(0.6)
        assert await took(hsm.actions(paths)) == pytest.approx(0.7)
        assert await took(hsm.released(paths)) == pytest.approx(0.51)
        assert await took(hsm.restore(paths)) == pytest.approx(0.51)
        assert await took(tree.stat(paths)) == pytest.approx(0.01)

    on_a_site(work, WorldSpec(costs=costs))


def test_a_deep_queue_slows_looks_and_restores_for_everyone() -> None:
    spec = WorldSpec(mdts=1, agents=10, latency=0.1, costs=Costs(per_queued=1e-5))

    async def seconds(site: Site, window: int) -> float:
        paths = site.files(*(b"%d" % number for number in range(2000)))
        hsm = site.hsm()
        at = 0
        while at < len(paths) or site.world.restoring:
            room = window - site.world.restoring
            if room >= 10 and at < len(paths):
                await hsm.restore(paths[at : at + min(room, 50)])
                at += min(room, 50)
            else:
                await asyncio.sleep(0.01)
        return now()

    shallow = on_a_site(lambda site: seconds(site, 20), spec)
    deep = on_a_site(lambda site: seconds(site, 2000), spec)
    assert shallow == pytest.approx(20.0, rel=0.1)
    assert deep > 1.2 * shallow

    async def look(site: Site) -> None:
        paths = site.files(*(b"%d" % number for number in range(50)))
        await site.hsm().restore(paths)
        started = now()
        await site.hsm().actions(paths)
        assert now() - started == pytest.approx(50 * 50 * 1e-5 * 1.1, rel=0.2)

    on_a_site(look, spec)


def test_one_client_asks_for_so_many_files_a_second() -> None:
    async def work(site: Site) -> None:
        paths = site.files(*(b"%d" % number for number in range(200)))
        hsm = site.hsm()
        await asyncio.gather(*(hsm.restore(paths[at : at + 50]) for at in range(0, 200, 50)))
        assert now() == pytest.approx(2.0)

    on_a_site(work, WorldSpec(client_rate=100.0))


def test_calls_hang_when_a_metadata_target_has_no_thread_left() -> None:
    async def work(site: Site) -> None:
        a, b = site.files(b"a", b"b")
        hsm = site.hsm()
        await hsm.restore([a])
        calls = [asyncio.create_task(hsm.restore([a])) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await hsm.states([b]) == [COLD]
        assert now() == pytest.approx(10.0), "the look waited for the restore, too"
        await asyncio.gather(*calls)

    on_a_site(work, WorldSpec(latency=10.0, mdt_threads=2))


def test_rights_are_the_callers() -> None:
    async def work(site: Site) -> None:
        site.names.make_folder(b"/fsx/private", uid=1001, mode=0o700)
        site.names.make_file(b"/fsx/private/f", 10_000, COLD, caller=ALICE)
        site.names.make_file(b"/fsx/secret", 10_000, COLD, caller=ALICE, mode=0o600)
        both = [b"/fsx/private/f", b"/fsx/secret"]
        assert await site.hsm(ALICE).states(both) == [COLD, COLD]
        assert [getattr(answer, "errno", 0) for answer in await site.hsm(BOB).states(both)] == [errno.EACCES] * 2
        answers = await site.hsm(BOB).released(both)
        assert [getattr(answer, "errno", answer) for answer in answers] == [errno.EACCES, True]
        assert (await site.hsm(BOB).restore(both[1:])).errno == 0, "restoring needs no right but to name it"
        assert (await site.hsm(BOB).restore(both[:1])).errno == errno.EACCES
        await asyncio.sleep(2.0)
        assert (await site.hsm(BOB).release(both[1:])).errno == errno.EACCES
        assert (await site.hsm(BOB).cancel(both[1:])).errno == errno.EPERM
        assert [t and t.errno for t in await site.hsm(BOB).pin(both[1:], on=True)] == [errno.EACCES]
        assert await site.hsm(ALICE).pin(both[1:], on=True) == [None]
        (batch,) = [b async for b in site.tree(BOB).walk(_place(b"/fsx/private"), EVERYTHING)]
        assert [(trouble.path, trouble.errno) for trouble in batch.troubles] == [(b"/fsx/private", errno.EACCES)]

    on_a_site(work)


def _place(path: bytes) -> Place:
    return Place(path, is_dir=True, is_file=False, dev=0, fstype="lustre", mount=b"/fsx", source="")


def test_what_is_not_on_lustre_is_told_apart() -> None:
    async def work(site: Site) -> None:
        site.names.make_local_file(b"/tmp/local")
        site.names.make_local_file(b"/fsx/fifo", Kind.FIFO)
        (cold,) = site.files(b"cold")
        hsm = site.hsm()
        answers = await hsm.states([b"/tmp/local", b"/fsx/fifo", b"/fsx", b"/fsx/gone"])
        assert [getattr(answer, "errno", 0) for answer in answers] == [errno.ENOTTY] * 3 + [errno.ENOENT]
        replies = [await hsm.restore([path]) for path in (b"/tmp/local", b"/fsx/fifo", b"/fsx")]
        assert [reply.errno for reply in replies] == [errno.ENODATA, 4, 4]
        assert (await hsm.restore([cold, b"/tmp/local"])).errno == errno.EINVAL
        assert site.world.restoring == 0
        place = await site.tree().resolve(b"/tmp")
        assert isinstance(place, Place)
        assert (place.fstype, place.mount) == ("ext4", b"/")
        assert isinstance(await hsm.space(b"/tmp"), Trouble)

    on_a_site(work)


def test_resolve_follows_links_wherever_they_lead() -> None:
    async def work(site: Site) -> None:
        site.names.make_folder(b"/fsx/a/b")
        site.files(b"a/b/f")
        site.names.symlink(b"a/b", b"/fsx/relative")
        site.names.symlink(b"/fsx/relative/f", b"/tmp/link")
        site.names.symlink(b"loop", b"/fsx/loop")
        wanted: Iterable[tuple[bytes, bytes]] = [
            (b"/tmp/link", b"/fsx/a/b/f"),
            (b"/fsx/relative/", b"/fsx/a/b"),
            (b"/fsx/a/./b/..", b"/fsx/a"),
            (b"/", b"/"),
            (b"/fsx/a/b/../../relative/f", b"/fsx/a/b/f"),
        ]
        for path, real in wanted:
            place = await site.tree().resolve(path)
            assert isinstance(place, Place)
            assert place.path == real
        for path, number in ((b"/fsx/loop", errno.ELOOP), (b"/tmp/link/", errno.ENOTDIR), (b"/no", errno.ENOENT)):
            trouble = await site.tree().resolve(path)
            assert isinstance(trouble, Trouble)
            assert trouble.errno == number

    on_a_site(work)


def test_blocks_prove_what_they_prove_on_lustre() -> None:
    async def work(site: Site) -> None:
        sizes = {b"empty": 0, b"tiny": 512, b"small": 513, b"big": 10_000}
        for name, size in sizes.items():
            site.files(b"warm-" + name, flags=CLEAN, size=size)
            site.files(b"cold-" + name, flags=COLD, size=size)
        site.names.file(site.files(b"new", flags=Flags(0))[0]).node.unflushed = True
        batches = [b async for b in site.tree().walk(_place(b"/fsx"), EVERYTHING, whole=True)]
        blocks = {e.path[5:]: e.blocks for b in batches for e in b.items if isinstance(e, Entry)}
        assert [blocks[b"warm-" + name] for name in sizes] == [0, 1, 2, 20]
        assert [blocks[b"cold-" + name] for name in sizes] == [0, 1, 1, 1]
        assert blocks[b"new"] == 1

    on_a_site(work)


def test_inode_numbers_tell_the_metadata_target() -> None:
    async def work(site: Site) -> None:
        for number in range(4):
            site.names.make_folder(b"/fsx/%d/below" % number)
            (path,) = site.files(b"%d/below/f" % number)
            (entry,) = _entries([b async for b in site.tree().walk(_place(b"/fsx/%d" % number), EVERYTHING)])
            assert lane_of(entry.key).mdt == site.names.file(path).node.mdt == number % 3

    on_a_site(work, WorldSpec(mdts=3))


def _entries(batches: Iterable[Batch]) -> list[Entry]:
    return [item for batch in batches for item in batch.items if isinstance(item, Entry)]


def test_datasets_are_the_same_by_seed() -> None:
    def made(seed: int) -> list[tuple[bytes, int, Flags, int]]:
        world = World(WorldSpec())
        names = VirtualNamespace(world)
        dataset = Dataset(1000, released=0.5, per_folder=50, time=10**9, age_spread=100, seed=seed)
        paths = make(names, dataset)
        assert sorted(paths) == sorted(names.walk())
        files = [names.file(path) for path in paths]
        assert {file.node.mdt for file in files} == {0, 1}
        assert all(10**9 - 100 <= file.mtime <= 10**9 for file in files)
        assert 400 < sum(file.node.flags.released for file in files) < 600
        return [(path, file.size, file.node.flags, file.mtime) for path, file in zip(paths, files, strict=True)]

    assert made(1) == made(1) != made(2)


def test_a_walk_of_a_dataset_counts_what_is_warm() -> None:
    async def work(site: Site) -> None:
        make(site.names, Dataset(5000, fixed(10_000), released=0.0))
        batches = [b async for b in site.tree().walk(_place(b"/fsx"), EVERYTHING)]
        runs = [item for batch in batches for item in batch.items if isinstance(item, Resident)]
        assert sum(run.files for run in runs) == 5000
        assert len(runs) < 20

    on_a_site(work)


def test_others_use_the_tree_meanwhile() -> None:
    async def work(site: Site) -> None:
        a, b = site.files(b"a", b"b")
        names, hsm = site.names, site.hsm()
        reader = names.read(a, now())
        await asyncio.sleep(1.0)
        assert (reader.errno, await hsm.states([a])) == (0, [CLEAN])
        names.link(a, b"/fsx/a2")
        names.unlink(a, now())
        assert await hsm.states([b"/fsx/a2"]) == [CLEAN]
        names.rename(b, b"/fsx/a2", now())
        (state,) = await hsm.states([b"/fsx/a2"])
        assert (state, len(site.world.nodes)) == (COLD, 1)
        names.write(b"/fsx/a2", 5, now(), time=77)
        await asyncio.sleep(1.0)
        assert await hsm.states([b"/fsx/a2"]) == [CLEAN | Flags.DIRTY]
        assert names.file(b"/fsx/a2").mtime == 77

    on_a_site(work)
