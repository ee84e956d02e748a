"""What AWS says of the mounted file systems, as findings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from fsxwarm.engine.atlas import Atlas, Chart
from fsxwarm.engine.doctor import Finding, Level
from fsxwarm.engine.doctor_iam import examine_iam
from fsxwarm.model.association import FileSystem, complaint_of, may_be_fsx
from fsxwarm.model.entry import Trouble
from fsxwarm.ports.restore_log import RestoreLog

_LOG_ALL: Final = "turn on logging of warnings and errors to CloudWatch Logs (LogConfiguration WARN_ERROR)"
_UNTOLD: Final = {
    "ERROR_ONLY": "restores of objects in classes that FSx cannot read",
    "WARN_ONLY": "restores that were denied, or whose object is missing",
}
"""What FSx logs at the other level (user guide, "Logging with Amazon CloudWatch Logs")."""
_LTS: Final = ((2, 10), (2, 12), (2, 15))
"""The lines of Lustre that are kept up for long; releases after one belong to the next."""


async def examine_aws(
    atlas: Atlas, log: RestoreLog, paths: Sequence[bytes], *, client: tuple[int, ...] | Trouble, now: float
) -> AsyncIterator[Finding]:
    """Yield findings of the file systems that these paths are on. Nothing here keeps local work from going on.

    `client` is the Lustre client's version, `now` the time in seconds since the epoch.
    """
    charts: dict[bytes, Chart] = {}
    for path in paths:
        mount = atlas.mount_of(path)
        if mount is None or mount.path in charts or not may_be_fsx(mount.source):
            continue
        charts[mount.path] = chart = await atlas.chart(mount)
        for finding in _findings(chart):
            yield finding
        if chart.system is not None and not isinstance(client, Trouble):
            yield _versions(client, chart.system)
    if charts:
        async for finding in examine_iam(atlas.cloud, log, list(charts.values()), now=now):
            yield finding


def _findings(chart: Chart) -> Iterator[Finding]:
    if chart.complaint is not None:
        yield Finding("aws", Level.WARN, chart.complaint.what, chart.complaint.todo)
    if chart.system is None:
        return
    yield _lifecycle(chart.system)
    for link in chart.links:
        wrong = complaint_of(link.association)
        what = f"{link.association.uri} at {link.association.folder}"
        if wrong is None:
            yield Finding("link", Level.OK, f"{what} is {link.association.lifecycle}")
        else:
            yield Finding("link", Level.WARN, f"{what}: {wrong.what}", wrong.todo)
    yield from _configuration(chart.system)


def _lifecycle(system: FileSystem) -> Finding:
    region = f", in {system.region}" if system.region else ""
    text = f"{system.id} ({system.deployment}, Lustre {system.version}) is {system.lifecycle}{region}"
    if system.lifecycle in {"AVAILABLE", "UPDATING"}:
        return Finding("aws", Level.OK, text)
    return Finding("aws", Level.WARN, text, "see the file system's page in the FSx console")


def _configuration(system: FileSystem) -> Iterator[Finding]:
    untold = _UNTOLD.get(system.log_level, "")
    if system.log_group and untold:
        text = f"{system.log_group} is told only a part ({system.log_level}): {untold} are not logged"
        yield Finding("log", Level.WARN, text, _LOG_ALL)
    elif system.log_group:
        yield Finding("log", Level.OK, f"failed restores are logged to {system.log_group}")
    else:
        yield Finding(
            "log",
            Level.WARN,
            "failed restores are not logged: nobody can tell why one failed",
            _LOG_ALL,
        )
    if system.root_squash and system.root_squash != "0:0":
        yield Finding(
            "squash",
            Level.WARN,
            f"root is squashed to {system.root_squash}: it can cancel nothing and read no closed folders",
            "exempt this node (NoSquashNids)",
        )
    else:
        yield Finding("squash", Level.OK, "root is not squashed")
    if system.metadata:
        yield Finding("metadata", Level.OK, f"{system.metadata_iops:,} metadata IOPS, {system.metadata.lower()}")
    else:
        yield Finding("metadata", Level.OK, "no metadata IOPS of its own: they come with the capacity")


def _versions(client: tuple[int, ...], system: FileSystem) -> Finding:
    """Lustre supports clients and servers of the same or neighbouring lines (its ChangeLog, "Interoperability")."""
    ours = ".".join(map(str, client[:2]))
    text = f"client {ours}, servers {system.version}"
    try:
        server = tuple(int(part) for part in system.version.split("."))
    except ValueError:
        return Finding("versions", Level.OK, f"{text}: not known whether they go together")
    if abs(_line(client) - _line(server)) <= 1:
        return Finding("versions", Level.OK, text)
    advice = "update the Lustre client" if client < server else "update the file system (UpdateFileSystem)"
    return Finding("versions", Level.WARN, f"{text}: Lustre does not support these two together", advice)


def _line(version: tuple[int, ...]) -> int:
    return sum(version[:2] > line for line in _LTS)
