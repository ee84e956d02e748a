"""A shard: the part of all files that one of several machines takes, so that each file is taken by exactly one.

Whose a file is follows from its inode number alone, which Lustre makes of the file's FID: it is the same on every
client, for every name that the file has (hard links), and a folder lists it, so that files of others are not even
stat'ed. Nobody has to be asked, folders of any size are divided evenly, and renaming changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST: Final = 10_000
"""Shards that there may be."""

_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: neighbours come to lie far apart
_32_BITS: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `index` of `count`, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def owns(self, ino: int) -> bool:
        """Whether the file with this inode number is this shard's."""
        folded = ino ^ ino >> 32  # numbers may differ in high bits only: FIDs of several clients do
        return (folded * _GOLDEN >> 32 & _32_BITS) % self.count == self.index - 1

    def part(self, whole: int) -> int:
        """One shard's part of a number that all shards share evenly, rounded up."""
        return -(-whole // self.count)

    def name(self, file: str) -> str:
        """A file name that tells the shard: `report.jsonl` becomes `report.03-of-16.jsonl`."""
        stem, ending = _parted(file)
        return f"{stem}.{self.index:0{len(str(self.count))}}-of-{self.count}{ending}"


WHOLE: Final = Shard(1, 1)
"""The only shard, which is everything."""


def is_named_after(name: str, file: str) -> bool:
    """Whether a file name is what `Shard.name` makes of `file`, for any shard."""
    stem, ending = _parted(file)
    return re.fullmatch(re.escape(stem) + r"\.[0-9]{1,5}-of-[0-9]{1,5}" + re.escape(ending), name) is not None


def _parted(file: str) -> tuple[str, str]:
    stem, dot, ending = file.rpartition(".")
    return (stem, dot + ending) if dot and stem else (file, "")


def parse_shard(text: str, environ: Mapping[str, str]) -> Shard:
    """Read what `--shard` says: `3/16`; `auto`, by what Slurm set for this task; `auto/16` where only the task is told.

    ValueError, with a text for people, for anything else, and where the environment does not tell.
    """
    if text == "auto":
        return _found(environ, None)
    if match := re.fullmatch(r"auto/([0-9]{1,9})", text, re.ASCII):
        return _found(environ, int(match[1]))
    if match := re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text, re.ASCII):
        return _checked(int(match[1]), int(match[2]), text)
    raise ValueError(f"{text!r} is no shard: write 3/16 for the third of sixteen, or auto in a task of Slurm")


def _found(environ: Mapping[str, str], count: int | None) -> Shard:
    """The shard of this task: of an array, of a step, of both, or of a Kubernetes Job."""
    step, array = _of_step(environ), _of_array(environ)
    if step is not None or array is not None:
        outer, inner = array or Shard(1, 1), step or Shard(1, 1)
        shard = _checked((outer.index - 1) * inner.count + inner.index, outer.count * inner.count, "auto")
        if count not in (None, shard.count):
            raise ValueError(f"auto/{count}: Slurm runs {shard.count} tasks")
        return shard
    if environ.get("JOB_COMPLETION_INDEX"):
        if count is None:
            raise ValueError("auto: Kubernetes does not tell how many there are: write auto/16 for 16 completions")
        return _checked(_number(environ, "JOB_COMPLETION_INDEX") + 1, count, f"auto/{count}")
    raise ValueError("auto: this is no task of Slurm or Kubernetes: start it with srun, or write 3/16")


def _of_step(environ: Mapping[str, str]) -> Shard | None:
    """The task of `srun`. A batch script has its variables too, but is only one process, whatever they say."""
    if not environ.get("SLURM_PROCID"):
        return None
    started = environ.get("SLURM_STEP_ID") or environ.get("SLURM_STEPID")
    tasks = _number(environ, "SLURM_STEP_NUM_TASKS" if environ.get("SLURM_STEP_NUM_TASKS") else "SLURM_NTASKS", 1)
    if environ.get("SLURM_JOB_ID") and not started:
        if tasks > 1:
            raise ValueError(f"auto: {tasks} tasks were asked for, but none was started: put srun before fsxwarm")
        return Shard(1, 1)
    return _checked(_number(environ, "SLURM_PROCID") + 1, tasks, "auto")


def _of_array(environ: Mapping[str, str]) -> Shard | None:
    """The task of a job array. Its numbers must be evenly spaced: else a task cannot tell how many come before it."""
    if not environ.get("SLURM_ARRAY_TASK_ID"):
        return None
    task, count = _number(environ, "SLURM_ARRAY_TASK_ID"), _number(environ, "SLURM_ARRAY_TASK_COUNT")
    first, step = _number(environ, "SLURM_ARRAY_TASK_MIN"), _number(environ, "SLURM_ARRAY_TASK_STEP", 1)
    last = _number(environ, "SLURM_ARRAY_TASK_MAX", first + step * (count - 1))
    before, odd = divmod(task - first, step) if step else (0, 1)
    if odd or last != first + step * (count - 1):
        raise ValueError("auto: the array's numbers are not evenly spaced: write --array=0-15, or --shard 3/16")
    return _checked(before + 1, count, "auto")


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name, "")
    if not text and default is not None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        raise ValueError(f"auto: {name} is {text!r}, which is no number" if text else f"auto: {name} is not set")
    return int(text)


def _checked(index: int, count: int, text: str) -> Shard:
    if not 1 <= count <= MOST:
        raise ValueError(f"{text!r}: there may be 1 to {MOST:,} shards, not {count:,}")
    if not 1 <= index <= count:
        raise ValueError(f"{text!r}: there is no shard {index}: they are counted from 1 to {count}")
    return Shard(index, count)
