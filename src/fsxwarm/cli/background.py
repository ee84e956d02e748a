"""A command that goes on in the background: detached from the terminal, with a log and a pid file.

The child tells the command that started it how far it is through a pipe, so that errors reach the user with the right
exit status, and so that nobody polls files.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from fsxwarm.cli.output import complain, emit_json, safe
from fsxwarm.cli.schema import BackgroundDocument, error_document, json_path
from fsxwarm.cli.signals import as_ctrl_c
from fsxwarm.errors import CONSEQUENCES, Exit, FsxwarmError, Kind, reason

_STANDARD: Final = 3
"""Descriptors below this are the standard streams."""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where logs and pid files go: under $XDG_STATE_HOME or ~/.local/state. FsxwarmError USAGE without a home."""
    state = environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return Path(state) / "fsxwarm"
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        raise FsxwarmError(Kind.USAGE, "--background needs a folder for its log", hint="set XDG_STATE_HOME or HOME")
    return Path(home) / ".local" / "state" / "fsxwarm"


def detach(folder: Path, name: str, *, keep_stdin: bool) -> Starter | Child:
    """Split in two: returns a `Starter` in the process that the user waits for and a `Child` in the one that goes on.

    The child has a session of its own, and its output goes to `<name>-<time>-<pid>.log` in `folder`. With
    `keep_stdin` it still reads standard input. To be called while there is one thread and no event loop.
    """
    reader, writer = map(_above_the_standard_streams, os.pipe())
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Starter(pid, reader)
    os.close(reader)
    os.setsid()
    return Child(folder, f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}", writer, keep_stdin=keep_stdin)


class Child:
    """The process that goes on, and its end of the pipe."""

    def __init__(self, folder: Path, name: str, pipe: int, *, keep_stdin: bool) -> None:
        self._log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._pipe: int | None = pipe
        self._keep_stdin = keep_stdin
        self._has_started = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Surround the work: output goes to the log, an error to whoever still waits; the pid file ends with it."""
        try:
            self._redirect()
            yield
        except FsxwarmError as error:
            self._tell({"error": {"kind": error.kind.value, "message": error.message, "hint": error.hint}})
            raise
        finally:
            with suppress(OSError):
                self._pid_file.unlink()
                if not self._has_started:
                    self._log.unlink()

    def started(self) -> None:
        """The work has begun as it should."""
        self._has_started = True
        self._tell({"state": "started", "log": os.fsdecode(self._log), "pid_file": os.fsdecode(self._pid_file)})

    def ready(self) -> None:
        """What the user may be waiting for is there."""
        self._tell({"state": "ready"})

    def ended(self, code: Exit) -> None:
        """The work is done."""
        self._tell({"state": "ended", "exit": int(code)})

    def _redirect(self) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            self._pid_file.write_text(f"{os.getpid()}\n")
        except OSError as error:
            for stream in (1, 2):
                os.dup2(null, stream)  # the process that the user waits for says it
            raise FsxwarmError(
                Kind.USAGE,
                f"--background cannot write its log in {self._log.parent}: {reason(error)}",
                hint="set XDG_STATE_HOME to another folder",
            ) from None
        if not self._keep_stdin:
            os.dup2(null, 0)
        for stream in (1, 2):
            os.dup2(log, stream)
        for descriptor in (null, log):
            if descriptor >= _STANDARD:
                os.close(descriptor)

    def _tell(self, message: Mapping[str, object]) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:  # nobody waits any more
            os.close(self._pipe)
            self._pipe = None


class Starter:
    """The process that the user waits for."""

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid = pid
        self._pipe = pipe
        self._state: Literal["started", "ready", "ended"] = "started"
        self._log = self._pid_file = ""

    @as_ctrl_c()
    def attend(self, *, until_ready: bool, json: bool) -> Exit:
        """Wait until the child has started, or is ready; returns the exit status to end with.

        An error of the child is raised here. When the child ends before it is ready, its exit status is returned.
        """
        try:
            code = self._listen(until_ready=until_ready, quiet=json)
        except FsxwarmError as error:
            if json:
                emit_json(error_document(error))
            raise
        except KeyboardInterrupt:
            complain(f"not waiting any more; it goes on in the background as process {self._pid}")
            code = Exit.INTERRUPTED
        if json:
            emit_json(self._document(code))
        return code

    def _listen(self, *, until_ready: bool, quiet: bool) -> Exit:
        with os.fdopen(self._pipe, "rb") as messages:
            for line in messages:
                message = json.loads(line)
                if "error" in message:
                    os.waitpid(self._pid, 0)
                    raise _error(message["error"])
                self._state = message["state"]
                if self._state == "started":
                    self._log, self._pid_file = message["log"], message["pid_file"]
                    if not quiet:
                        self._introduce()
                    if not until_ready:
                        return Exit.DONE
                elif self._state == "ready":
                    _say("ready; the rest goes on in the background", quiet=quiet)
                    return Exit.DONE
                else:
                    return self._ended(Exit(message["exit"]), quiet=quiet)
        _, status = os.waitpid(self._pid, 0)
        log = f": see {self._log}" if self._log else ""
        raise FsxwarmError(
            Kind.UNFORESEEN,
            f"the background process ended with status {os.waitstatus_to_exitcode(status)}{log}",
            hint="",
        )

    def _ended(self, code: Exit, *, quiet: bool) -> Exit:
        _say("done" if code is Exit.DONE else f"ended with exit status {int(code)}: see the log", quiet=quiet)
        return code

    def _introduce(self) -> None:
        _say(f"goes on in the background as process {self._pid}")
        _say(f"  log   {safe(self._log)}")
        _say(f"  pid   {safe(self._pid_file)}")
        _say(f"  stop  kill {self._pid}")

    def _document(self, code: Exit) -> BackgroundDocument:
        return {
            "schema": "fsxwarm.background/1",
            "exit": int(code),
            "state": self._state,
            "pid": self._pid,
            "log": json_path(os.fsencode(self._log)),
            "pid_file": json_path(os.fsencode(self._pid_file)),
        }


def _above_the_standard_streams(descriptor: int) -> int:
    """Move a descriptor out of the way: a closed standard stream's number may have been given to it."""
    if descriptor >= _STANDARD:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD)
    os.close(descriptor)
    return moved


def _error(told: Mapping[str, Any]) -> FsxwarmError:
    kind = Kind(told["kind"])
    return FsxwarmError(kind, told["message"], hint=told.get("hint", CONSEQUENCES[kind].hint))


def _say(line: str, *, quiet: bool = False) -> None:
    if not quiet:
        print(line, flush=True)  # noqa: T201 - printing is what this is for
