"""Which file system each mount is, and what of S3 it shows: the map between paths and S3 addresses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.association import (
    Complaint,
    FileSystem,
    Link,
    MountSource,
    complaint_of_system,
    legacy_link,
    link_of,
    links_of,
    may_be_fsx,
    parse_source,
    shown,
)
from fsxwarm.model.s3 import Uri
from fsxwarm.ports.cloud import Cloud, CloudError


class Mounted(NamedTuple):
    """A Lustre mount: its mount point and its source, as the mount table has them."""

    path: bytes
    source: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What is known of one mount. `system` is None when FSx could not tell, and `complaint` says why."""

    mount: Mounted
    system: FileSystem | None
    links: tuple[Link, ...] = ()
    complaint: Complaint | None = None
    failure: CloudError | None = None


class Atlas:
    """Charts mounts, each once: two calls a file system. Never asked, it never calls AWS."""

    def __init__(self, cloud: Cloud, mounts: Sequence[Mounted]) -> None:
        self.cloud = cloud
        self._mounts = mounts
        self._charts: dict[bytes, asyncio.Task[Chart]] = {}

    @property
    def mounts(self) -> Sequence[Mounted]:
        """The mounts that there are, in the order of mounting."""
        return self._mounts

    @property
    def has_gaps(self) -> bool:
        """Whether AWS has failed to tell of a mount."""
        return any(task.done() and task.result().failure is not None for task in self._charts.values())

    async def charts(self) -> list[Chart]:
        """Chart all mounts."""
        return list(await asyncio.gather(*(self.chart(mount) for mount in self._mounts)))

    async def charts_of_fsx(self) -> list[Chart]:
        """Chart the mounts that may be FSx: for what nobody has asked for in so many words."""
        return list(await asyncio.gather(*(self.chart(mount) for mount in self._mounts if may_be_fsx(mount.source))))

    async def chart(self, mount: Mounted) -> Chart:
        """Chart a mount; what goes wrong is in the chart."""
        task = self._charts.get(mount.path)
        if task is None:
            task = self._charts[mount.path] = asyncio.create_task(self._survey(mount))
        return task.result() if task.done() else await asyncio.shield(task)

    async def links(self) -> list[Link]:
        """The links of all mounts that could be charted; CloudError if none could."""
        charts = await self.charts()
        failures = [chart.failure for chart in charts if chart.failure is not None]
        if failures and len(failures) == len(charts):
            raise failures[0]
        return [link for chart in charts for link in chart.links]

    async def chart_of(self, path: bytes) -> Chart | None:
        """The chart of the mount that a path lies on; None when that is no Lustre mount."""
        mount = self.mount_of(path)
        return None if mount is None else await self.chart(mount)

    def mount_of(self, path: bytes) -> Mounted | None:
        """The mount that a path lies on; None when that is no Lustre mount."""
        inside = [one for one in self._mounts if path == one.path or path.startswith(one.path.rstrip(b"/") + b"/")]
        return max(reversed(inside), key=lambda one: len(one.path), default=None)

    async def link_of(self, path: bytes) -> Link | None:
        """The link that a path lies in; None for a path outside every association. Raises CloudError."""
        chart = await self.chart_of(path)
        if chart is None:
            return None
        if chart.failure is not None:
            raise chart.failure
        return link_of(path, chart.links)

    async def paths(self, uri: Uri) -> list[bytes]:
        """The paths that an S3 address means here. FsxwarmError when there is none, or more than one."""
        try:
            links = await self.links()
        except CloudError as error:
            raise cannot_ask(error, f"{uri} cannot be mapped to a path") from None
        found = shown(uri, links)
        if len(found.at) > 1:
            names = ", ".join(os.fsdecode(path) for path in found.at)
            raise FsxwarmError(
                Kind.USAGE, f"{uri} shows at several places: {names}", hint="name the path that you mean", uri=str(uri)
            )
        if not found.at and not found.within:
            raise FsxwarmError(
                Kind.NO_SUCH_PATH,
                f"{uri} is linked to no file system that is mounted here",
                hint="`fsxwarm associations` lists what is linked",
                uri=str(uri),
            )
        return found.at or found.within

    async def _survey(self, mount: Mounted) -> Chart:
        source = parse_source(mount.source)
        if source is None:
            return Chart(
                mount, None, complaint=Complaint(f"{mount.source} is no Lustre server's name", "mount it anew")
            )
        try:
            system = await self._system(source)
            if isinstance(system, Complaint):
                return Chart(mount, None, complaint=system)
            barred = complaint_of_system(system)
            associations = [] if barred else await self.cloud.associations(system.id)
        except CloudError as error:
            return Chart(mount, None, complaint=Complaint(str(error), error.advice), failure=error)
        legacy = legacy_link(system)
        if legacy is not None and not associations:
            associations, barred = [legacy], None
        return Chart(mount, system, tuple(links_of(mount.path, source.below, associations)), barred)

    async def _system(self, source: MountSource) -> FileSystem | Complaint:
        """Find the file system behind a mount: by the id in its host name, by its DNS name, else by its MountName."""
        if source.id:
            return (await self.cloud.file_systems([source.id]))[0]
        systems = await self.cloud.file_systems()
        found = [one for one in systems if one.dns_name == source.host]
        found = found or [one for one in systems if one.mount_name == source.name]
        if len(found) == 1:
            return found[0]
        what = f"{source.host} (MountName {source.name})"
        if not found:
            return Complaint(
                f"{what} is no FSx file system of this account and region",
                "check AWS_PROFILE and AWS_REGION, or mount it by its DNS name",
            )
        names = ", ".join(one.id for one in found)
        return Complaint(f"{what} may be any of {names}", "mount it by its DNS name")


def cannot_ask(error: CloudError, what: str) -> FsxwarmError:
    """An error for people, of a call to AWS that a command cannot do without."""
    return FsxwarmError(Kind.CLOUD, f"{what}: {error}", hint=error.advice, fault=error.fault.value, action=error.action)
