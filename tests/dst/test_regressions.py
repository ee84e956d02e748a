"""What the simulation once found, kept as plans that say what happened: a seed draws another plan one day."""

from __future__ import annotations

import pytest

from dst.plan import CLEAN, COLD, Command, Deed, File, Plan
from dst.stage import play
from fsxwarm.model.hsm import Flags
from fsxwarm.model.policy import Policy
from fsxwarm.sim.inodes import LUSTRE_DEV
from fsxwarm.sim.spec import Costs, WorldSpec


def keeps_all_promises(plan: Plan) -> None:
    broken = play(plan).broken
    if broken is not None:
        raise broken


@pytest.mark.parametrize("after", [number / 7 for number in range(1, 60)])
def test_interrupted_at_a_time_that_is_no_binary_fraction(after: float) -> None:
    """The tick was due by one sum of floats and not yet by another: the loop spun without time passing."""
    plan = Plan(
        0,
        WorldSpec(agents=1, latency=2.0),
        tuple(File(b"/fsx/%d" % number, 1000) for number in range(4)),
        commands=(Command("preload", 0.05, (b"/fsx",), interrupt=after),),
    )
    keeps_all_promises(plan)


@pytest.mark.parametrize(
    ("version", "policy"),
    [
        ((2, 15, 8), Policy()),
        ((2, 16, 0), Policy()),
        ((2, 16, 0), Policy(skip_duplicates=frozenset({LUSTRE_DEV}))),
    ],
)
def test_unreadable_files_behind_a_refusal_are_not_asked_for_twice(version: tuple[int, ...], policy: Policy) -> None:
    """In company with a lost file they were queued before its refusal, which nobody could see, and asked for again.

    Where servers skip duplicates that does no harm, and happens to files that nobody has looked at.
    """
    unreadable = [File(b"/fsx/%d" % number, 30_000_000, mode=0o600) for number in range(6)]
    lost = File(b"/fsx/3-lost", 30_000_000, COLD | Flags.LOST, mode=0o600)
    plan = Plan(
        0,
        WorldSpec(agents=1, latency=1.0, version=version, costs=Costs(process=0.03)),
        (*unreadable, lost),
        commands=(Command("preload", 0.0, (b"/fsx",), root=False, policy=policy),),
    )
    keeps_all_promises(plan)


def test_a_file_replaced_by_a_resident_one_settles() -> None:
    """Whatever the outcome is called, nobody waits for a file that has another in its place."""
    plan = Plan(
        0,
        WorldSpec(agents=1, latency=5.0),
        (File(b"/fsx/a", 1_000_000), File(b"/fsx/b", 1_000_000, CLEAN)),
        commands=(Command("preload", 0.0, (b"/fsx",), policy=Policy(cap=30.0)),),
        deeds=(Deed(2.0, "overwrite", b"/fsx/a", number=5_000.0),),
    )
    keeps_all_promises(plan)
