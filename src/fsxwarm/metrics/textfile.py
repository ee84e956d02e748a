"""Metrics in a file for node_exporter's textfile collector, which reads whole files with names in `.prom`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fsxwarm.errors import FsxwarmError, Kind


def check(path: Path) -> None:
    """Raise FsxwarmError USAGE for a name that the collector would not read."""
    if path.suffix != ".prom":
        raise FsxwarmError(Kind.USAGE, f"{path}: node_exporter reads files in .prom alone", hint="name it so")


def write(path: Path, text: bytes) -> None:
    """Put a file in the place of the one before, whole and readable for all. FsxwarmError USAGE says why it cannot."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.stem}.", delete=False) as file:
            try:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise FsxwarmError(
            Kind.USAGE, f"cannot write {path}: {error.strerror}", hint="name a file in a folder that you may write to"
        ) from None
