"""`fsxwarm daemon`: the service that owns the warming of a machine's file systems."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fsxwarm import configfile
from fsxwarm.daemon.main import run
from fsxwarm.errors import Exit


def daemon(
    *,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The configuration, instead of FSXWARM_CONFIG or /etc/fsxwarm/config.toml.",
            show_default=False,
        ),
    ] = None,
) -> Exit:
    """Run the daemon in the foreground, as systemd wants it: jobs of many users, each file asked for once.

    As root it serves the members of its group, each with their own rights; as anybody else it serves that user alone.
    SIGTERM stops it, SIGHUP makes it read its configuration anew.
    """
    return run(configfile.load(os.environ, config), config, os.environ)
