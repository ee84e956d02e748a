"""The rates of earlier runs, one small file for all file systems of a user.

It is a convenience for estimates: a file that is missing, damaged or not writable counts as none, and says so only in
the debug log.
"""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

_SCHEMA: Final = "fsxwarm.rates/1"
_RUNS: Final = 10
_FILE_SYSTEMS: Final = 100
_LARGEST: Final = 1 << 20
_log = logging.getLogger(__name__)


class Rate(NamedTuple):
    """What one run reached: files and bytes restored per second, `at` in seconds since the epoch."""

    at: float
    files: float
    bytes: float


def rates_file(environ: Mapping[str, str]) -> Path | None:
    """Where the rates are kept: under $XDG_CACHE_HOME or ~/.cache; None without a home."""
    cache = environ.get("XDG_CACHE_HOME", "")
    if cache.startswith("/"):
        return Path(cache) / "fsxwarm" / "rates.json"
    home = environ.get("HOME", "")
    return Path(home) / ".cache" / "fsxwarm" / "rates.json" if home.startswith("/") else None


class RateStore:
    """The rates in one file, by file system (a mount's source, as in /proc/self/mounts). Nothing here raises."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def rates(self, source: str) -> list[Rate]:
        """The last runs on a file system, oldest first."""
        return self._read().get(source, [])

    def remember(self, source: str, rate: Rate) -> None:
        """Add a run; old ones are forgotten."""
        if self._file is None:
            return
        known = self._read()
        known[source] = [*known.pop(source, []), rate][-_RUNS:]  # the file system used last comes last
        kept = dict(list(known.items())[-_FILE_SYSTEMS:])
        document = {"schema": _SCHEMA, "file_systems": kept}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._file, json.dumps(document).encode())
        except OSError as error:
            _log.debug("rates not kept: %s", error)

    def _read(self) -> dict[str, list[Rate]]:
        if self._file is None:
            return {}
        try:
            with self._file.open("rb") as file:
                return _parse(json.loads(file.read(_LARGEST)))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            _log.debug("rates not read: %s", error)
            return {}


def _parse(document: Any) -> dict[str, list[Rate]]:
    """Take what is well-formed; anything else is ValueError or left out."""
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise ValueError("no file of rates that this version knows")
    known: dict[str, list[Rate]] = {}
    systems = document.get("file_systems")
    for source, runs in systems.items() if isinstance(systems, dict) else ():
        rates = [Rate(*map(float, run)) for run in runs if _is_rate(run)] if isinstance(runs, list) else []
        if rates:
            known[source] = rates[-_RUNS:]
    return known


def _is_rate(run: Any) -> bool:
    numbers = isinstance(run, list) and len(run) == len(Rate._fields)
    return numbers and all(type(n) in (int, float) and math.isfinite(n) and n >= 0 for n in run)


def _replace(target: Path, data: bytes) -> None:
    """Put `data` in the place of a file so that a reader finds either the old or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
