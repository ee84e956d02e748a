"""What the environment names, and whether it can be meant: a setting that is passed over silently costs a night."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from fsxwarm.config import Settings, variable
from fsxwarm.errors import FsxwarmError, Kind, reason

_OURS: Final = "FSXWARM_"
_ALONE: Final = (
    "FSXWARM_CONFIG",
    "FSXWARM_DAEMON",
    "FSXWARM_DAEMON_SOCKET",
    "FSXWARM_DEBUG",
    "FSXWARM_MUNGE_SOCKET",
    "FSXWARM_SIM_UID",
    "FSXWARM_SYSTEM_CALLS",
    "FSXWARM_WARM_OPTIONS",
)
"""Variables that commands read and that are no fields of the settings."""
_NEAR: Final = 0.8
"""How alike two names are, from 0 to 1, of which one is taken for the other mistyped."""


def named_configuration(environ: Mapping[str, str]) -> Path | None:
    """The configuration that FSXWARM_CONFIG names, if it names one. FsxwarmError USAGE if there is none."""
    named = environ.get("FSXWARM_CONFIG")
    if not named:
        return None
    path = Path(named)
    try:
        path.stat()
    except OSError as error:
        why = f"there is no configuration {named}: {reason(error)}"
        raise FsxwarmError(Kind.USAGE, why, hint="change FSXWARM_CONFIG, or leave it out") from None
    return path


def mistyped(environ: Mapping[str, str]) -> list[str]:
    """A line for each variable that nobody reads but whose name is nearly one that is read."""
    known = {*_ALONE, *(variable(field.name) for field in fields(Settings))}
    strange = sorted(name for name in environ if name.startswith(_OURS) and name not in known)
    if not strange:
        return []
    from difflib import get_close_matches  # noqa: PLC0415 - nobody waits for it where all names are known

    from fsxwarm.configfile import variables  # noqa: PLC0415 - the same

    known |= variables()
    lines = []
    for name in strange:
        near = [] if name in known else get_close_matches(name, sorted(known), n=1, cutoff=_NEAR)
        lines += [f"{name} is not read: did you mean {one}?" for one in near]
    return lines
