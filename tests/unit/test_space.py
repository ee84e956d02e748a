"""How much may be restored: free space, less the reserve, and no more than the fullest target's even share."""

from __future__ import annotations

from fsxwarm.engine.space import measure
from fsxwarm.model.units import Amount
from fsxwarm.ports.hsm import Ost, Space

FIVE_PERCENT = Amount(percent=5.0)


def space(*free: int, total_each: int = 1000) -> Space:
    osts = tuple(Ost(f"OST{number:04x}", total_each, one) for number, one in enumerate(free))
    return Space(total_each * len(free), sum(free), osts)


def test_the_reserve_is_left_free() -> None:
    assert measure(space(500, 500), FIVE_PERCENT).available == 900
    assert measure(space(500, 500), Amount(bytes=1000)).available == 0


def test_the_fullest_target_bounds_what_fits() -> None:
    """With an even spread, the 50 bytes left on one of four targets, less its reserve, are reached first."""
    measured = measure(space(800, 800, 800, 100), FIVE_PERCENT)
    assert measured.bound_by_ost
    assert measured.available == (100 - 50) * 4


def test_no_room_is_never_negative() -> None:
    assert measure(space(10, 10), FIVE_PERCENT).available == 0


def test_servers_that_name_no_targets_are_judged_as_a_whole() -> None:
    assert measure(Space(1000, 500, ()), FIVE_PERCENT).available == 450
