"""Through the daemon, or here in this process: what a command does when a daemon answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fsxwarm.cli.environment import named_configuration
from fsxwarm.cli.options import WHO
from fsxwarm.cli.output import complain
from fsxwarm.client import wire
from fsxwarm.errors import FsxwarmError, Kind, reason
from fsxwarm.files import read_whole

if TYPE_CHECKING:
    from fsxwarm.client.client import Client

Local = Annotated[
    bool, typer.Option("--local", help="Work here in this process, even where a daemon answers.", rich_help_panel=WHO)
]
ByDaemon = Annotated[
    bool, typer.Option("--daemon", help="Ask the daemon, or fail where none answers.", rich_help_panel=WHO)
]

_CONFIG: Final = "/etc/fsxwarm/config.toml"


def daemon_or_not(
    *, local: bool, by_daemon: bool, own: Mapping[str, bool], here: Mapping[str, bool] | None = None
) -> Client | None:
    """The daemon to ask, once it has answered; None where the command is to do the work itself.

    `own` names options that are the daemon's own business, with whether they were given: with a daemon they are an
    error. `here` names options that only this process can fulfil: with them it does, unless the daemon is insisted on.
    """
    if local and by_daemon:
        raise FsxwarmError(Kind.USAGE, "--local and --daemon: only one of them", hint="leave one out")
    only_here = [option for option, given in (here or {}).items() if given]
    if by_daemon and only_here:
        raise FsxwarmError(Kind.USAGE, f"{only_here[0]} does not go through the daemon", hint="use --local")
    if local:
        return None
    if not by_daemon and not os.environ.get("FSXWARM_DAEMON") and not Path(socket_path(os.environ)).exists():
        return None
    client = client_of(os.environ)
    if only_here:
        complain(f"working without the daemon, which does not take {only_here[0]}")
        return None
    try:
        client.health()
    except FsxwarmError as error:
        client.close()
        if by_daemon or error.kind not in {Kind.NO_DAEMON, Kind.NO_PERMISSION, Kind.RESTARTING}:
            raise
        complain(f"working without the daemon: {error.message}")
        return None
    for option, given in own.items():
        if given:
            client.close()
            raise FsxwarmError(
                Kind.USAGE, f"{option} is the daemon's own business", hint="leave it out, or use --local"
            )
    return client


def client_of(environ: Mapping[str, str]) -> Client:
    """The daemon that FSXWARM_DAEMON names (`host:port`, over the network), or this machine's. FsxwarmError USAGE."""
    from fsxwarm.client.client import Client  # noqa: PLC0415 - nobody waits for it where there is no daemon

    named = environ.get("FSXWARM_DAEMON")
    if not named:
        return Client(socket_path(environ))
    from fsxwarm.client.remote import RemoteClient  # noqa: PLC0415 - the same
    from fsxwarm.model.address import parse_address  # noqa: PLC0415 - the same

    try:
        address = parse_address(named)
    except ValueError as error:
        raise FsxwarmError(Kind.USAGE, f"FSXWARM_DAEMON: {error}", hint="write login1:8127") from None
    return RemoteClient(address, munge_socket=environ.get("FSXWARM_MUNGE_SOCKET", ""))


def socket_path(environ: Mapping[str, str]) -> str:
    """Where the daemon listens: the environment's word, the configuration's, or the default. FsxwarmError USAGE."""
    named = environ.get("FSXWARM_DAEMON_SOCKET")
    if named:
        return named
    path = named_configuration(environ)
    try:
        return _socket_in(path or Path(_CONFIG))
    except (OSError, ValueError) as error:  # of the default one the daemon says what is wrong with it
        if path is None:
            return wire.SOCKET
        raise FsxwarmError(Kind.USAGE, f"{path}: {reason(error)}", hint="see `fsxwarm config check`") from None


def _socket_in(path: Path) -> str:
    """The socket that a configuration names, or the default: nothing else is read here. OSError, ValueError."""
    text = read_whole(path).decode()
    import tomllib  # noqa: PLC0415 - nobody waits for it where there is no configuration

    try:
        return str(tomllib.loads(text)["daemon"]["socket"])
    except (KeyError, TypeError):
        return wire.SOCKET
