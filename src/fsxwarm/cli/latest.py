"""The options `--latest` and `--marker`: the newest complete checkpoint, as one more PATH."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fsxwarm.cli.options import WHICH, absolute
from fsxwarm.cli.output import complain, show_path
from fsxwarm.cli.run import run
from fsxwarm.engine.latest import newest
from fsxwarm.errors import FsxwarmError, Kind

Latest = Annotated[
    str | None,
    typer.Option(
        "--latest",
        metavar="GLOB",
        help="Also the newest folder that matches, such as 'ckpt/step-*' (quoted), and is complete: the one with the"
        " highest numbers in its name that has the file --marker.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]
Marker = Annotated[
    str | None,
    typer.Option(
        "--marker",
        metavar="NAME",
        help="With --latest: the file that is written into a checkpoint last, such as DONE.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]


def with_latest(
    paths: Sequence[str] | None, latest: str | None, marker: str | None, *, json: bool, sharded: bool = False
) -> list[str]:
    """The paths, and the checkpoint that the two options mean, which is told. FsxwarmError where there is none."""
    if latest is None:
        if marker is not None:
            raise FsxwarmError(Kind.USAGE, "--marker belongs to --latest", hint="write --latest 'ckpt/step-*'")
        return list(paths or ())
    if not marker:
        raise FsxwarmError(
            Kind.USAGE, "--latest cannot tell complete checkpoints without --marker", hint="write --marker DONE"
        )
    if sharded:
        raise FsxwarmError(
            Kind.USAGE,
            "--latest and --shard: a checkpoint may be completed while shards start, and they would not agree",
            hint="name the folder",
        )
    pattern = absolute(latest).decode("utf-8", "surrogateescape")
    found = run(lambda app: newest(app.tree, pattern, marker), json=json)
    complain(f"the newest complete checkpoint is {show_path(found)}")
    return [*(paths or ()), found.decode("utf-8", "surrogateescape")]
