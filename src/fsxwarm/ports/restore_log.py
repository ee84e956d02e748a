"""The log in which a file system says why restores failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol


class LogEvent(NamedTuple):
    """One event: when it was logged (seconds since the epoch), and what it says."""

    at: float
    message: str


class RestoreLog(Protocol):
    """Reads CloudWatch Logs. Raises `fsxwarm.ports.cloud.CloudError`."""

    def events(self, group: str, system: str, *, start: float, end: float) -> AsyncIterator[LogEvent]:
        """The failed restores that file system `system` logged between two moments (seconds since the epoch)."""
        ...
