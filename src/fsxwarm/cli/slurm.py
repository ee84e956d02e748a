"""`fsxwarm slurm`: what jobs of Slurm say that they need."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import asdict
from typing import Annotated, Final

import typer

from fsxwarm.cli.options import Json
from fsxwarm.cli.output import complain, emit_json, safe
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.files import read_rest, read_whole
from fsxwarm.model.directive import Directive, DirectiveError, overlooked, parse_comment, parse_script
from fsxwarm.model.order import Order
from fsxwarm.model.sbatch import CommandLine, parse_sbatch
from fsxwarm.model.units import format_duration

slurm = typer.Typer(help="Check what a Slurm job says it needs; submit it behind a job that warms.")

_NUMBER: Final = re.compile(r"[0-9]+")
_WITHIN: Final = 120.0
"""Seconds that sbatch may take."""


@slurm.command()
def check(
    script: Annotated[
        str | None, typer.Argument(metavar="SCRIPT", help="A batch script; - is standard input.", show_default=False)
    ] = None,
    *,
    comment: Annotated[
        str | None,
        typer.Option("--comment", metavar="TEXT", help="A job's comment, as for sbatch, in place of a script."),
    ] = None,
    json: Json = False,
) -> Exit:
    """Explain what would be done for a job. Exits with 2 if a directive is wrong, and points at the place."""
    if (script is None) is (comment is None):
        raise FsxwarmError(Kind.USAGE, "name a batch script, or a --comment", hint="see `fsxwarm slurm check --help`")
    name, text = ("the comment", comment or "") if script is None else (script, _text(script))
    try:
        directive = parse_script(text) if comment is None else parse_comment(text)
    except DirectiveError as error:
        if json:
            place = {"message": error.message, "line": error.line, "column": error.column}
            emit_json({"schema": "fsxwarm.slurm.check/1", "exit": int(Exit.USAGE), "directive": None, "error": place})
        else:
            print(safe(f"{name}:{error.line}:{error.column}: {error.message}"))  # noqa: T201 - the answer
            print("\n".join(f"  {safe(line)}" for line in error.pointed().split("\n")))  # noqa: T201 - the same
        return Exit.USAGE
    notes = overlooked(text) if comment is None else []
    if json:
        shown = None if directive is None else {**asdict(directive), "order": directive.order.value}
        missed = [{"line": line, "message": message} for line, message in notes]
        emit_json({"schema": "fsxwarm.slurm.check/1", "exit": 0, "directive": shown, "overlooked": missed})
        return Exit.DONE
    for line, message in notes:
        print(safe(f"{name}:{line}: overlooked: {message}"))  # noqa: T201 - the answer
    print("\n".join(map(safe, explain(directive))))  # noqa: T201 - the same
    return Exit.DONE


def explain(directive: Directive | None) -> list[str]:
    """What a directive asks for, in lines for people."""
    if directive is None:
        return ["nothing is asked for: the job begins as it is"]
    lines = ["before the job begins, these become resident:"]
    lines += [f"  {path}" for path in directive.paths]
    lines += [f"  the files that {name} lists" for name in directive.lists]
    lines += [f"  only files that match {glob}" for glob in directive.include]
    lines += [f"  no files that match {glob}" for glob in directive.exclude]
    if directive.order is not Order.LISTED:
        lines.append(f"  the {directive.order.value} first" if directive.order is not Order.PATH else "  by path")
    lines.append(
        "it begins " + ("with all of them" if directive.ready is None else f"with {directive.ready:.0%} of the bytes")
    )
    if directive.deadline is not None:
        lines.append(f"  or after {format_duration(directive.deadline)} with what is there then")
    lines.append("what does not fit is left out" if directive.fit else "if they do not all fit, it is held")
    kept = "" if directive.lease is None else f", for {format_duration(directive.lease)} at most"
    lines.append(f"nothing of it is released while the job runs{kept}")
    if directive.release:
        lines.append("when the job has ended, the space is given back")
    return lines


@slurm.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
)
def submit(
    context: typer.Context,
    *,
    warm_options: Annotated[
        str,
        typer.Option(
            "--warm-options",
            metavar="OPTIONS",
            envvar="FSXWARM_WARM_OPTIONS",
            help="sbatch's options for the job that warms, such as '-p cpu -t 4:00:00'.",
        ),
    ] = "",
) -> Exit:
    """Submit a batch script behind a small job that warms what it needs: `submit [sbatch's options] train.sh`.

    Needs no administrator. The job that warms should run on a cheap partition that mounts the file system. Where it
    fails, the script's job stays pending (DependencyNeverSatisfied).
    """
    try:
        line = parse_sbatch(context.args)
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, str(error), hint="see `fsxwarm slurm submit --help`") from None
    directive = _directive(line)
    if directive is None:
        complain(f"{line.script} asks for nothing: it is submitted as it is")
        print(_sbatch([*line.options, line.script, *line.arguments]), end="")  # noqa: T201 - what sbatch says
        return Exit.DONE
    options = ["--job-name=fsxwarm", "--ntasks=1", *shlex.split(warm_options), "--parsable"]
    warming = _sbatch(options, warm_script(directive)).strip().partition(";")[0]
    before = ",".join([f"afterok:{warming}", *line.values("dependency", "d")])
    try:
        said = _sbatch([*line.options, f"--dependency={before}", line.script, *line.arguments])
    except FsxwarmError:
        subprocess.run(["scancel", warming], check=False, capture_output=True, timeout=_WITHIN)  # noqa: S607 - as sbatch
        raise
    complain(f"job {warming} warms first")
    print(said, end="")  # noqa: T201 - what sbatch says
    if directive.release:
        after = f"--dependency=afterany:{_NUMBER.findall(said)[-1]}"
        complain(f"job {_sbatch([*options, after], release_script(directive)).strip()} gives the space back afterwards")
    return Exit.DONE


def warm_script(directive: Directive) -> str:
    """The batch script of a job that warms: it fails where the script's own job should not begin."""
    options = ["--daemon"] if os.environ.get("FSXWARM_DAEMON") else []
    if options and directive.ready is not None:
        options.append(f"--ready={directive.ready}")  # the daemon warms the rest; nobody else would outlive this job
    if directive.deadline is not None:
        options.append(f"--deadline={directive.deadline:.0f}s")
    options += [f"--order={directive.order.value}"] + ["--fit"] * directive.fit
    late = int(Exit.DEADLINE)
    return f"{_command('preload', directive, options)}\nstatus=$?\n[ $status -eq {late} ] || exit $status\n"


def release_script(directive: Directive) -> str:
    """The batch script of a job that gives the space back."""
    return _command("release", directive, ["--yes"]) + "\n"


def _command(name: str, directive: Directive, options: list[str]) -> str:
    """A shell script that runs one of our commands on a directive's files."""
    words = [sys.executable, "-m", "fsxwarm", name, *options]
    words += [f"--include={glob}" for glob in directive.include] + [f"--exclude={glob}" for glob in directive.exclude]
    words += ["--files-from=-"] * bool(directive.lists) + ["--", *directive.paths]
    lists = f"cat -- {shlex.join(directive.lists)} | " if directive.lists else ""
    return f"#!/bin/sh\n{lists}{shlex.join(words)}"


def _directive(line: CommandLine) -> Directive | None:
    try:
        found = parse_script(_text(line.script))
        for comment in line.values("comment"):
            found = found or parse_comment(comment)
    except DirectiveError as error:
        raise FsxwarmError(
            Kind.USAGE, f"{line.script}, {error.where}: {error.message}", hint="see `fsxwarm slurm check`"
        ) from None
    return found


def _text(script: str) -> str:
    try:
        data = read_rest(sys.stdin.buffer) if script == "-" else read_whole(script)
    except OSError as error:
        raise FsxwarmError(Kind.NO_SUCH_PATH, f"{script}: {error.strerror}", hint="name a batch script") from None
    return data.decode("utf-8", "surrogateescape")


def _sbatch(words: list[str], script: str = "") -> str:
    """Run sbatch; what it prints. FsxwarmError USAGE with what it complains about."""
    try:
        done = subprocess.run(
            ["sbatch", *words], input=script.encode("utf-8", "surrogateescape"), capture_output=True, check=False,  # noqa: S607 - sites have it where they like
            timeout=_WITHIN,
        )  # fmt: skip
    except FileNotFoundError:
        raise FsxwarmError(Kind.USAGE, "there is no sbatch here", hint="run it where jobs are submitted") from None
    except subprocess.TimeoutExpired:
        raise FsxwarmError(Kind.HUNG, "sbatch does not answer", hint="see `sinfo`") from None
    if done.returncode:
        said = done.stderr.decode(errors="backslashreplace").strip().replace("\n", "; ")
        raise FsxwarmError(Kind.USAGE, said or f"sbatch ended with {done.returncode}", hint="nothing was submitted")
    sys.stderr.write(safe(done.stderr.decode(errors="backslashreplace")))
    return done.stdout.decode(errors="backslashreplace")
