"""What AWS says of the mounted file systems, as findings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from fsxwarm.engine.atlas import Atlas, Chart
from fsxwarm.engine.doctor import Finding, Level
from fsxwarm.model.association import FileSystem, complaint_of, may_be_fsx


async def examine_aws(atlas: Atlas, paths: Sequence[bytes]) -> AsyncIterator[Finding]:
    """Yield findings of the file systems that these paths are on. Nothing here keeps local work from going on."""
    done: set[bytes] = set()
    for path in paths:
        mount = atlas.mount_of(path)
        if mount is None or mount.path in done or not may_be_fsx(mount.source):
            continue
        done.add(mount.path)
        for finding in _findings(await atlas.chart(mount)):
            yield finding


def _findings(chart: Chart) -> Iterator[Finding]:
    if chart.complaint is not None:
        yield Finding("aws", Level.WARN, chart.complaint.what, chart.complaint.todo)
    if chart.system is None:
        return
    yield Finding("aws", Level.OK, f"{chart.system.id} is {chart.system.lifecycle}")
    for link in chart.links:
        wrong = complaint_of(link.association)
        what = f"{link.association.uri} at {link.association.folder}"
        if wrong is None:
            yield Finding("link", Level.OK, f"{what} is {link.association.lifecycle}")
        else:
            yield Finding("link", Level.WARN, f"{what}: {wrong.what}", wrong.todo)
    yield from _configuration(chart.system)


def _configuration(system: FileSystem) -> Iterator[Finding]:
    if system.log_group:
        yield Finding("log", Level.OK, f"failed restores are logged to {system.log_group}")
    else:
        yield Finding(
            "log",
            Level.WARN,
            "failed restores are not logged: nobody can tell why one failed",
            "turn on logging of warnings and errors to CloudWatch Logs (LogConfiguration WARN_ERROR)",
        )
    if system.root_squash and system.root_squash != "0:0":
        yield Finding(
            "squash",
            Level.WARN,
            f"root is squashed to {system.root_squash}: it can cancel nothing and read no closed folders",
            "exempt this node (NoSquashNids)",
        )
    if system.metadata:
        yield Finding("metadata", Level.OK, f"{system.metadata_iops:,} metadata IOPS, {system.metadata.lower()}")
