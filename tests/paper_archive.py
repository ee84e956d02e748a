"""S3 behind the daemon's core, on paper: a cloud of one's choice, or none at all for want of credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aws.paper_cloud import PaperCloud
from fsxwarm.engine.archive import Archive
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.restore_log import LogEvent

MOUNT = Mounted(b"/fsx", "10.0.0.7@tcp:/abc")


@dataclass
class PaperLog:
    """A log on paper: what it says, and how often it was read."""

    lines: list[LogEvent] = field(default_factory=list)
    reads: int = 0

    async def events(self, group: str, system: str, *, start: float, end: float) -> AsyncIterator[LogEvent]:
        self.reads += 1
        for line in self.lines:
            if start <= line.at < end:
                yield line


def no_credentials() -> PaperCloud:
    """A cloud that nobody may ask."""
    return PaperCloud(fails=CloudError(Fault.NO_CREDENTIALS, "sts", "NoCredentials", "there are none"))


def paper_archive(
    cloud: PaperCloud | None = None, log: PaperLog | None = None, said: list[str] | None = None
) -> Archive:
    """What the core takes. Must be made on a running loop."""
    cloud = cloud or no_credentials()
    told = [] if said is None else said
    return Archive(lambda: Atlas(cloud, [MOUNT]), log or PaperLog(), told.append)
