"""`fsxwarm config`: checks and shows the configuration."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fsxwarm import configfile
from fsxwarm.cli.options import Json
from fsxwarm.cli.output import emit_json
from fsxwarm.errors import Exit

config = typer.Typer(help="Check or show the configuration of daemon and commands.", no_args_is_help=True)

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="The file, instead of FSXWARM_CONFIG or /etc/fsxwarm/config.toml.", show_default=False
    ),
]


@config.command()
def check(file: File = None) -> Exit:
    """Say whether a configuration is good. Exits with 2 if it is not, and says what is wrong."""
    configfile.load(os.environ, file)
    print(f"{file or os.environ.get('FSXWARM_CONFIG') or configfile.PATH}: good")  # noqa: T201 - what was asked for
    return Exit.DONE


@config.command()
def show(file: File = None, *, json: Json = False) -> Exit:
    """Show what holds: the file, changed by the environment, with every default."""
    loaded = configfile.load(os.environ, file)
    if json:
        emit_json({"schema": "fsxwarm.config/1", "exit": int(Exit.DONE), "config": configfile.plain(loaded)})
    else:
        print(configfile.to_toml(loaded), end="")  # noqa: T201 - what was asked for
    return Exit.DONE
