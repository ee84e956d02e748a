"""`fsxwarm page`: the way into the daemon's page."""

from __future__ import annotations

import os
import time
from typing import Final
from urllib.parse import urlsplit

import typer

from fsxwarm.cli.choose import client_of
from fsxwarm.cli.options import Json
from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.units import format_duration

_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


def page(*, json: Json = False) -> Exit:
    """Print an address at which a browser sees your jobs, folders and failures. Read-only.

    It works once, for two minutes; the browser that opens it may look on for eight hours.
    """
    try:
        with client_of(os.environ) as client:
            found = client.page()
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    if json:
        emit_json({"schema": "fsxwarm.page/1", "exit": int(Exit.DONE), **found})
        return Exit.DONE
    typer.echo(found["address"])
    complain(f"open it within {format_duration(max(0.0, found['expires'] - time.time()))}; it works once")
    parts = urlsplit(found["address"])
    if parts.hostname in _LOOPBACK:
        host, port = os.uname().nodename, parts.port
        complain(f"from another machine, first: ssh -L {port}:{parts.netloc} {host}")
    return Exit.DONE
