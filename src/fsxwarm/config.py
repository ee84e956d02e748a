"""What can be set from outside, with its units and its defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.units import Amount, parse_amount, parse_duration


class Backend(StrEnum):
    """How Lustre's HSM is spoken to."""

    AUTO = "auto"
    """Natively where that works, else by `lfs`."""
    NATIVE = "native"
    LFS = "lfs"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run. Each field can be overridden by a variable `FSXWARM_<FIELD>` of the environment."""

    backend: Backend = Backend.AUTO
    """Lustre's own calls without a process (native), the lfs program (lfs), or the former where it works (auto)."""

    lfs: str = "lfs"
    """The lfs program: a name to be found in PATH, or a path."""

    mounts: str = "/proc/self/mounts"
    """A mount table to be read after the machine's own: how a simulated FSx makes itself known."""

    connections: str = "/proc/fs/lustre/mdc"
    """A folder of connections to metadata targets, read with the machine's own: a simulated FSx has them elsewhere."""

    lfs_parallel: int = 8
    """lfs processes at a time."""

    call_deadline: float = 60.0
    """Seconds that one call to the file system may take before it is abandoned."""

    helpers: int = 2
    """Processes that walk and stat, at most: little work has one."""

    window_start: int = 64
    """Files in flight at the beginning of a preload."""

    window_floor: int = 4
    """Files in flight at the least, however slow FSx is."""

    window_ceiling: int = 5000
    """Files in flight at the most: every one of them costs the metadata server something (LDLM locks)."""

    attempts: int = 3
    """Times a restore is asked for before a file counts as failed."""

    reserve: Amount = Amount(percent=5.0)  # noqa: RUF009 - Amount is frozen
    """Space that a preload leaves free: a percentage of the file system, or bytes."""

    release_unchecked: bool = False
    """Whether `release --until-free` may release files that cannot be looked up in S3."""

    def __post_init__(self) -> None:
        if not self.window_floor <= self.window_start <= self.window_ceiling:
            raise ValueError(
                f"the window must start between its floor and its ceiling, not {self.window_start} in"
                f" {self.window_floor}…{self.window_ceiling}"
            )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Take the defaults, changed by the variables in `environ`; FsxwarmError USAGE names a bad one."""
        return cls.from_texts(environ, variable)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], called: Callable[[str], str]) -> Settings:
        """Take the defaults, changed by what `texts` has under the names by which fields are `called`."""
        values: dict[str, object] = {}
        for field in fields(cls):
            text = texts.get(called(field.name), "")
            if not text:
                continue
            try:
                values[field.name] = _READERS[str(field.type)](text)
            except ValueError as error:
                raise FsxwarmError(
                    Kind.USAGE, f"{called(field.name)}: {error}", hint="change it, or leave it out"
                ) from None
        try:
            return cls(**values)  # type: ignore[arg-type]  # each value was read by its field's own reader
        except ValueError as error:
            start, floor, ceiling = map(called, ("window_start", "window_floor", "window_ceiling"))
            raise FsxwarmError(Kind.USAGE, str(error), hint=f"change {start}, {floor} or {ceiling}") from None


def variable(field: str) -> str:
    """The variable of the environment that changes a setting."""
    return f"FSXWARM_{field.upper()}"


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None
    if not 1 <= count <= 1_000_000:  # noqa: PLR2004 - beyond any use
        raise ValueError(f"{text!r} is not between 1 and 1,000,000")
    return count


def _seconds(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"{text!r} leaves no time at all")
    return seconds


def _backend(text: str) -> Backend:
    try:
        return Backend(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(Backend)}") from None


def _yes_or_no(text: str) -> bool:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    try:
        return words[text.lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither yes nor no") from None


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "Backend": _backend,
    "str": str,
    "bool": _yes_or_no,
    "int": _count,
    "float": _seconds,
    "Amount": parse_amount,
}
