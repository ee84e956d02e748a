"""Running a command: settings from the environment, the app around its coroutine, errors for `--json`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from fsxwarm.app import App, run_app
from fsxwarm.cli.environment import named_configuration
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.config import Backend, Settings
from fsxwarm.errors import FsxwarmError

T = TypeVar("T")


def run(work: Callable[[App], Awaitable[T]], *, json: bool = False, backend: Backend | None = None) -> T:
    """Run a command's coroutine with an open app. Errors go on to `main`; with `json` they are printed as JSON too.

    `backend` goes before the settings'.
    """
    try:
        named_configuration(os.environ)
        settings = Settings.from_environ(os.environ)
        if backend is not None:
            settings = replace(settings, backend=backend)
        return run_app(settings, work, complain)
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
