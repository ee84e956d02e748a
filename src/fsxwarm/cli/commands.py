"""The commands by name, each loaded only when it is asked for: what one needs, no other waits for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperGroup

COMMANDS: Final = {
    "preload": "Make files resident on FSx, so that a job's first read need not wait for S3.",
    "plan": "Say what a preload would take: how much, what S3 will refuse, whether it fits, and how long it takes.",
    "status": "Show how much is resident on FSx and how much is **released**, that is only in S3.",
    "wait": "Wait until files are resident that something else restores: a job of the daemon, a preload, other nodes.",
    "release": "Give back the space of files that S3 holds too. No data is lost: reading them, or a preload, brings it"
    " back.",
    "pin": "Pin files: neither fsxwarm nor an FSx release task gives their space back until they are unpinned.",
    "unpin": "Unpin files: let them be released again. Clears Lustre's norelease flag.",
    "associations": "Show which folders are linked to which S3 prefixes, how they are kept in step, and what is wrong"
    " with them.",
    "doctor": "Check that fsxwarm can work: lfs, the mount, your rights and free space, and say what to do about each"
    " finding.",
    "daemon": "Run the daemon in the foreground, as systemd wants it: jobs of many users, each file asked for once.",
    "jobs": "List, show, wait for, cancel and hurry the daemon's jobs.",
    "top": "Watch the daemon: jobs, rate, window, space, what is slow and what failed. `q` or Ctrl-C leaves.",
    "page": "Print an address at which a browser sees your jobs, folders and failures. Read-only.",
    "report": "Work with the reports that `preload --report` writes.",
    "slurm": "Check what a Slurm job says it needs; submit it behind a job that warms.",
    "config": "Check or show the configuration of daemon and commands.",
    "sim": "Make a simulated FSx for Lustre in DIR and run it until Ctrl-C: files, an lfs, metadata servers, copy"
    " agents.",
}
"""Name and first paragraph of the help of every command, as `fsxwarm --help` lists them."""

_MODULES: Final = {"unpin": "pin"}
"""Where a command is, if not in the module of its own name."""


class Commands(TyperGroup):
    """A group that knows its commands by name, and loads the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is named first; what else there is, is left to it."""
        name, known, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, known, rest
        command = load(name)
        _take_types_away(command, ctx)
        return name, command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show what there is."""
        _take_types_away(self, ctx)
        super().format_help(ctx, formatter)


def load(name: str) -> Any:
    """Load a command, as typer's own core runs it."""
    found = getattr(import_module(f"fsxwarm.cli.{_MODULES.get(name, name)}"), name)
    around = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    around.callback()(_nothing)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name)(found)
    group = typer.main.get_command(around)
    assert isinstance(group, TyperGroup)  # noqa: S101 - what has a callback is one
    return group.commands[name]


def _take_types_away(command: Any, context: Any) -> None:
    """Let help show no `<bool>` behind a flag and no `<list[str]>` behind PATH: they are typer's, and tell nobody."""
    for parameter in command.get_params(context):
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = _no_type  # type: ignore[method-assign]  # typer asks nothing else for it
        elif parameter.is_flag:
            parameter.metavar = ""
    for part in getattr(command, "commands", {}).values():
        if not isinstance(command, Commands):  # whose parts are not loaded
            _take_types_away(part, context)


def _no_type(ctx: Any) -> None:
    """Stand in for what an argument is of."""


def path_of(arguments: Sequence[str]) -> str:
    """Tell which command a command line is for, as its help is asked for: `fsxwarm jobs wait`."""
    names = ["fsxwarm"]
    within: Any = COMMANDS
    for word in arguments:
        if word.startswith("-"):
            continue
        if word not in within:
            break
        command = load(word) if within is COMMANDS else within[word]
        names.append(word)
        within = getattr(command, "commands", {})
    return " ".join(names)


def listed(app: typer.Typer) -> None:
    """Make the names and their help known to `app`, whose group is of the kind above."""
    for name, help_text in COMMANDS.items():
        app.command(name, help=help_text)(_nothing)


def _nothing() -> None:
    """Stand in for a command that has not been loaded."""
