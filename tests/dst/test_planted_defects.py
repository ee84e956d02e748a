"""The simulation can fail: each planted defect breaks a promise at the seed that found it, and the product does not."""

from __future__ import annotations

import pytest

from dst.defects import DEFECTS, Defect, catch
from dst.plan import draw
from dst.stage import play

BY_NAME = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)


@BY_NAME
def test_a_planted_defect_is_caught(defect: Defect) -> None:
    caught = catch(defect, defect.seed, 1)
    assert caught is not None, "search for a new seed: make simulate-defects"


@pytest.mark.parametrize("seed", sorted({defect.seed for defect in DEFECTS}))
def test_without_the_defect_the_same_seed_keeps_all_promises(seed: int) -> None:
    assert play(draw(seed)).broken is None


def test_there_are_enough_of_them() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 15
