"""Running the real engine over the simulated FSx in virtual time: an hour of warming in a second or so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.errors import Exit
from fsxwarm.model.entry import Trouble
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.datasets import Dataset, make
from fsxwarm.sim.faults import Faults
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.ports import SimHsm, SimTree
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.vloop import run
from fsxwarm.sim.world import World


class Quiet:
    """A listener that only counts."""

    def __init__(self) -> None:
        self.unsettled = 0

    def settled(self, finish: Finish) -> None:
        self.unsettled += not finish.outcome.warm

    def said(self, say: Say) -> None: ...

    def trouble(self, trouble: Trouble) -> None: ...

    def ready(self) -> None: ...


@dataclass(slots=True)
class Outcome:
    """What one warm took; seconds are virtual."""

    status: Exit
    seconds: float
    bound: float
    files: int
    bytes: int
    counts: dict[str, int] = field(default_factory=dict)
    deepest: int = 0
    requests: int = 0
    unsettled: int = 0

    @property
    def ratio(self) -> float:
        return self.seconds / self.bound


def warm(
    spec: WorldSpec, dataset: Dataset, *, window: WindowPolicy | None = None, faults: Faults | None = None
) -> Outcome:
    """Warm a dataset; the window is adaptive unless one is given."""

    async def go() -> Outcome:
        world = World(spec, faults)
        names = VirtualNamespace(world)
        paths = make(names, dataset)
        clockwork = Clockwork(world)
        hsm, tree = SimHsm(clockwork, names), SimTree(clockwork, names)
        policy = Policy(window or WindowPolicy(), stat_settles=spec.version >= (2, 15))
        listener = Quiet()
        warmer = Warmer(tree, hsm, Selection(tree, [names.mount.path]), policy, Wish(), listener)
        began = asyncio.get_running_loop().time()
        status = await warmer.run()
        seconds = asyncio.get_running_loop().time() - began
        world.validate()
        size = sum(names.file(path).size for path in paths)
        return Outcome(
            status,
            seconds,
            spec.lower_bound(len(paths), size),
            len(paths),
            size,
            dict(world.counts),
            world.deepest,
            warmer.requests,
            listener.unsettled,
        )

    return run(go())
