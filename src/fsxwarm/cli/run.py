"""Running a command: settings from the environment, the app around its coroutine, errors for `--json`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fsxwarm.app import App, run_app
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.config import Settings
from fsxwarm.errors import FsxwarmError

T = TypeVar("T")


def run(work: Callable[[App], Awaitable[T]], *, json: bool = False) -> T:
    """Run a command's coroutine with an open app. Errors go on to `main`; with `json` they are printed as JSON too."""
    try:
        return run_app(Settings.from_environ(os.environ), work, complain)
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
