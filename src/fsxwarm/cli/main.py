"""The command `fsxwarm`: its own options, and the one place that turns errors into a line and a status."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from fsxwarm import __version__
from fsxwarm.cli.commands import Commands, listed, path_of
from fsxwarm.cli.environment import mistyped
from fsxwarm.cli.output import complain
from fsxwarm.errors import CONSEQUENCES, Exit, FsxwarmError, Kind

app = typer.Typer(
    name="fsxwarm",
    cls=Commands,
    help="Warm Amazon FSx for Lustre before a job needs its data, and give the space back without losing any.",
    epilog="Exit status: 0 done, 2 usage, 3 some files failed, 4 deadline passed, 5 cannot work here, 6 not enough "
    "room, 130 interrupted, 1 unforeseen.",
    rich_markup_mode="markdown",
    no_args_is_help=False,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        print(f"fsxwarm {__version__}")  # noqa: T201 - what was asked for
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201 - what was asked for
        raise typer.Exit(Exit.USAGE)
    for line in mistyped(os.environ):
        complain(line)


listed(app)

_REFUSED: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors of a disk that takes no more."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit status. Nothing is raised."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = typer.main.get_command(app).main(list(arguments), prog_name="fsxwarm", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # typer makes the latter of the former, and of nothing else here
        return _reader_left()
    except (typer.Abort, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: no user sees a traceback without asking for it
        return _explain(error, arguments)
    return Exit.DONE if status is None else int(status)


def _explain(error: Exception, arguments: Sequence[str]) -> int:
    if os.environ.get("FSXWARM_DEBUG") == "1":
        traceback.print_exception(error)
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, FsxwarmError):
        general = error.hint == CONSEQUENCES[Kind.USAGE].hint
        complain(f"{error.message} (see `{path_of(arguments)} --help`)" if general else str(error))
        return error.exit
    format_message = getattr(error, "format_message", None)
    if format_message is not None:  # a usage error, of click's or, since typer brings its own click, of typer's
        text = " ".join(format_message().split()).removesuffix(".").replace("Value error, ", "")
        if text:  # a group of commands without one has shown its help
            context = getattr(error, "ctx", None)  # its parser's errors have none
            command = path_of(arguments) if context is None else context.command_path
            complain(f"{text} (see `{command} --help`)")
        return Exit.USAGE
    if isinstance(error, OSError) and (of_what := _of_what(error)):
        complain(f"{of_what}: {error.strerror}")
        return Exit.UNFORESEEN
    if lacks := _lacks(error):
        complain(f"{lacks}; then run again: what is resident is skipped")
        return Exit.UNFORESEEN
    hint = f"{CONSEQUENCES[Kind.UNFORESEEN].hint} with what FSXWARM_DEBUG=1 prints"
    complain(f"unforeseen: {type(error).__name__}: {error} ({hint})")
    return Exit.UNFORESEEN


_NO_MEMORY: Final = (
    os.strerror(errno.ENOMEM),  # of the kernel, or in it, of the dynamic loader
    "failed to map segment from shared object",
    "error return without exception set",  # an interpreter's that could not even make its MemoryError
)


def _lacks(error: BaseException | None) -> str:
    """What the machine, or a limit, has denied us, and what to do about it; nothing if it has not."""
    while error is not None:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
            return "out of memory: raise the limit (ulimit -v, or the job's), or use a machine with more"
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return "another thread cannot be started: raise the limits on memory and processes (ulimit -v, -u)"
        error = error.__cause__ or error.__context__
    return ""


def _of_what(error: OSError) -> str:
    """What a system's error is about: the file that it names, or our own output, whose rest is then given up."""
    if error.filename is not None:
        return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    for stream, name in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
        try:
            if stream is not None and error.errno in _REFUSED:
                stream.flush()
                os.write(stream.fileno(), b"\n")  # what was refused may be there to be written no more
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            return f"cannot write to {name}"
    return ""


def _reader_left() -> int:
    """End quietly when the reader of our output has gone, as `head` does; but not as if all had been told."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.UNFORESEEN
