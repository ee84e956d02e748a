"""The tree that a simulated FSx starts with."""

from __future__ import annotations

import random
from pathlib import Path

from fsxwarm.sim.layout import ASSOCIATIONS, fill, fixed, lognormal
from fsxwarm.sim.records import Record, Records

NOW = 1_800_000_000.0


def test_sizes_reach_from_4_kb_to_2_gb_and_half_of_them_are_below_1_mb() -> None:
    chance = random.Random(1)
    sizes = sorted(lognormal(chance) for _ in range(100_000))
    assert (sizes[0], sizes[-1]) == (4_000, 2_000_000_000)
    assert 900_000 < sizes[50_000] < 1_100_000


def test_the_same_seed_makes_the_same_tree(tmp_path: Path) -> None:
    trees = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        top = tmp_path / name
        top.mkdir()
        made = list(fill(top, 400, lognormal, seed=seed, now=NOW))
        trees.append([(str(path.relative_to(top)), path.stat().st_size) for path in made])
        assert {path.name for path in top.iterdir()} == set(ASSOCIATIONS)
        assert sum(path.stat().st_blocks for path in made) == 0
        assert {path.stat().st_mtime for path in made} == {NOW - 30 * 86400}
    assert trees[0] == trees[1] != trees[2]


def test_a_fixed_size_is_every_files(tmp_path: Path) -> None:
    assert {path.stat().st_size for path in fill(tmp_path, 7, fixed(0), seed=0, now=NOW)} == {0}


def test_records_come_back_as_they_were_kept_last(tmp_path: Path) -> None:
    first = Record(b"\x00\xff", b"/a\xff\n", 2**33, 7, 0x0D, 1, 2**40, 10**18 + 1, "NOOP")
    records = Records(tmp_path / "state")
    records.keep(first, first._replace(identity=b"b"))
    records.keep(first._replace(flags=0x09))
    records.forget(b"b")
    records.close()
    again = Records(tmp_path / "state")
    assert list(again) == [first._replace(flags=0x09)]
    again.close()
