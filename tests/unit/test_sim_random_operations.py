"""Whatever is done to the simulated servers, they do not contradict themselves, and all comes to an end."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.faults import Fault, Faults
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

CLEAN = Flags.EXISTS | Flags.ARCHIVED
STATES = [Flags(0), CLEAN, CLEAN | Flags.DIRTY, CLEAN | Flags.RELEASED, CLEAN | Flags.RELEASED, CLEAN | Flags.LOST]
VERBS = [Verb.RESTORE, Verb.RESTORE, Verb.RESTORE, Verb.RELEASE, Verb.CANCEL, Verb.ARCHIVE, Verb.REMOVE]


class Play:
    """Random operations on a small world."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        spec = WorldSpec(
            mdts=chance.choice([1, 2, 3]),
            agents=chance.choice([1, 2, 8]),
            max_requests=chance.choice([None, 1, 5]),
            bandwidth=1e6,
            latency=chance.choice([0.0, 0.5, 3.0]),
            loop=chance.choice([0.0, 10.0]),
            osts=2,
            ost_size=chance.choice([3_000_000, 10**12]),
            version=chance.choice([(2, 12), (2, 15, 8), (2, 16), (2, 17)]),
            mdt_threads=chance.choice([2, 128]),
            space_delay=chance.choice([0.0, 5.0]),
            request_timeout=chance.choice([20.0, 3600.0]),
        )
        self.world = World(spec, Faults([self.fault]))
        self.faulty = True
        self.now = 0.0
        self.nodes = [self.file() for _ in range(chance.randint(1, 30))]
        self.calls: list[Call] = []

    def fault(self, _node: Node, _tries: int) -> Fault | None:
        return self.chance.choice([*Fault]) if self.faulty and self.chance.random() < 0.2 else None

    def file(self) -> Node:
        return self.world.create(self.chance.choice([0, 10, 1_000_000, 5_000_000]), self.chance.choice(STATES))

    def step(self) -> None:
        chance, world = self.chance, self.world
        self.now += chance.choice([0.0, 0.0, 0.1, 1.0, 10.0])
        some = chance.sample(self.nodes, chance.randint(1, len(self.nodes)))
        one = some[0]
        match chance.randrange(14):
            case 0:
                self.calls.append(world.read(one, self.now))
            case 1:
                self.calls.append(world.write(one, chance.choice([0, 20, 2_000_000]), self.now))
            case 2:
                world.unlink(one, self.now)
                self.nodes[self.nodes.index(one)] = self.file()
            case 3:
                world.release_task(some, self.now)
            case 4:
                world.set_control(chance.choice([*Control]), self.now)
            case 5:
                world.stop_coordinators(3.0, self.now)
            case 6:
                world.kill_agents(0.5, self.now)
            case 7:
                (world.freeze_agents if chance.random() < 0.3 else world.thaw_agents)(self.now)
            case 8:
                world.set_agents(chance.choice([0, 1, 4]), self.now)
            case 9:
                self.calls.append(world.chmod(one, 0o600, self.now))
            case 10:
                world.reimport(one, 77, self.now)
            case _:
                caller = ROOT if chance.random() < 0.9 else Caller(1001, frozenset({1001}))
                self.calls.append(world.request(chance.choice(VERBS), [node.fid for node in some], caller, self.now))
        world.validate()

    def calm_down(self) -> None:
        """Let faults stop, and time pass until nothing happens any more."""
        self.faulty = False
        self.world.thaw_agents(self.now)
        self.world.set_agents(4, self.now)
        self.world.set_control(Control.ENABLED, self.now)
        while (when := self.world.next_event()) is not None:
            self.world.advance(when)
            self.world.validate()
        self.world.advance(self.world.now + 10.0)  # space comes back late


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_the_servers_never_contradict_themselves_and_come_to_rest(seed: int, steps: int) -> None:
    play = Play(random.Random(seed))
    for _ in range(steps):
        play.step()
    play.calm_down()
    assert all(call.errno is not None for call in play.calls), "no call hangs for ever"
    assert (play.world.restoring, play.world.agents.busy) == (0, 0)
    assert all(node.verb is Verb.NONE for node in play.world.nodes.values())
    used = sum(node.on_osts[1] for node in play.world.nodes.values() if node.on_osts)
    assert abs(sum(ost.used for ost in play.world.osts.all) - used) <= 4 * len(play.nodes)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_same_seed_plays_the_same(seed: int) -> None:
    def played() -> tuple[object, ...]:
        play = Play(random.Random(seed))
        for _ in range(40):
            play.step()
        play.calm_down()
        return play.world.now, dict(play.world.counts), [(n.flags, n.size, n.tries) for n in play.nodes]

    assert played() == played()
