"""Carrying out `fsxwarm preload`: the engine, with everything that watches it."""

from __future__ import annotations

import shlex
import time
from typing import Final

from fsxwarm import __version__
from fsxwarm.app import App
from fsxwarm.cli.background import Child
from fsxwarm.cli.earlier import earlier_runs, remember_run
from fsxwarm.cli.estimate_view import Pace, estimate_document, progress
from fsxwarm.cli.estimate_view import show as show_estimate
from fsxwarm.cli.live import ticking
from fsxwarm.cli.metrics_file import MetricsFile
from fsxwarm.cli.output import complain, emit_json, safe
from fsxwarm.cli.preload_command import Command
from fsxwarm.cli.preload_view import Ended
from fsxwarm.cli.progress import showing
from fsxwarm.cli.s3_view import checked_lines
from fsxwarm.cli.saying import Saying
from fsxwarm.cli.thaw import make_preflight, settle_waiting, thaw_document, would_thaw
from fsxwarm.cli.unlinked import without_purpose
from fsxwarm.cli.wanted import to_retry
from fsxwarm.engine.account import Account
from fsxwarm.engine.estimate import Estimator, Speed, best
from fsxwarm.engine.explain import Explaining
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.engine.report import Report
from fsxwarm.engine.roots import Roots
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.thaw import Rehearsal
from fsxwarm.engine.warm import Warmer, Wish
from fsxwarm.errors import Exit, FsxwarmError, worst
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.shard import WHOLE
from fsxwarm.store.rates import Rate

_TELLING: Final = 20
"""Restored files from which on a run's rate tells something."""


async def warm(app: App, command: Command, child: Child | None = None) -> Exit:
    """Warm, show it, and tell what came of it; in the background, `child` is told how far it is."""
    metrics = MetricsFile(command.metrics_file, app)
    app = metrics.app
    selection = await _selection(app, command)
    policy = await app.policy(window=command.window, attempts=command.attempts, shard=command.shard)
    saying = Saying(fit=command.fit)
    report = None
    if command.report is not None:
        fresh = command.shard is not None and command.retry_failed is None
        report = await Report.begin(command.report, _header(command), fresh=fresh, fit=command.fit)

    def ready() -> None:
        saying.ready()
        if child is not None:
            child.ready()

    account = Account(report=report, say=saying.said, ready=ready)
    reserve = app.settings.reserve if command.reserve is None else command.reserve
    wish = Wish(ready=command.ready, deadline=command.deadline, reserve=reserve, fit=command.fit)

    async def spare() -> dict[int, int]:
        return await warmer.spare()

    preflight = make_preflight(app, command.check_s3, command.thaw, saying.tell, spare=spare, fit=command.fit)
    explaining = Explaining(account, app.aws.atlas, app.aws.log, time.time)
    listener = account if command.check_s3 is CheckS3.NEVER else explaining
    roots = Roots(listener, [place.path for place in await selection.resolve()])
    warmer = Warmer(app.tree, metrics.hsm, selection, policy, wish, metrics.hearing(roots), preflight)
    if child is not None:
        child.started()
    try:
        async with metrics.kept(warmer, selection), showing(command.progress, warmer, account, saying):
            async with explaining.watching(saying.tell):
                code = await warmer.run()
            settle_waiting(preflight, warmer)
            if code is Exit.INTERRUPTED:
                explaining.let_go()
            elif problem := await explaining.end():
                saying.tell(problem)
        ended = Ended(
            warmer,
            account,
            selection,
            preflight,
            report=command.report,
            again=_again(command),
            fit=command.fit,
            shard=command.shard,
        )
        ended.unlinked = await without_purpose(app, command.check_s3, roots.resident, code, command.shard)
        if ended.unlinked:
            code = worst(code, Exit.CANNOT)
        return await metrics.end(await _tell(app, command, ended, report, code))
    except FsxwarmError as error:
        explaining.let_go()
        await metrics.end(error.exit)
        if report is not None:
            await report.end({"exit": int(error.exit), "error": str(error)})
        raise
    finally:
        if report is not None:
            await report.discard()


async def estimate(app: App, command: Command) -> Exit:
    """Tell what a warming would have to do, and ask for nothing."""
    selection = await _selection(app, command)
    reserve = app.settings.reserve if command.reserve is None else command.reserve
    rehearsal = None if command.thaw is None else Rehearsal(command.thaw)
    preflight = Preflight(Inspector(app.aws.atlas, command.check_s3, complain), rehearsal)
    told = rehearsal.released if rehearsal is not None else lambda _: None
    estimator = Estimator(app.hsm, selection, reserve=reserve, sieve=preflight, told=told)
    async with ticking(lambda: progress(estimator.estimate)):
        found = await estimator.run()
    pace = await _pace(app, command, selection)
    code = Exit.DONE if found.fits or command.fit else Exit.NO_ROOM
    if command.json:
        document = estimate_document(found, selection, pace, preflight.found, code)
        if preflight.thawing is not None:
            document["thaw"] = thaw_document(preflight.thawing)
        if command.shard is not None:
            document["shard"] = str(command.shard)
        emit_json(document, app.hsm.choice)
    else:
        if command.shard is not None:
            complain(f"only shard {command.shard} of the files")
        thaw = [] if preflight.thawing is None else [would_thaw(preflight.thawing)]
        show_estimate(found, selection, pace, [*thaw, *checked_lines(preflight.found)])
    return code


async def _tell(app: App, command: Command, ended: Ended, report: Report | None, code: Exit) -> Exit:
    """Finish the report, remember the rates, print the summary; returns the status to exit with."""
    if report is not None:
        await report.end({**ended.document(code), "ended": time.time()})
        if report.problem is not None:
            complain(report.problem)
            ended.report = None
            code = worst(code, Exit.UNFORESEEN)
    if command.json:
        emit_json(ended.document(code), app.hsm.choice)
    else:
        ended.show()
    await _remember(app, ended)
    return code


async def _selection(app: App, command: Command) -> Selection:
    listed = None
    if command.retry_failed is not None:
        listed = await to_retry(command.retry_failed)
    selection = command.wanted.select(app, listed=listed, order=command.order, shard=command.shard)
    await selection.resolve()
    return selection


def _header(command: Command) -> dict[str, object]:
    return {
        "version": __version__,
        "started": time.time(),
        "arguments": [safe(text) for text in command.arguments],
        "shard": str(command.shard or WHOLE),
    }


def _again(command: Command) -> str:
    return shlex.join(["fsxwarm", *command.arguments])


# ---- rates of earlier runs -----------------------------------------------------------------------------------------


async def _pace(app: App, command: Command, selection: Selection) -> Pace | None:
    if command.rate is not None:
        return Pace(Speed(0.0, float(command.rate)), "given")
    mount = _mount(selection)
    rates = [] if mount is None else await earlier_runs(app, mount)
    speed = best(Speed(rate.files, rate.bytes) for rate in rates)
    return None if speed is None else Pace(speed, "earlier runs")


async def _remember(app: App, ended: Ended) -> None:
    progress = ended.warmer.progress
    mount = _mount(ended.selection)
    if mount is None or ended.waited_for_thaws or progress.settled[Outcome.RESTORED].files < _TELLING:
        return
    await remember_run(app, mount, Rate(time.time(), *progress.mean_rate(progress.ended or progress.started)))


def _mount(selection: Selection) -> bytes | None:
    """The mount that all of it lies on; None when it is not one file system."""
    mounts = list(selection.mounts.values())
    return mounts[0] if len(mounts) == 1 else None
