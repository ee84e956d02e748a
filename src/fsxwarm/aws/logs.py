"""CloudWatch Logs through boto3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fsxwarm.aws.calls import Calls
from fsxwarm.model import actions
from fsxwarm.model.restore_log import FILTER
from fsxwarm.ports.restore_log import LogEvent


class CloudWatchLog:
    """Implements `fsxwarm.ports.restore_log.RestoreLog`. A file system writes to the stream `datarepo_<its id>`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def events(self, group: str, system: str, *, start: float, end: float) -> AsyncIterator[LogEvent]:
        """See `RestoreLog`."""
        fields: dict[str, Any] = {
            "logGroupName": group,
            "logStreamNames": [f"datarepo_{system}"],
            "startTime": int(start * 1000),
            "endTime": int(end * 1000),
            "filterPattern": FILTER,
        }
        while True:
            page = await self._calls.call("logs", "filter_log_events", actions.FILTER_EVENTS, **fields)
            for event in page.get("events", []):
                yield LogEvent(event.get("timestamp", 0) / 1000, event.get("message", ""))
            if not page.get("nextToken"):
                return
            fields["nextToken"] = page["nextToken"]
