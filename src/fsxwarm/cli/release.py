"""`fsxwarm release`: give space back without losing data."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Annotated

import typer

from fsxwarm.app import App
from fsxwarm.cli.choose import ByDaemon, Local, daemon_or_not
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import (
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
)
from fsxwarm.cli.output import complain, emit_json, show_path
from fsxwarm.cli.progress import Mode, choose
from fsxwarm.cli.release_service import release_by_service
from fsxwarm.cli.release_view import release_document, show
from fsxwarm.cli.run import run
from fsxwarm.cli.wanted import Wanted
from fsxwarm.engine.guard import ReleaseGuard
from fsxwarm.engine.make_room import MakeRoom, Room
from fsxwarm.engine.release import Released, Releaser, candidates, release_all
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit, FsxwarmError, Kind, worst
from fsxwarm.model.release import ALARMING
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.tally import Tally
from fsxwarm.model.units import Amount, format_count, format_size, parse_amount, parse_duration

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be released.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def release(  # noqa: PLR0913 - a command's arguments are its options
    paths: Paths = None,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Only files not read, written or changed for so long: 12h, 7d.",
            show_default=False,
        ),
    ] = None,
    until_free: Annotated[
        str | None,
        typer.Option(
            "--until-free",
            metavar="SIZE",
            help="Release the oldest files first, and stop once so much of the file system is free: 20% or 500GB."
            " Exits with 6 if that cannot be reached.",
            show_default=False,
        ),
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    files_from: FilesFrom = None,
    nul: Nul = False,
    braces: Braces = False,
    check_s3: CheckS3Option = CheckS3.AUTO,
    service: Annotated[
        bool,
        typer.Option(
            "--service",
            help="Let FSx release whole PATHs by itself: what --older-than says, in whole days (0d: any age), and no"
            " patterns. It takes tasks of 32 paths each, one after another. For anything finer leave this out.",
        ),
    ] = False,
    task_report: Annotated[
        str | None,
        typer.Option(
            "--task-report",
            metavar="S3",
            help="With --service: where FSx is to list the files that it could not release, below a linked prefix.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    backend: BackendOption = None,
    local: Local = False,
    by_daemon: ByDaemon = False,
    json: Json = False,
) -> Exit:
    """Give back the space of files that S3 holds too. No data is lost: reading them, or a preload, brings it back.

    Files that are dirty, never archived, pinned, lost, being restored, or not yours to write are left alone and
    counted. Beware that Lustre also releases files that somebody merely holds **open**: a running job then
    waits for S3 when it next reads them.
    """
    if service:
        refused = {
            "--until-free": until_free is not None,
            "--include": bool(include),
            "--exclude": bool(exclude),
            "--files-from": files_from is not None,
            "-0": nul,
            "--braces": braces,
            "--check-s3": check_s3 is not CheckS3.AUTO,
            "--backend": backend is not None,
            "--daemon": by_daemon,
        }
        return release_by_service(
            paths,
            older_than=older_than,
            report=task_report,
            refused=refused,
            dry_run=dry_run,
            yes=yes,
            json=json,
        )
    _must_not(task_report)
    used_before = None if older_than is None else int(time.time() - read(parse_duration, older_than, "--older-than"))
    target = None if until_free is None else read(parse_amount, until_free, "--until-free")
    if target is not None and files_from is not None:
        raise FsxwarmError(
            Kind.USAGE,
            "--until-free looks for the oldest files itself and takes no list",
            hint="leave --files-from out",
        )

    wanted = Wanted(paths, files_from, nul, include, exclude, braces)

    def selection(app: App) -> Selection:
        return wanted.select(app, whole=True)

    async def work(app: App) -> Exit:
        keeper = _keeper(app, check_s3, make_room=target is not None)
        releaser = Releaser(app.tree, app.hsm, dry_run=dry_run, keeper=keeper)
        chosen = selection(app)
        room = None
        interrupted = False
        try:
            async with ticking(lambda: _progress(releaser.result)):
                if target is None:
                    await release_all(releaser, chosen, used_before=used_before)
                else:
                    mount = await _mount(chosen)
                    room = await MakeRoom(
                        app.hsm, releaser, lambda: selection(app), target=target, mount=mount, used_before=used_before
                    ).run()
        except asyncio.CancelledError:
            interrupted = True
            complain("interrupted: nothing more is released than what is told here")
        code = Exit.INTERRUPTED if interrupted else _exit(releaser.result, chosen, room)
        if json:
            emit_json(release_document(releaser.result, chosen, room, code), app.hsm.choice)
        else:
            show(releaser.result, chosen, room)
        return code

    if not (dry_run or yes):
        _must_be_able_to_ask(files_from)

        async def survey(app: App) -> Tally:
            return await candidates(selection(app), used_before=used_before)

        if not _agreed(run(survey, json=json, backend=backend), target):
            return Exit.DONE
    client = daemon_or_not(
        local=local,
        by_daemon=by_daemon,
        own={"--backend": backend is not None},
        here={"--until-free": target is not None},
    )
    if client is None:
        return run(work, json=json, backend=backend)
    from fsxwarm.cli.asking import have_done  # noqa: PLC0415 - nobody waits for it where there is no daemon

    wish = wanted.wish()
    wish["kind"] = "release"
    wish["options"] = {"used_before": used_before, "dry_run": dry_run, "check_s3": check_s3.value}
    return have_done(client, wish, mode=choose(Mode.AUTO, json=json), json=json)


def _keeper(app: App, mode: CheckS3, *, make_room: bool) -> ReleaseGuard:
    """What is asked before each release. Making room takes whatever is oldest: it is always checked, if it can be."""
    strict = make_room and not app.settings.release_unchecked
    if strict and mode is CheckS3.NEVER:
        raise FsxwarmError(
            Kind.USAGE,
            "--until-free releases nothing without a look at S3",
            hint="leave --check-s3 out, or set FSXWARM_RELEASE_UNCHECKED=yes",
        )
    return ReleaseGuard(app.aws.atlas, CheckS3.ALWAYS if strict else mode, complain, strict=strict)


def _must_not(task_report: str | None) -> None:
    if task_report is not None:
        raise FsxwarmError(Kind.USAGE, "--task-report is about --service", hint="add --service, or leave it out")


def _must_be_able_to_ask(files_from: str | None) -> None:
    if files_from == "-" or not sys.stdin.isatty():
        raise FsxwarmError(
            Kind.USAGE, "release asks before it acts, and there is no terminal to ask on", hint="add --yes or --dry-run"
        )


def _agreed(found: Tally, target: Amount | None) -> bool:
    if not found.files:
        return True
    what = f"{format_count(found.files, 'file')}, {format_size(found.bytes)}"
    if target is None:
        question = f"Release what S3 holds too of {what}?"
    else:
        question = f"Release the oldest of {what}, until {target} is free?"
    return typer.confirm(question, err=True)


async def _mount(selection: Selection) -> bytes:
    mounts = sorted({place.mount for place in await selection.resolve()})
    if len(mounts) > 1:
        names = ", ".join(show_path(mount) for mount in mounts)
        raise FsxwarmError(
            Kind.USAGE, f"--until-free is about one file system, not {names}", hint="run it once for each"
        )
    return mounts[0]


def _exit(released: Released, selection: Selection, room: Room | None) -> Exit:
    incomplete = (
        released.troubles.count or selection.missing.count or selection.outside.count or ALARMING & set(released.left)
    )
    return worst(
        Exit.INCOMPLETE if incomplete else Exit.DONE,
        Exit.DONE if room is None or room.reached else Exit.NO_ROOM,
    )


def _progress(released: Released) -> str:
    left = sum(left.tally.files for left in released.left.values())
    verb = "would release" if released.dry_run else "released"
    return (
        f"{verb} {format_count(released.released.files, 'file')}, {format_size(released.released.bytes)};"
        f" left {left:,} alone"
    )
