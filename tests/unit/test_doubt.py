"""Flags are read before asking until they have told nothing new often enough."""

from __future__ import annotations

from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.model.doubt import Doubt
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.policy import Policy
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World

RELEASED = Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED
MB = 1 << 20


class Heard:
    """What became of each file."""

    def __init__(self) -> None:
        self.of: dict[bytes, Finish] = {}

    def settled(self, finish: Finish) -> None:
        self.of[finish.entry.path] = finish

    def said(self, say: Say) -> None:
        pass

    def trouble(self, trouble: Trouble) -> None:
        raise AssertionError(trouble)

    def ready(self) -> None:
        pass


def warm(files: dict[bytes, tuple[int, Flags]], *, new: frozenset[bytes] = frozenset()) -> tuple[Heard, World]:
    """Warm a folder of these files, by size and flags; `new` ones show no blocks though they are resident."""

    async def go() -> tuple[Heard, World]:
        world = World(WorldSpec())
        clockwork, names, heard = Clockwork(world), VirtualNamespace(world, b"/fsx"), Heard()
        for name, (size, flags) in files.items():
            names.make_file(b"/fsx/" + name, size, flags).node.unflushed = name in new
        tree = SimTree(clockwork, names)
        chosen = Selection(tree, [b"/fsx"])
        await Warmer(tree, SimHsm(clockwork, names), chosen, Policy(), Wish(reserve=None), heard).run()
        clockwork.stop()
        return heard, world

    return run(go())


def test_read_until_nothing_new_was_told_and_now_and_then_from_then_on() -> None:
    doubt = Doubt(3)
    for _ in range(3):
        assert doubt.about(MB)
        doubt.read(MB, surprise=False)
    asked = [doubt.about(MB) for _ in range(1000)]
    assert sum(asked) == 20
    assert not any(asked[:40])


def test_a_surprise_brings_the_reading_back_for_files_of_that_size() -> None:
    doubt = Doubt(1)
    doubt.read(MB, surprise=False)
    doubt.read(100, surprise=False)
    doubt.read(MB, surprise=True)
    assert doubt.about(MB)
    assert not doubt.about(100)


def test_a_large_tree_is_restored_with_few_flags_read() -> None:
    heard, world = warm({b"%05d" % number: (MB, RELEASED) for number in range(6000)})
    assert {finish.outcome for finish in heard.of.values()} == {Outcome.RESTORED}
    assert world.counts["state"] < 600


def test_files_that_only_their_flags_tell_apart_get_their_outcome_all_the_same() -> None:
    files = {b"%05d" % number: (MB, RELEASED) for number in range(6000)}
    files[b"05000"] = (MB, RELEASED | Flags.LOST)
    files[b"05100"] = (MB, RELEASED | Flags.DIRTY)
    files[b"05200"] = (MB, Flags(0))
    heard, _ = warm(files, new=frozenset({b"05200"}))
    lost, dirty, new = (heard.of[b"/fsx/" + name] for name in (b"05000", b"05100", b"05200"))
    assert (lost.outcome, lost.reason) == (Outcome.BLOCKED, Reason.LOST)
    assert (dirty.outcome, dirty.reason) == (Outcome.BLOCKED, Reason.DIRTY)
    assert new.outcome is Outcome.RESIDENT
    others = {finish.outcome for path, finish in heard.of.items() if path[-5:] not in {b"05000", b"05100", b"05200"}}
    assert others == {Outcome.RESTORED}
