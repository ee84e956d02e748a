"""Shards: whose a file is, and which shard a task of Slurm or Kubernetes is."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre import helper
from fsxwarm.model.shard import Shard, parse_shard

INODES = st.integers(0, 2**64 - 1)


def all_of(count: int) -> list[Shard]:
    return [Shard(index, count) for index in range(1, count + 1)]


@given(INODES, st.integers(1, 300))
def test_each_file_has_exactly_one_shard(ino: int, count: int) -> None:
    assert sum(shard.owns(ino) for shard in all_of(count)) == 1


@given(INODES, st.integers(1, 10_000), st.data())
def test_the_helper_says_the_same(ino: int, count: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(1, count)), count)
    assert helper.owns(ino, (shard.index, shard.count)) == shard.owns(ino)


def test_whose_a_file_is_never_changes() -> None:
    assert [next(s.index for s in all_of(16) if s.owns(ino)) for ino in (1, 2, 0x200000401000001, 2**64 - 1)] == [
        10, 3, 8, 12,
    ]  # fmt: skip


@pytest.mark.parametrize("stride", [1, 2, 16, 256, 1 << 24, 1 << 32, 1 << 41])
@pytest.mark.parametrize("count", [2, 3, 16])
def test_neighbouring_inodes_are_divided_evenly(stride: int, count: int) -> None:
    taken = Counter(
        shard.index
        for number in range(4000)
        for shard in all_of(count)
        if shard.owns(0x200000400000000 + number * stride)
    )
    assert max(taken.values()) < 1.2 * 4000 / count
    assert min(taken[index] for index in range(1, count + 1)) > 0.8 * 4000 / count


@given(st.integers(0, 100_000), st.integers(1, 10_000))
def test_the_parts_of_a_window_are_enough_for_it(window: int, count: int) -> None:
    assert window <= Shard(1, count).part(window) * count < window + count


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("report.jsonl", "report.03-of-16.jsonl"),
        ("a.b.c", "a.b.03-of-16.c"),
        ("report", "report.03-of-16"),
        (".hidden", ".hidden.03-of-16"),
    ],
)
def test_a_name_tells_the_shard(file: str, name: str) -> None:
    assert Shard(3, 16).name(file) == name


STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_NTASKS": "4"}
ARRAY = {
    "SLURM_JOB_ID": "7",
    "SLURM_ARRAY_TASK_ID": "14",
    "SLURM_ARRAY_TASK_COUNT": "5",
    "SLURM_ARRAY_TASK_MIN": "10",
    "SLURM_ARRAY_TASK_MAX": "18",
    "SLURM_ARRAY_TASK_STEP": "2",
}


@pytest.mark.parametrize(
    ("text", "environ", "shard"),
    [
        ("3/16", {}, Shard(3, 16)),
        ("1/1", STEP, Shard(1, 1)),
        ("auto", STEP, Shard(3, 4)),
        ("auto/4", STEP, Shard(3, 4)),
        ("auto", {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, Shard(1, 2)),
        ("auto", STEP | {"SLURM_STEP_NUM_TASKS": "3"}, Shard(3, 3)),
        ("auto", ARRAY, Shard(3, 5)),
        ("auto", ARRAY | {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, Shard(3, 5)),
        ("auto", ARRAY | STEP, Shard(2 * 4 + 3, 5 * 4)),
        ("auto/16", {"JOB_COMPLETION_INDEX": "0"}, Shard(1, 16)),
        ("auto/16", {"JOB_COMPLETION_INDEX": "15"}, Shard(16, 16)),
    ],
)
def test_a_task_knows_its_shard(text: str, environ: Mapping[str, str], shard: Shard) -> None:
    assert parse_shard(text, environ) == shard


@pytest.mark.parametrize(
    ("text", "environ", "why"),
    [
        ("0/16", {}, "counted from 1 to 16"),
        ("17/16", {}, "no shard 17"),
        ("1/0", {}, "1 to 10,000 shards"),
        ("3", {}, "no shard: write 3/16"),
        ("-1/4", {}, "no shard"),
        ("٣/١٦", {}, "no shard"),
        ("", {}, "no shard"),
        ("auto", {}, "no task of Slurm or Kubernetes"),
        ("auto/5", STEP, "Slurm runs 4 tasks"),
        ("auto", {"JOB_COMPLETION_INDEX": "3"}, "write auto/16"),
        ("auto/3", {"JOB_COMPLETION_INDEX": "3"}, "no shard 4"),
        ("auto", STEP | {"SLURM_PROCID": "x"}, "SLURM_PROCID is 'x'"),
        ("auto", {**STEP, "SLURM_STEP_ID": ""}, "put srun before fsxwarm"),
        ("auto", ARRAY | {"SLURM_ARRAY_TASK_ID": "13"}, "not evenly spaced"),
        ("auto", ARRAY | {"SLURM_ARRAY_TASK_MAX": "30"}, "not evenly spaced"),
        ("auto", ARRAY | {"SLURM_ARRAY_TASK_STEP": "0"}, "not evenly spaced"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "1"}, "SLURM_ARRAY_TASK_COUNT is not set"),
    ],
)
def test_what_is_no_shard_is_said(text: str, environ: Mapping[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_shard(text, environ)
