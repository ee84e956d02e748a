"""`fsxwarm sim`: make and run a simulated FSx for Lustre to play with."""

from __future__ import annotations

import asyncio
import re
import secrets
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from fsxwarm.cli.options import read, whole
from fsxwarm.cli.sim_faults import add_fault
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.units import parse_duration, parse_rate, parse_share, parse_size
from fsxwarm.sim import launch, layout
from fsxwarm.sim.connections import connect
from fsxwarm.sim.facility import run_server
from fsxwarm.sim.faults import Fault, Faults, share_of_files
from fsxwarm.sim.spec import WorldSpec


class Version(StrEnum):
    """The versions of Lustre whose behaviour is simulated."""

    V2_12 = "2.12"
    V2_15 = "2.15"
    V2_16 = "2.16"


_RELEASES: Final = {Version.V2_12: (2, 12, 9), Version.V2_15: (2, 15, 8), Version.V2_16: (2, 16, 1)}

_OSTS: Final = 2


def sim(  # noqa: PLR0913 - one option for each property of the simulated FSx
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder, or one that was made before.")],
    *,
    files: Annotated[
        int, typer.Option(metavar="N", parser=whole(0, 10_000_000), help="Files to make, all of them released.")
    ] = 2000,
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of each, such as 100KB; or lognormal.")] = "lognormal",
    mdts: Annotated[int, typer.Option(metavar="N", parser=whole(1, 64), help="Metadata targets.")] = 2,
    agents: Annotated[
        int, typer.Option(metavar="N", parser=whole(1, 100_000), help="Restores that run at a time.")
    ] = 32,
    bandwidth: Annotated[str, typer.Option(metavar="RATE", help="Bytes a second from S3, all restores together.")] = (
        "1GB"
    ),
    latency: Annotated[str, typer.Option(metavar="TIME", help="Time before a restore's first byte, as 50ms.")] = "50ms",
    capacity: Annotated[str, typer.Option(metavar="SIZE", help="Room for resident data, on two OSTs.")] = "2.4TB",
    fail: Annotated[str | None, typer.Option(metavar="SHARE", help="Share of files missing in S3, as 1%.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="FAULT", help="What goes wrong, as stuck:5%; see above. May be given several times."),
    ] = None,
    version: Annotated[
        Version, typer.Option(metavar="VERSION", help="The version of Lustre to behave like: 2.12, 2.15 or 2.16.")
    ] = Version.V2_15,
    seed: Annotated[
        int, typer.Option(metavar="N", parser=whole(0, 2**31), help="The same seed makes the same tree.")
    ] = 0,
) -> Exit:
    """Make a simulated FSx for Lustre in DIR and run it until Ctrl-C: files, an lfs, metadata servers, copy agents.

    It prints what to paste into another shell (and keeps it in DIR/env while it runs); there, fsxwarm and lfs take
    DIR/mnt for FSx for Lustre. Files are sparse, so sizes are real and hardly any disk space is used. Run again on the
    same DIR, it goes on where it was.

    A fault is written FAULT:SHARE. For a share of the files, restores fail as in FSx's log: object-missing,
    unsupported-class, access-denied, bucket-missing, disk-full; or they never end: stuck (no byte moves), dies (in the
    middle), wedged (counted as running, never sent). FAULT:SHARE:2 means the first 2 restores of each. Of all calls a
    share never comes back: hang, hang-after (its work is done); or fails: eio, eagain.
    """
    spec = WorldSpec(
        mdts=mdts,
        agents=agents,
        bandwidth=float(read(parse_rate, bandwidth, "--bandwidth")),
        latency=read(_parse_latency, latency, "--latency"),
        osts=_OSTS,
        ost_size=read(parse_size, capacity, "--capacity") // _OSTS,
        version=_RELEASES[version],
    )
    sizes = layout.lognormal if size == "lognormal" else layout.fixed(read(parse_size, size, "--size"))
    faults = Faults()
    if fail is not None:
        faults.restore.append(share_of_files(read(parse_share, fail, "--fail"), Fault.OBJECT_MISSING, seed=seed))
    for number, wish in enumerate(fault or (), seed + 1):  # each its own files
        read(partial(add_fault, faults, seed=number), wish, "--fault")
    folder = _prepared(folder)

    def listening() -> None:
        connect(folder, spec)  # not before it is sure that no other one runs here
        layout.tell_ready(folder)
        print(f"A simulated FSx for Lustre is mounted at {folder / 'mnt'}. In another shell:\n")  # noqa: T201 - for people
        print(layout.shell_lines(folder))  # noqa: T201 - the same
        print(launch.READY, flush=True)  # noqa: T201 - for programs

    asyncio.run(run_server(folder, spec, faults, files=files, sizes=sizes, seed=seed, listening=listening))
    layout.tell_gone(folder)
    return Exit.DONE


def _prepared(folder: Path) -> Path:
    """Make the folder, or take one that was made before. FsxwarmError USAGE."""
    folder = folder.resolve()
    try:
        str(folder).encode()
        if folder.exists() and any(folder.iterdir()) and not (folder / "mounts").exists():
            raise FsxwarmError(Kind.USAGE, f"{folder} is not empty and no simulated FSx", hint="name a new folder")
        layout.prepare(folder, secrets.token_hex(4))
    except UnicodeEncodeError:
        raise FsxwarmError(Kind.USAGE, f"{folder} is no name in UTF-8", hint="name another folder") from None
    except OSError as error:
        raise FsxwarmError(Kind.USAGE, f"{folder}: {error.strerror}", hint="name another folder") from None
    return folder


def _parse_latency(text: str) -> float:
    """Read a duration that may be in milliseconds; returns seconds."""
    number = text.strip().removesuffix("ms")
    if number == text.strip():
        return parse_duration(text)
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", number):
        raise ValueError(f"{text!r} is no time: write 50ms or 2s")
    return float(number) / 1000
