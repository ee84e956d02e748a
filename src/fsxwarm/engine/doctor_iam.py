"""Who calls AWS, and which of the actions that fsxwarm's features need are missing, as findings.

Reading is tried out. What would change something is never tried: IAM is asked whether it would be allowed, if that may
be asked; bucket policies and those of an organisation may say otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Final

from fsxwarm.engine.atlas import Chart
from fsxwarm.engine.doctor import Finding, Level
from fsxwarm.model import actions
from fsxwarm.model.association import Link
from fsxwarm.ports.cloud import Cloud, CloudError, Fault
from fsxwarm.ports.restore_log import RestoreLog

_NOBODYS_TASK: Final = "task-00000000000000000"
_UNKNOWN: Final = frozenset({Fault.NO_CREDENTIALS, Fault.NO_REGION, Fault.UNREACHABLE})
"""Nothing can be found out; why has been told with the file system."""


async def examine_iam(cloud: Cloud, log: RestoreLog, charts: Sequence[Chart], *, now: float) -> AsyncIterator[Finding]:
    """Yield who the caller is, and what he may do with the file systems of `charts`; `now`: seconds since the epoch."""
    try:
        arn = await cloud.who()
    except CloudError as error:
        if error.fault not in _UNKNOWN:
            yield Finding("iam", Level.WARN, str(error), error.advice)
        return
    yield Finding("iam", Level.OK, f"you are {arn}")
    tried = _Tried(cloud, log, now)
    for chart in charts:
        await tried.read(chart)
        await tried.simulate(chart, arn)
    for bucket in tried.missing:
        yield Finding("link", Level.WARN, f"bucket {bucket} does not exist", "make it anew, or remove its association")
    for action in tried.denied:
        advice = f"allow {action}: deploy/iam has policies, its README says what needs which"
        yield Finding("iam", Level.WARN, f"{action} is denied; it is for: {actions.FEATURES[action]}", advice)
    allowed = [action for action in actions.FEATURES if action in tried.allowed and action not in tried.denied]
    if allowed:
        yield Finding("iam", Level.OK, f"allowed: {', '.join(allowed)}")
    unknown = [action for action in _CHECKED if action not in tried.allowed and action not in tried.denied]
    if unknown:
        yield Finding("iam", Level.OK, f"not checked: {', '.join(unknown)}")


_CHECKED: Final = [action for action in actions.FEATURES if action not in {actions.WHO, actions.SIMULATE}]


class _Tried:
    """What was found out: actions allowed and denied, and buckets that do not exist, each once."""

    def __init__(self, cloud: Cloud, log: RestoreLog, now: float) -> None:
        self._cloud = cloud
        self._log = log
        self._now = now
        self.allowed: dict[str, None] = {}
        self.denied: dict[str, None] = {}
        self.missing: dict[str, None] = {}

    async def read(self, chart: Chart) -> None:
        """Try what only reads."""
        if chart.failure is not None:
            self._failed(chart.failure.action, chart.failure)
        if chart.system is None:
            return
        self.allowed[actions.DESCRIBE_FILE_SYSTEMS] = None
        if chart.failure is None and chart.links:
            self.allowed[actions.DESCRIBE_ASSOCIATIONS] = None
        for link in chart.links:
            await self._read_objects(link)
        if chart.system.log_group:
            await self._try(actions.FILTER_EVENTS, self._read_log(chart.system.log_group, chart.system.id))
        await self._try(actions.DESCRIBE_TASKS, self._cloud.task(_NOBODYS_TASK))

    async def simulate(self, chart: Chart, arn: str) -> None:
        """Ask IAM about what would change something."""
        if chart.system is None:
            return
        partition = arn.split(":")[1]
        buckets = {link.association.uri.bucket for link in chart.links}
        await self._simulate(
            arn, actions.RESTORE_OBJECT, [f"arn:{partition}:s3:::{name}/*" for name in sorted(buckets)]
        )
        system = chart.system.arn
        if system:
            await self._simulate(arn, actions.CREATE_TASK, [system, f"{system.rpartition(':')[0]}:task/*"])

    async def _simulate(self, arn: str, action: str, resources: Sequence[str]) -> None:
        denied = await self._cloud.denied(arn, action, resources) if resources else None
        if denied is not None:
            (self.denied if denied else self.allowed)[action] = None

    async def _read_objects(self, link: Link) -> None:
        """List one page, and look at one object of it."""
        bucket, prefix = link.association.uri
        try:
            listed = await self._cloud.list_objects(bucket, prefix, "")
        except CloudError as error:
            if error.fault is Fault.NOT_FOUND:
                self.missing[bucket] = None
                return
            self._failed(actions.LIST_BUCKET, error)
            return
        self.allowed[actions.LIST_BUCKET] = None
        if listed.objects:
            await self._try(actions.GET_OBJECT, self._cloud.head(bucket, next(iter(listed.objects))))

    async def _read_log(self, group: str, system: str) -> None:
        async for _ in self._log.events(group, system, start=self._now - 1, end=self._now):
            return

    async def _try(self, action: str, call: Awaitable[object]) -> None:
        """Note what comes of a call."""
        try:
            await call
        except CloudError as error:
            self._failed(action, error)
        else:
            self.allowed[action] = None

    def _failed(self, action: str, error: CloudError) -> None:
        """A call that failed for another reason than permission says nothing about that."""
        if error.fault is Fault.DENIED:
            self.denied[action] = None
        elif error.fault is Fault.NOT_FOUND:
            self.allowed[action] = None
