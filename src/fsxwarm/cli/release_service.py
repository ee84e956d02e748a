"""`fsxwarm release --service`: FSx releases by itself, in data repository tasks."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

import typer

from fsxwarm.app import App
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import absolute, read
from fsxwarm.cli.output import complain, console, emit_json, safe
from fsxwarm.cli.run import run
from fsxwarm.cli.tables import plain_table
from fsxwarm.engine.addresses import mapped
from fsxwarm.engine.tasks import Order, ReleaseTasks, Run, plan_tasks
from fsxwarm.errors import CONSEQUENCES, Exit, FsxwarmError, Kind, worst
from fsxwarm.model.release_task import MOST_PATHS, report_of, whole_days
from fsxwarm.model.s3 import parse_uri
from fsxwarm.model.units import format_count, parse_duration
from fsxwarm.ports.cloud import Task, TaskState

_NAMED: Final = 3
_FAILED_NAMED: Final = 10


class UnreleasedDocument(TypedDict):
    """A file that FSx could not release: its path within the file system, and the service's word for why."""

    path: str
    reason: str


class TaskDocument(TypedDict):
    """One task: `id` and `state` are empty while it has not been begun. `files` is how many it had to do with.

    `unreleased` lists those of its report; it stays empty without --task-report. `report_cut`: the report is too long
    to be read to its end, and names more.
    """

    id: str
    file_system: str
    paths: list[str]
    state: str
    files: int
    released: int
    failed: int
    failure: str
    error: str
    report: str
    report_cut: bool
    unreleased: list[UnreleasedDocument]


class TasksDocument(TypedDict):
    """`fsxwarm.release-tasks/1`."""

    schema: str
    exit: int
    dry_run: bool
    days: int
    tasks: list[TaskDocument]


def release_by_service(
    paths: Sequence[str] | None,
    *,
    older_than: str | None,
    report: str | None,
    refused: Mapping[str, bool],
    dry_run: bool,
    yes: bool,
    json: bool,
) -> Exit:
    """Let FSx release what lies at `paths`; `refused` says which options were given that tasks have no place for.

    Without `yes` the user is asked first.
    """
    _refuse(refused)
    days = _days(older_than)
    if not paths:
        raise FsxwarmError(Kind.USAGE, "there is nothing to do", hint="name a PATH")
    places = [absolute(path) for path in paths]
    folder = "" if report is None else str(read(parse_uri, report, "--task-report"))

    async def plan(app: App) -> list[Order]:
        return await plan_tasks(app.aws.atlas, app.tree, await mapped(places, app.addresses), days, folder)

    async def work(app: App) -> Exit:
        tasks = ReleaseTasks(app.aws.cloud, await plan(app), token=lambda: f"fsxwarm-{uuid.uuid4()}", say=complain)
        interrupted = False
        if not dry_run:
            try:
                async with ticking(lambda: _line(tasks)):
                    await tasks.run()
            except asyncio.CancelledError:
                interrupted = True
                complain(_left(tasks.current))
        code = Exit.INTERRUPTED if interrupted else Exit.DONE if dry_run else _exit(tasks.runs)
        if json:
            emit_json(_document(tasks.runs, days, code, dry_run=dry_run))
        elif dry_run:
            _show_plan(tasks.runs, days)
        else:
            _show(tasks.runs)
        return code

    if not (dry_run or yes or _asked(run(plan, json=json), days)):
        return Exit.DONE
    return run(work, json=json)


def _refuse(refused: Mapping[str, bool]) -> None:
    given = [option for option, there in refused.items() if there]
    if given:
        raise FsxwarmError(
            Kind.USAGE,
            f"--service takes no {', '.join(given)}: FSx releases whole folders by age, and knows no patterns",
            hint="leave --service out for anything finer",
        )


def _days(older_than: str | None) -> int:
    if older_than is None:
        raise FsxwarmError(
            Kind.USAGE, "--service releases by age, in whole days", hint="add --older-than 7d; 0d is any age"
        )
    days = whole_days(read(parse_duration, older_than, "--older-than"))
    if days is None:
        raise FsxwarmError(
            Kind.USAGE,
            f"--older-than {older_than}: FSx counts whole days",
            hint="write 7d, or leave --service out for anything finer",
        )
    return days


def _asked(orders: Sequence[Order], days: int) -> bool:
    if not sys.stdin.isatty():
        raise FsxwarmError(
            Kind.USAGE, "release asks before it acts, and there is no terminal to ask on", hint="add --yes or --dry-run"
        )
    what = " and ".join(f"{_some(order.paths)} on {order.system}" for order in orders)
    return typer.confirm(f"Let FSx release what S3 holds too of {what}, {_age(days)}?", err=True)


def _age(days: int) -> str:
    return f"not used for {format_count(days, 'day')}" if days else "however recently used"


def _some(paths: Sequence[str]) -> str:
    names = ", ".join(safe(path) for path in paths[:_NAMED])
    more = len(paths) - _NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def _line(tasks: ReleaseTasks) -> str:
    current = tasks.current
    if current is None:
        return ""
    task = current.task
    if task is None:
        return f"waiting for {current.order.system}"
    so_far = f": {task.released:,} of {format_count(task.total, 'file')} released" if task.total else ""
    return f"{task.id} {task.state.value.lower()}{so_far}"


def _left(current: Run | None) -> str:
    """What an interruption leaves behind."""
    if current is None:
        return "interrupted: all tasks have ended"
    return f"interrupted: {_alone(current) or 'no further task was begun'}"


def _alone(each: Run) -> str:
    """What goes on at FSx without anybody who follows it; empty if nothing does."""
    if each.task is not None:
        id_ = each.task.id
        return f"{id_} goes on; `aws fsx cancel-data-repository-task --task-id {id_}` ends it"
    if each.asked:
        ask = f"aws fsx describe-data-repository-tasks --filters Name=file-system-id,Values={each.order.system}"
        return f"a task may have been begun; `{ask}` lists them"
    return ""


def _exit(runs: Sequence[Run]) -> Exit:
    codes = [CONSEQUENCES[Kind.CLOUD].exit for run in runs if run.error is not None]
    ended = [run.task for run in runs if run.task is not None]
    if any(task.state is not TaskState.SUCCEEDED or task.failed for task in ended) or len(ended) < len(runs):
        codes.append(Exit.INCOMPLETE)
    return worst(*codes)


# ---- text ----------------------------------------------------------------------------------------------------------


def _show_plan(runs: Sequence[Run], days: int) -> None:
    out = console()
    table = plain_table("file system", [])
    table.add_column("would be released", overflow="fold")
    for each in runs:
        table.add_row(each.order.system, safe(", ".join(each.order.paths)))
    out.print(table)
    out.print()
    tasks = "1 task" if len(runs) == 1 else f"{len(runs):,} tasks of at most {MOST_PATHS} paths, one after another"
    out.print(f"{tasks}: files {_age(days)} that S3 holds too")
    out.print("FSx does not say beforehand how many; the same without --service counts them", style="dim")


def _show(runs: Sequence[Run]) -> None:
    out = console()
    table = plain_table("task", [])
    for title in ("file system", "paths", "state"):
        table.add_column(title, overflow="fold")
    for title in ("released", "failed"):
        table.add_column(title, justify="right")
    for each in runs:
        task = each.task or Task("not begun", TaskState.PENDING)
        state = task.state.value.lower() if each.task else ""
        table.add_row(
            task.id, each.order.system, _some(each.order.paths), state, f"{task.released:,}", f"{task.failed:,}"
        )
    out.print(table)
    for each in runs:
        for line in _troubles(each):
            out.print(line, style="yellow")


def _troubles(run: Run) -> list[str]:
    lines = []
    if run.error is not None:
        lines.append(f"{run.order.system}: {safe(str(run.error))} ({run.error.advice})")
        lines += [line] if (line := _alone(run)) else []
    task = run.task
    if task is None or (task.state is TaskState.SUCCEEDED and not task.failed):
        return lines
    if task.failure:
        lines.append(f"{task.id}: {safe(task.failure)}")
    lines += [f"  {safe(one.path)}: {safe(one.reason)}" for one in run.unreleased[:_FAILED_NAMED]]
    if len(run.unreleased) > _FAILED_NAMED:
        more = len(run.unreleased) - _FAILED_NAMED
        lines.append(f"  and {more:,} more, in {report_of(run.order.report, task.id)}")
    if run.report_cut:
        lines.append(
            f"that report is too long to be read to its end: behind the first {len(run.unreleased):,} files that it "
            "names there are more"
        )
    if run.report_error is not None:
        lines.append(f"which files failed is not known: {safe(str(run.report_error))} ({run.report_error.advice})")
    elif task.failed and not run.order.report:
        lines.append("to have those files named: run again with --task-report s3://…")
    return lines


# ---- JSON ----------------------------------------------------------------------------------------------------------


def _document(runs: Sequence[Run], days: int, code: Exit, *, dry_run: bool) -> TasksDocument:
    return {
        "schema": "fsxwarm.release-tasks/1",
        "exit": int(code),
        "dry_run": dry_run,
        "days": days,
        "tasks": [_task(each) for each in runs],
    }


def _task(run: Run) -> TaskDocument:
    task = run.task
    problem = run.error or run.report_error
    return {
        "id": "" if task is None else task.id,
        "file_system": run.order.system,
        "paths": list(run.order.paths),
        "state": "" if task is None else task.state.value,
        "files": 0 if task is None else task.total,
        "released": 0 if task is None else task.released,
        "failed": 0 if task is None else task.failed,
        "failure": "" if task is None else task.failure,
        "error": "" if problem is None else str(problem),
        "report": "" if task is None or not run.order.report else report_of(run.order.report, task.id),
        "report_cut": run.report_cut,
        "unreleased": [{"path": one.path, "reason": one.reason} for one in run.unreleased],
    }
