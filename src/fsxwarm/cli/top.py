"""`fsxwarm top`: the daemon's work at a glance."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from fsxwarm.cli.choose import client_of
from fsxwarm.cli.options import Json
from fsxwarm.cli.output import console, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.cli.signals import as_ctrl_c
from fsxwarm.client import wire
from fsxwarm.client.client import Client
from fsxwarm.errors import Exit, FsxwarmError, Kind

_EVERY: Final = 1.0
_HEARS_EVERY: Final = 0.2
"""Seconds until a key is heard or another size of the terminal is seen, at the latest."""
_LEAVE: Final = frozenset(b"qQ\x03\x04")
_PASSING: Final = {Kind.NO_DAEMON, Kind.RESTARTING, Kind.TOO_MANY}


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as where there is no terminal.")] = False,
    json: Json = False,
) -> Exit:
    """Watch the daemon: jobs, rate, window, space, what is slow and what failed. `q` or Ctrl-C leaves.

    You see your own jobs and files; an administrator sees everybody's. Without a terminal it is printed once.
    """
    with client_of(os.environ) as client:
        try:
            first = client.overview()
        except FsxwarmError as error:
            if json:
                emit_json(error_document(error))
            raise
        if json:
            emit_json({"schema": "fsxwarm.overview/1", "exit": int(Exit.DONE), **first})
        elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            _print(first)
        else:
            _watch(client, first)
    return Exit.DONE


def _print(overview: wire.Overview) -> None:
    from fsxwarm.cli.top_view import view  # noqa: PLC0415 - rich is slow to import and not needed for --json

    out = console()
    out.print(view(overview, width=out.width, height=None))


@as_ctrl_c()
def _watch(client: Client, overview: wire.Overview) -> None:
    """Show it anew each second until a key says to leave. A daemon that has gone is waited for."""
    from rich.live import Live  # noqa: PLC0415 - the same

    from fsxwarm.cli.top_view import view  # noqa: PLC0415 - the same

    out, note = console(), ""
    with (
        _keys_at_once(),
        Live(console=out, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live,
    ):
        due = time.monotonic() + _EVERY
        while True:
            out.size = width, height = _size()
            live.update(view(overview, width=width, height=height, note=note, keys=True), refresh=True)
            while time.monotonic() < due and _size() == (width, height):
                if _leaves(min(_HEARS_EVERY, max(0.0, due - time.monotonic()))):
                    return
            if time.monotonic() >= due:
                due = time.monotonic() + _EVERY
                try:
                    overview, note = client.overview(), ""
                except FsxwarmError as error:
                    if error.kind not in _PASSING:
                        raise
                    note = f"this is how it was before: {error.message}"


def _size() -> tuple[int, int]:
    """Columns and lines of the terminal itself: a COLUMNS that the shell has exported stays as it was."""
    width, height = os.get_terminal_size(sys.stdout.fileno())
    return width or 80, height or 24


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """The keyboard without lines and echo; as it was, afterwards."""
    import termios  # noqa: PLC0415 - only where there is a terminal
    import tty  # noqa: PLC0415 - the same

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    except KeyboardInterrupt:
        pass  # it is a way to leave
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _leaves(seconds: float) -> bool:
    """Wait so long for a key; whether it is one that leaves. A terminal that has gone has left."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return False
    pressed = os.read(sys.stdin.fileno(), 64)
    return pressed in {b"", b"\x1b"} or bool(_LEAVE & set(pressed))  # Escape by itself: arrows begin with it too
