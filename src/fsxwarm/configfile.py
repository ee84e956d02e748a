"""The configuration file, by default `/etc/fsxwarm/config.toml`: what an administrator sets for daemon and commands.

Nothing has to be set. A variable `FSXWARM_<TABLE>_<KEY>` of the environment overrides a key, `FSXWARM_<KEY>` one of the
table `warming`. Durations are written 90s, 15m, 2h, 7d, sizes 500GB or 5%; a bare number is seconds or bytes.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from ipaddress import ip_network
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from fsxwarm.config import Settings, variable
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.files import read_whole
from fsxwarm.model.address import parse_address
from fsxwarm.model.lease import MOST_SECONDS
from fsxwarm.model.units import Amount, parse_amount, parse_duration, parse_size

PATH: Final = "/etc/fsxwarm/config.toml"
"""Where the file is looked for; FSXWARM_CONFIG names another."""

_OVERRIDABLE: Final = ("daemon", "limits", "inventory", "metrics")


def _read_with(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: parse(value) if isinstance(value, str) else value


def _bare_amount(value: Any) -> Any:
    return parse_amount(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else value


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


def _address(value: Any) -> Any:
    return str(parse_address(value)) if isinstance(value, str) and value else value


def _network(text: Any) -> Any:
    return str(ip_network(text)) if isinstance(text, str) else text


def _plain(settings: Settings) -> dict[str, Any]:
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: str(value) if isinstance(value, Amount) else value for name, value in values.items()}


Seconds = Annotated[float, BeforeValidator(_read_with(parse_duration)), Field(gt=0, allow_inf_nan=False)]
Bytes = Annotated[int, BeforeValidator(_read_with(parse_size)), Field(gt=0)]
Room = Annotated[Amount, BeforeValidator(_bare_amount), PlainSerializer(str)]
FilePath = Annotated[str, BeforeValidator(lambda value: _absolute(value) if isinstance(value, str) else value)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class DaemonTable(_Table):
    """Where the daemon lives and who may talk to it."""

    socket: FilePath = "/run/fsxwarm/fsxwarm.sock"
    """Its unix socket. Unused when systemd passes one."""

    group: str = "fsxwarm-users"
    """Who is in this group may talk to it; empty: root alone."""

    admin_group: str = "fsxwarm-admin"
    """Its members may see, cancel and hurry everybody's jobs and release everybody's files; empty: root alone."""

    state: FilePath = "/var/lib/fsxwarm"
    """Its folder for the database of jobs. Never on Lustre."""

    log: Literal["debug", "info", "warning", "error"] = "info"
    """What its log tells from; debug tells of every file."""


class LimitsTable(_Table):
    """How much one user may ask of it."""

    open_jobs: Annotated[int, Field(ge=1)] = 200
    """Jobs of one user that have not ended."""

    queued_files: Annotated[int, Field(ge=1)] = 20_000_000
    """Files that one user's jobs have yet to settle, beyond which no other job is taken on."""

    leases: Annotated[int, Field(ge=1)] = 100
    """Leases of one user."""

    request_size: Bytes = 32 << 20
    """Bytes of one request: what a list of files may take."""

    request_time: Seconds = 30.0
    """Seconds that a client may take to say what it wants, and to take in an answer."""

    connections: Annotated[int, Field(ge=1)] = 4000
    """Connections at a time."""

    connections_each: Annotated[int, Field(ge=1)] = 1500
    """Connections of one user at a time."""


class SlurmTable(_Table):
    """Jobs of Slurm, whose hooks ask the daemon when they begin and end."""

    act_for_others: list[str] = []
    """Users (names or numbers) that may ask for others' jobs: Slurm's own (SlurmUser), and root for the Prolog."""

    lease: Annotated[Seconds, Field(le=MOST_SECONDS)] = 7 * 86400.0
    """How long a job's paths are kept for it if nobody tells of its end."""

    fresh: Seconds = 60.0
    """How long what was found resident is taken for resident without another look."""

    patience: Seconds = 60.0
    """How long a job that waits for its data may not ask for it before it counts as cancelled."""


class RemoteTable(_Table):
    """Requests from other machines, sealed with MUNGE."""

    listen: Annotated[str, BeforeValidator(_address)] = ""
    """Where they are taken, such as `10.0.0.5:8127`; empty: nowhere."""

    networks: list[Annotated[str, BeforeValidator(_network)]] = []
    """From where they are taken, such as `10.0.0.0/16`."""

    munge_socket: Annotated[str, BeforeValidator(lambda value: value and _absolute(value))] = ""
    """Where munged listens; empty: in its usual place."""

    @model_validator(mode="after")
    def _networks_are_named(self) -> RemoteTable:
        if self.listen and not self.networks:
            raise ValueError("networks must name who may ask, such as 10.0.0.0/16")
        return self


class KeepWarmTable(_Table):
    """Paths that are walked again and again; what turned cold is restored."""

    paths: Annotated[list[FilePath], Field(min_length=1)]
    every: Annotated[Seconds, Field(ge=60)] = 3600.0


class MakeRoomTable(_Table):
    """Below `low_free` on the file system mounted at `mount`, files are released until `high_free` is free."""

    mount: FilePath
    low_free: Room = Amount(percent=10.0)
    high_free: Room = Amount(percent=20.0)
    dry_run: bool = False

    @model_validator(mode="after")
    def _low_is_below_high(self) -> MakeRoomTable:
        low, high = self.low_free, self.high_free
        if (low.percent is None) == (high.percent is None) and (low.percent or low.bytes or 0) >= (
            high.percent or high.bytes or 0
        ):
            raise ValueError(f"low_free ({low}) must be less than high_free ({high})")
        return self


class InventoryTable(_Table):
    """Counting what is released and archived below `paths` from time to time, slowly."""

    paths: list[FilePath] = []

    associations: bool = True
    """Below every folder that is linked to S3 as well, as far as AWS tells which are."""

    every: Seconds = 86400.0
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 500.0
    """Files a second."""


class MetricsTable(_Table):
    """Metrics for Prometheus."""

    listen: Annotated[str, BeforeValidator(_address)] = "127.0.0.1:9955"
    """Where `/metrics` is to be had without a question; empty: on the daemon's socket alone."""


class Config(_Table):
    """All of it. `warming` has the fields of `fsxwarm.config.Settings`."""

    daemon: DaemonTable = DaemonTable()
    limits: LimitsTable = LimitsTable()
    slurm: SlurmTable = SlurmTable()
    remote: RemoteTable = RemoteTable()
    warming: Annotated[Settings, PlainSerializer(_plain)] = Settings()
    keep_warm: list[KeepWarmTable] = []
    make_room: list[MakeRoomTable] = []
    inventory: InventoryTable = InventoryTable()
    metrics: MetricsTable = MetricsTable()


def load(environ: Mapping[str, str], path: str | None = None) -> Config:
    """Read the file at `path` (else FSXWARM_CONFIG, else the default place), changed by `environ`.

    Only the file in the default place may be missing. FsxwarmError USAGE says what is wrong, and where.
    """
    named = path or environ.get("FSXWARM_CONFIG") or None
    where = named or PATH
    return parse(_tables(where, must_exist=named is not None), environ, where)


def parse(tables: Mapping[str, Any], environ: Mapping[str, str], where: str) -> Config:
    """Make a configuration of the tables of a file, changed by `environ`; `where` names the file in errors."""
    values = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    origins = _override(values, environ)
    warming = _settings(values.pop("warming", {}), environ, where)
    try:
        return Config.model_validate({**values, "warming": warming})
    except ValidationError as error:
        wrong = "; ".join(_explain(detail, origins) for detail in error.errors())
        raise FsxwarmError(Kind.USAGE, f"{where}: {wrong}", hint="see `fsxwarm config show`") from None


def _tables(where: str, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(read_whole(where).decode())
    except FileNotFoundError:
        if must_exist:
            raise FsxwarmError(Kind.USAGE, f"there is no configuration {where}", hint="check its name") from None
        return {}
    except OSError as error:
        raise FsxwarmError(Kind.USAGE, f"cannot read {where}: {error.strerror}", hint="check its rights") from None
    except UnicodeDecodeError:
        raise FsxwarmError(Kind.USAGE, f"{where} is not UTF-8", hint="") from None
    except tomllib.TOMLDecodeError as error:
        raise FsxwarmError(Kind.USAGE, f"{where} is no TOML: {error}", hint="") from None


def _override(values: dict[str, Any], environ: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Put what the environment says into the tables; returns which key came from which variable."""
    origins: dict[tuple[str, ...], str] = {}
    for table in _OVERRIDABLE:
        prefix = f"FSXWARM_{table.upper()}_"
        for name, text in environ.items():
            if name.startswith(prefix) and text:
                key = name.removeprefix(prefix).lower()
                held = values.setdefault(table, {})
                if isinstance(held, dict):
                    held[key] = text.split(":") if key == "paths" else text
                    origins[table, key] = name
    return origins


def _settings(table: Any, environ: Mapping[str, str], where: str) -> Settings:
    if not isinstance(table, dict):
        raise FsxwarmError(Kind.USAGE, f"{where}: warming must be a table", hint="write [warming]")
    kinds = {field.name: str(field.type) for field in fields(Settings)}
    known = list(kinds)
    for key in table:
        if key not in known:
            raise FsxwarmError(Kind.USAGE, f"{where}: {_unknown(f'warming.{key}', key, known)}", hint="")
    texts = {f"warming.{key}": _text(value, kinds[key]) for key, value in table.items()}

    def called(field: str) -> str:
        """Where its value comes from."""
        return variable(field) if environ.get(variable(field)) else f"warming.{field}"

    texts |= environ
    try:
        return Settings.from_texts(texts, called)
    except FsxwarmError as error:
        raise FsxwarmError(Kind.USAGE, f"{where}: {error.message}", hint=error.hint) from None


def _text(value: Any, kind: str) -> str:
    bare = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value}s" if bare and kind == "float" else str(value)


def _explain(detail: Any, origins: Mapping[tuple[str, ...], str]) -> str:
    location = tuple(detail["loc"])
    origin = origins.get(cast("tuple[str, ...]", location[:2]))
    called = origin or ".".join(map(str, location))
    if detail["type"] == "extra_forbidden":
        return _unknown(called, str(location[-1]), _keys(location[:-1]))
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{called}: {message[:1].lower()}{message[1:]}"


def _unknown(called: str, key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"unknown key {called}" + (f", did you mean {near[0]}?" if near else f" (known: {', '.join(known)})")


def _keys(location: tuple[str | int, ...]) -> list[str]:
    """The keys of the table at a location."""
    model: type[BaseModel] = Config
    for part in location:
        if isinstance(part, str):
            model = _TABLES[part]
    return list(model.model_fields)


_TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "daemon": DaemonTable,
    "limits": LimitsTable,
    "slurm": SlurmTable,
    "remote": RemoteTable,
    "keep_warm": KeepWarmTable,
    "make_room": MakeRoomTable,
    "inventory": InventoryTable,
    "metrics": MetricsTable,
}


def variables() -> set[str]:
    """The variables of the environment that override a key of a table other than `warming`."""
    return {f"FSXWARM_{table}_{key}".upper() for table in _OVERRIDABLE for key in _TABLES[table].model_fields}


def plain(config: Config) -> dict[str, Any]:
    """The configuration as tables of plain values, as `fsxwarm config show --json` prints it."""
    return config.model_dump()


def to_toml(config: Config) -> str:
    """The configuration as a file that says the same."""
    tables = plain(config)
    lines: list[str] = []
    for name, table in tables.items():
        several = isinstance(table, list)
        for one in table if several else [table]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in one.items()]
            lines.append("")
    return os.linesep.join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(_toml_char(char) for char in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _toml_char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"
