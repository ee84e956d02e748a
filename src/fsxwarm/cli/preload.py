"""`fsxwarm preload`: make files resident."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from fsxwarm.cli.background import Child, detach, state_folder
from fsxwarm.cli.choose import ByDaemon, Local, daemon_or_not
from fsxwarm.cli.latest import Latest, Marker, with_latest
from fsxwarm.cli.options import (
    PACE,
    WHICH,
    BackendOption,
    Braces,
    CheckS3Option,
    Exclude,
    FilesFrom,
    Include,
    Json,
    Nul,
    Paths,
    ReportOption,
    read,
    some_time,
    whole,
)
from fsxwarm.cli.preload_command import Command
from fsxwarm.cli.progress import Mode, choose
from fsxwarm.cli.run import run
from fsxwarm.cli.shards import ShardOption, named_for, this_shard, with_shard
from fsxwarm.cli.thaw import Days, Thaw, Tier, thaw_wish
from fsxwarm.cli.wanted import Wanted
from fsxwarm.engine.order import Order
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.units import parse_amount, parse_rate, parse_share

OrderOption = Annotated[
    Order,
    typer.Option(
        "--order",
        metavar="ORDER",
        help="Which files come first: listed, path, largest, smallest or newest. `listed` takes them as they come:"
        " a list's own order, folders from the top. The others hold all wanted files in memory to sort them, some"
        " 300 bytes each.",
        rich_help_panel=WHICH,
    ),
]
RetryFailed = Annotated[
    Path | None,
    typer.Option(
        "--retry-failed",
        metavar="FILE",
        help="Take the files that did not become resident, by the report that --report wrote.",
        show_default=False,
        rich_help_panel=WHICH,
    ),
]
Deadline = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Stop after so long: 90s, 15m, 2h. Exits with 4 if files are left.",
        show_default=False,
    ),
]
Ready = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Return once the first SHARE of the bytes is resident, in order: 0.2 or 20%. The rest goes on."
        " Without a daemon it needs --background.",
        show_default=False,
    ),
]
NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="Return as soon as the work has begun. Without a daemon it needs --background."),
]
Background = Annotated[
    bool,
    typer.Option(
        "--background",
        help="Go on in the background, also after you log out, and return once the work has begun; prints where the"
        " log is and how to stop it.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Only say how much would be restored, whether it fits, and how long it may take."),
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="With --dry-run: how fast FSx restores, such as 1GB/s. Without it: as fast as earlier runs.",
        show_default=False,
    ),
]
MetricsFileOption = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        help="Keep this run's metrics in FILE, for node_exporter's textfile collector; its name ends in .prom.",
        show_default=False,
    ),
]
Reserve = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Space to leave free: 5% (the default) or 500GB. If not all fits into the rest, asking stops, and the exit"
        " status is 6.",
        show_default=False,
        rich_help_panel=PACE,
    ),
]
Fit = Annotated[
    bool,
    typer.Option(
        "--fit", help="If not all of it fits, warm what does, in order, and leave out the rest.", rich_help_panel=PACE
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 100),
        help="How often to ask for a file before it counts as failed: 3 times, if not said.",
        show_default=False,
        rich_help_panel=PACE,
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="N",
        parser=whole(1, 100_000),
        help="Keep so many files in flight at each metadata target, instead of learning how many help. More than 5,000"
        " or so slow the file system down for everybody.",
        show_default=False,
        rich_help_panel=PACE,
    ),
]
Progress = Annotated[
    Mode,
    typer.Option(
        metavar="MODE",
        help="How progress is shown, on standard error: bar, lines (one every 5 s), json (an object a line) or none."
        " `auto` takes bars on a terminal and lines elsewhere, but nothing with --json.",
    ),
]


def preload(  # noqa: PLR0913 - a command's arguments are its options
    paths: Paths = None,
    *,
    files_from: FilesFrom = None,
    nul: Nul = False,
    retry_failed: RetryFailed = None,
    include: Include = None,
    exclude: Exclude = None,
    braces: Braces = False,
    latest: Latest = None,
    marker: Marker = None,
    order: OrderOption = Order.LISTED,
    shard: ShardOption = None,
    deadline: Deadline = None,
    dry_run: DryRun = False,
    rate: Rate = None,
    report: ReportOption = None,
    metrics_file: MetricsFileOption = None,
    background: Background = False,
    ready: Ready = None,
    no_wait: NoWait = False,
    fit: Fit = False,
    reserve: Reserve = None,
    attempts: Attempts = None,
    check_s3: CheckS3Option = CheckS3.AUTO,
    thaw: Thaw = False,
    tier: Tier = None,
    days: Days = None,
    window: WindowOption = None,
    progress: Progress = Mode.AUTO,
    backend: BackendOption = None,
    local: Local = False,
    by_daemon: ByDaemon = False,
    json: Json = False,
) -> Exit:
    """Make files resident on FSx, so that a job's first read need not wait for S3.

    Finds the files that are **released** (only in S3), asks FSx to restore them, never too many at a time and none
    twice, and waits until each has settled. Resident files are skipped, so running it again resumes. Ctrl-C stops
    asking; what FSx has begun, it finishes.
    """
    part = this_shard(shard)
    named = with_latest(paths, latest, marker, json=json, sharded=part is not None)
    command = Command(
        wanted=Wanted(named, files_from, nul, include, exclude, braces),
        retry_failed=retry_failed,
        order=order,
        deadline=some_time(deadline, "--deadline"),
        rate=None if rate is None else read(parse_rate, rate, "--rate"),
        report=named_for(report, part),
        metrics_file=named_for(metrics_file, part),
        shard=part,
        ready=None if ready is None else read(parse_share, ready, "--ready"),
        fit=fit,
        reserve=None if reserve is None else read(parse_amount, reserve, "--reserve"),
        attempts=attempts,
        window=window,
        check_s3=CheckS3.ALWAYS if thaw else check_s3,
        thaw=thaw_wish(check_s3, tier, days, thaw=thaw),
        progress=choose(progress, json=json),
        backend=backend,
        json=json,
        arguments=tuple(with_shard(sys.argv[1:], part)),
    )
    _check(command, dry_run=dry_run, background=background, no_wait=no_wait)
    client = daemon_or_not(
        local=local,
        by_daemon=by_daemon,
        own={
            "--window": window is not None,
            "--backend": backend is not None,
            "--attempts": attempts is not None,
            "--reserve": reserve is not None,
        },
        here={
            "--dry-run": dry_run,
            "--metrics-file": metrics_file is not None,
            "--shard": part is not None,
        },
    )
    if client is not None:
        from fsxwarm.cli.asking import preload_by_daemon  # noqa: PLC0415 - nobody waits for it where there is no daemon

        return preload_by_daemon(client, command, wait=not (no_wait or background))
    _check_alone(command, background=background, no_wait=no_wait)
    if background:
        return _in_background(command)
    from fsxwarm.cli.preload_run import estimate, warm  # noqa: PLC0415 - nobody waits for it where a daemon does it

    if dry_run:
        return run(lambda app: estimate(app, command), json=json, backend=backend)
    return run(lambda app: warm(app, command), json=json, backend=backend)


def _in_background(command: Command) -> Exit:
    process = detach(state_folder(os.environ), "preload", keep_stdin=command.wanted.files_from == "-")
    if not isinstance(process, Child):
        return process.attend(until_ready=command.ready is not None, json=command.json)
    from fsxwarm.cli.preload_run import warm  # noqa: PLC0415 - the same

    with process.running():
        code = run(lambda app: warm(app, command, process), json=command.json, backend=command.backend)
        process.ended(code)
    return code


def _check(command: Command, *, dry_run: bool, background: bool, no_wait: bool) -> None:
    """Refuse options that do not go together, and say what does."""
    for wrong, message, hint in (
        (no_wait and command.ready is not None, "--no-wait and --ready: only one of them", "leave one out"),
        (dry_run and background, "--dry-run and --background: only one of them", "leave one out"),
        (dry_run and command.report is not None, "a dry run has nothing to report", "leave --report out"),
        (dry_run and command.metrics_file is not None, "a dry run has no metrics", "leave --metrics-file out"),
        (not dry_run and command.rate is not None, "--rate is for --dry-run", "add --dry-run"),
        (
            command.wanted.files_from is not None and command.retry_failed is not None,
            "--files-from and --retry-failed are both lists",
            "leave one out",
        ),
    ):
        if wrong:
            raise FsxwarmError(Kind.USAGE, message, hint=hint)


def _check_alone(command: Command, *, background: bool, no_wait: bool) -> None:
    """Refuse options that do not go together where no daemon does the work."""
    for wrong, message, hint in (
        (
            not background and command.ready is not None,
            "--ready returns while the rest goes on, which needs --background",
            "add --background",
        ),
        (not background and no_wait, "--no-wait needs --background", "add --background"),
        (
            background and command.wanted.files_from == "-" and sys.stdin is not None and sys.stdin.isatty(),
            "--background cannot read a list from the terminal",
            "pipe it in, or name a file",
        ),
    ):
        if wrong:
            raise FsxwarmError(Kind.USAGE, message, hint=hint)
