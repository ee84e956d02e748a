"""`fsxwarm status`: what is resident and what only S3 holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fsxwarm.app import App
from fsxwarm.cli.choose import ByDaemon, Local, daemon_or_not
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import BackendOption, Braces, Exclude, FilesFrom, Include, Json, Nul, Paths, whole
from fsxwarm.cli.output import emit_json
from fsxwarm.cli.run import run
from fsxwarm.cli.shards import ShardOption, this_shard
from fsxwarm.cli.status_view import exit_of, show, status_document
from fsxwarm.cli.unlinked import LinkCheck
from fsxwarm.cli.wanted import Wanted
from fsxwarm.engine.status import Status, Survey
from fsxwarm.errors import Exit
from fsxwarm.model.units import format_count, format_size

if TYPE_CHECKING:
    from fsxwarm.client import wire


def status(  # noqa: PLR0913 - a command's arguments are its options
    paths: Paths = None,
    *,
    files_from: FilesFrom = None,
    nul: Nul = False,
    braces: Braces = False,
    include: Include = None,
    exclude: Exclude = None,
    shard: ShardOption = None,
    by_folder: Annotated[
        int | None,
        typer.Option(
            "--by-folder",
            metavar="DEPTH",
            parser=whole(0, 1000),
            help="Break the numbers down by folder, DEPTH levels below each PATH.",
            show_default=False,
        ),
    ] = None,
    flags: Annotated[
        bool,
        typer.Option(
            "--flags",
            help="Also count files that are dirty, never archived, pinned, lost or being restored. Opens every file,"
            " so it takes several times as long.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="For scripts: exit with 3 unless every file is resident.")
    ] = False,
    backend: BackendOption = None,
    local: Local = False,
    by_daemon: ByDaemon = False,
    json: Json = False,
) -> Exit:
    """Show how much is resident on FSx and how much is **released**, that is only in S3.

    Most files are judged by a stat alone, so this is quick and never starts a restore.
    """
    wanted, part = Wanted(paths, files_from, nul, include, exclude, braces), this_shard(shard)

    async def work(app: App) -> Exit:
        whole = flags or (by_folder is not None and files_from is not None)
        selection = wanted.select(app, whole=whole, shard=part)
        survey = Survey(app.hsm, selection, depth=by_folder, flags=flags)
        asked = [] if check else await selection.resolve()  # a script that waits for a yes is not held up
        async with LinkCheck(app.aws.atlas, asked) as check_of_links, ticking(lambda: _progress(survey.status)):
            found = await survey.run()
            links = await check_of_links.end()
        code = exit_of(found, selection, check=check)
        if json:
            emit_json(status_document(found, selection, code, links.unlinked), app.hsm.choice)
        else:
            show(found, selection, links.lines())
        return code

    client = daemon_or_not(
        local=local,
        by_daemon=by_daemon,
        own={"--backend": backend is not None},
        here={"--shard": part is not None},
    )
    if client is not None:
        from fsxwarm.cli.counting import status_by_daemon  # noqa: PLC0415 - nobody waits for it where there is no daemon

        wish = wanted.wish()
        asked: wire.CountWish = {
            "paths": wish["paths"],
            "files": wish["files"],
            "include": wish["include"],
            "exclude": wish["exclude"],
            "depth": by_folder,
            "flags": flags,
        }
        return status_by_daemon(client, asked, check=check, json=json)
    return run(work, json=json, backend=backend)


def _progress(found: Status) -> str:
    total = found.total
    return f"scanned {format_count(total.files, 'file')}, {format_size(total.bytes)}"
