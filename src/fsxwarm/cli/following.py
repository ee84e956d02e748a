"""Following a job of the daemon to its end, as if the command did the work itself."""

from __future__ import annotations

import json
import sys
import time
from typing import Final

from fsxwarm.cli.job_view import exit_of, line
from fsxwarm.cli.output import complain, redraw
from fsxwarm.cli.progress import Mode
from fsxwarm.cli.signals import as_ctrl_c
from fsxwarm.client import wire
from fsxwarm.client.client import Client
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.units import format_duration

_ON_TERMINAL: Final = 0.5
_IN_LOG: Final = 5.0
_PATIENCE: Final = 120.0
"""Seconds that a daemon that restarts is waited for."""
_AGAIN: Final = 1.0
"""Seconds after which it is asked again."""


@as_ctrl_c()
def follow(
    client: Client,
    job: wire.Job,
    mode: Mode,
    *,
    until_ready: bool = False,
    told: str = "",
    until: float | None = None,
) -> tuple[wire.Job, Exit]:
    """Wait until a job has ended (or is ready), showing how far it is; the job then, and the exit status.

    `told` is said first. At `until`, on the monotonic clock, the status is DEADLINE. Ctrl-C lets go of it, as SIGTERM
    and SIGHUP do: it goes on, and the line printed says how to come back to it.
    """
    screen = _Screen(mode)
    try:
        if told:
            complain(told)
        while not (job["final"] or (until_ready and job["ready"])):
            left = screen.every if until is None else min(screen.every, until - time.monotonic())
            if left <= 0:
                screen.clear()
                return job, Exit.DEADLINE
            job = _waited(client, job, left, screen, until)
            screen.show(job)
    except KeyboardInterrupt:
        screen.clear()
        number = job["id"]
        back = f"`fsxwarm jobs wait {number}` waits again, `fsxwarm jobs cancel {number}` ends it"
        complain(f"job {number} goes on: {back}")
        return job, Exit.INTERRUPTED
    screen.clear()
    return job, exit_of(job) if job["final"] else Exit.DONE


def _waited(client: Client, job: wire.Job, seconds: float, screen: _Screen, until: float | None) -> wire.Job:
    """One long poll, also over a restart of the daemon; at `until` the job as it was last seen."""
    began = time.monotonic()
    away = False
    while True:
        try:
            job = client.wait(job["id"], seconds)
        except FsxwarmError as error:
            now = time.monotonic()
            if error.kind not in {Kind.RESTARTING, Kind.NO_DAEMON} or now > began + _PATIENCE:
                raise
            if not away:
                screen.say(f"{error.message}; waiting up to {format_duration(_PATIENCE)} for it to come back")
                away = True
            left = _AGAIN if until is None else min(_AGAIN, until - now)
            if left <= 0:
                return job
            time.sleep(left)
        else:
            if away:
                screen.say("the daemon is back")
            return job


class _Screen:
    """Progress on standard error: one line over and over on a terminal, a line now and then elsewhere, or JSON."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._terminal = sys.stderr.isatty() and mode in {Mode.AUTO, Mode.BAR}
        self.every = _ON_TERMINAL if self._terminal else 60.0 if mode is Mode.NONE else _IN_LOG

    def show(self, job: wire.Job) -> None:
        if self._mode is Mode.NONE:
            return
        if self._mode is Mode.JSON:
            sys.stderr.write(json.dumps({"event": "progress", "job": job}) + "\n")
        elif self._terminal:
            redraw(line(job))
        elif not job["final"]:
            sys.stderr.write(line(job) + "\n")
        sys.stderr.flush()

    def say(self, text: str) -> None:
        """Tell of something that is no progress, also where none is shown."""
        if self._mode is Mode.JSON:
            sys.stderr.write(json.dumps({"event": "message", "time": time.time(), "text": text}) + "\n")
            sys.stderr.flush()
        else:
            complain(text)

    def clear(self) -> None:
        if self._terminal:
            redraw()
