"""`fsxwarm plan`: what a preload would take, before it is begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fsxwarm.app import App
from fsxwarm.cli.earlier import earlier_runs
from fsxwarm.cli.estimate_view import progress
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import (
    PACE,
    BackendOption,
    Braces,
    CheckS3Option,
    Exclude,
    FilesFrom,
    Include,
    Json,
    Nul,
    Paths,
    read,
    whole,
)
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.plan_view import plan_document, show
from fsxwarm.cli.run import run
from fsxwarm.cli.wanted import Wanted
from fsxwarm.engine.planner import Plan, Planner
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit, worst
from fsxwarm.model.forecast import Ran
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.units import parse_amount


def plan(  # noqa: PLR0913 - a command's arguments are its options
    paths: Paths = None,
    *,
    files_from: FilesFrom = None,
    nul: Nul = False,
    include: Include = None,
    exclude: Exclude = None,
    braces: Braces = False,
    by_folder: Annotated[
        int,
        typer.Option(
            "--by-folder",
            metavar="DEPTH",
            parser=whole(0, 1000),
            help="Name the biggest folders, so many levels below each PATH.",
        ),
    ] = 1,
    reserve: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Space to leave free: 5% (the default) or 500GB.",
            show_default=False,
            rich_help_panel=PACE,
        ),
    ] = None,
    check_s3: CheckS3Option = CheckS3.AUTO,
    backend: BackendOption = None,
    json: Json = False,
) -> Exit:
    """Say what a preload would take: how much, what S3 will refuse, whether it fits, and how long it takes.

    Asks FSx for nothing. The time is the longer of two: by bytes, from what the file system's tier lets through, and
    by files, from what earlier runs reached. Exits with 6 if not all fits, and with 3 if some files could not be
    restored.
    """

    async def work(app: App) -> Exit:
        selection = Wanted(paths, files_from, nul, include, exclude, braces).select(app)
        preflight = Preflight(Inspector(app.aws.atlas, check_s3, complain))

        async def seen(mount: bytes) -> Sequence[Ran]:
            return [Ran(rate.files, rate.bytes) for rate in await earlier_runs(app, mount)]

        planner = Planner(
            app.hsm,
            selection,
            reserve=app.settings.reserve if reserve is None else read(parse_amount, reserve, "--reserve"),
            depth=by_folder,
            seen=seen,
            atlas=None if check_s3 is CheckS3.NEVER else app.aws.atlas,
            sieve=preflight,
        )
        async with ticking(lambda: progress(planner.estimate)):
            made = await planner.run()
        code = _exit(made, selection)
        if json:
            emit_json(plan_document(made, selection, preflight.found, code), app.hsm.choice)
        else:
            show(made, selection, preflight.found)
        return code

    return run(work, json=json, backend=backend)


def _exit(made: Plan, selection: Selection) -> Exit:
    found = made.estimate
    incomplete = found.blocked or found.troubles.count or selection.missing.count or selection.outside.count
    return worst(Exit.DONE if made.fits else Exit.NO_ROOM, Exit.INCOMPLETE if incomplete else Exit.DONE)
