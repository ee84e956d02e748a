"""The folder of a simulated FSx: its tree of files, the executable, the mount table."""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from fsxwarm.sim import client, syscalls

FSNAME: Final = "fsx"
INSTANCE: Final = "ffff888131bcc000"
"""What tells a mount of a file system from another one on the same machine."""

ASSOCIATIONS: Final = ("climate", "genomes", "imagenet")
"""Top folders, as three data repository associations would fill them."""

PER_FOLDER: Final = 100
SMALLEST: Final = 4_000
LARGEST: Final = 2_000_000_000
MEDIAN: Final = 1_000_000
SPREAD: Final = 2.0
"""Standard deviation of the logarithm of the sizes."""

AGE: Final = 30 * 86400
"""Seconds since the files were last used."""

Sizes = Callable[[random.Random], int]
"""Draws one file's size in bytes."""


def lognormal(chance: random.Random) -> int:
    """Sizes from 4 KB to 2 GB, half of them below 1 MB: many small files, most bytes in few large ones."""
    return round(min(max(MEDIAN * chance.lognormvariate(0.0, SPREAD), SMALLEST), LARGEST))


def fixed(size: int) -> Sizes:
    """All files have this size."""
    return lambda _: size


def prepare(folder: Path, token: str) -> None:
    """Make what surrounds the tree: `mnt`, `bin/lfs`, `bin/syscalls.py`, `mounts`, `config.toml`.

    `token` tells a new one from all others, so that what is remembered of those is not taken for what this one can.
    """
    (folder / "mnt").mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    executable = folder / "bin" / "lfs"
    executable.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{Path(client.__file__).read_text()}")
    executable.chmod(0o755)
    system_calls(folder).write_text(Path(syscalls.__file__).read_text())
    place = os.fsencode(folder / "mnt")
    for byte in b"\\ \t\n":
        place = place.replace(bytes([byte]), b"\\%03o" % byte)
    mounts = folder / "mounts"
    earlier = mounts.read_bytes().partition(b" ")[0] if mounts.exists() else b""
    source = earlier or f"sim-{token}@tcp:/{FSNAME}".encode()
    mounts.write_bytes(b"%b %b lustre rw,flock,lazystatfs 0 0\n" % (source, place))
    configuration(folder).write_text(
        "# Of a daemon that works with this simulated FSx, for whoever runs it.\n"
        "[daemon]\n"
        f"socket = {json.dumps(str(folder / 'daemon.sock'))}\n"
        f"state = {json.dumps(str(folder / 'daemon'))}\n"
        'group = ""\n'
        'admin_group = ""\n'
    )


def tell_ready(folder: Path) -> None:
    """Put `env` in its place, for shells to source: it is there, and whole, while the servers listen."""
    fresh = folder / "env.new"
    fresh.write_text(shell_lines(folder))
    fresh.replace(folder / "env")


def tell_gone(folder: Path) -> None:
    """Take `env` away: the servers have stopped."""
    (folder / "env").unlink(missing_ok=True)


def shell_lines(folder: Path) -> str:
    """Return what to paste into a shell (or to source) to work with the simulated FSx in `folder`."""
    return (
        f"export PATH={shlex.quote(str(folder / 'bin'))}:$PATH\n"
        f"export FSXWARM_MOUNTS={shlex.quote(str(folder / 'mounts'))}\n"
        f"export FSXWARM_CONNECTIONS={shlex.quote(str(connections(folder)))}\n"
        f"export FSXWARM_CONFIG={shlex.quote(str(configuration(folder)))}\n"
        "export FSXWARM_RELEASE_UNCHECKED=yes\n"
        f"export FSXWARM_SYSTEM_CALLS={shlex.quote(str(system_calls(folder)))}\n"
    )


def configuration(folder: Path) -> Path:
    """Return where the configuration of a daemon is that works with the simulated FSx."""
    return folder / "config.toml"


def connections(folder: Path) -> Path:
    """Return where the connections to metadata targets are, as the kernel would show them."""
    return folder / "mdc"


def system_calls(folder: Path) -> Path:
    """Return where the stand-in for Lustre's system calls is."""
    return folder / "bin" / "syscalls.py"


def fill(mount: Path, files: int, sizes: Sizes, *, seed: int, now: float) -> Iterator[Path]:
    """Make `files` sparse files below `mount`, a hundred to a folder, last used a month ago; yields each one's path."""
    chance = random.Random(seed)  # noqa: S311 - the same seed, the same tree
    for number in range(files):
        folder = mount / ASSOCIATIONS[number % len(ASSOCIATIONS)] / f"part-{number // (3 * PER_FOLDER):03d}"
        if number % (3 * PER_FOLDER) < len(ASSOCIATIONS):
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"sample-{number:06d}.bin"
        with path.open("xb") as file:
            file.truncate(sizes(chance))
        os.utime(path, (now - AGE, now - AGE))
        yield path
