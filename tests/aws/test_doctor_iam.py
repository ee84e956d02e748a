"""What the doctor finds out about AWS: versions, region, and which actions are missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from aws.paper_cloud import SYSTEM, PaperCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.doctor import Finding, Level
from fsxwarm.engine.doctor_aws import examine_aws
from fsxwarm.model import actions
from fsxwarm.model.s3 import Stored
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.restore_log import LogEvent

ARN = "arn:aws-cn:fsx:cn-north-1:123456789012:file-system/fs-1"


class PaperLog:
    """A log that holds nothing, or may not be read."""

    def __init__(self, *, denied: bool = False) -> None:
        self.denied = denied

    async def events(self, group: str, system: str, *, start: float, end: float) -> AsyncIterator[LogEvent]:
        if self.denied:
            raise CloudError(Fault.DENIED, actions.FILTER_EVENTS, "AccessDeniedException", "no")
        for event in ():
            yield event


async def _examined(cloud: PaperCloud, log: PaperLog, client: tuple[int, ...] = (2, 15, 8)) -> list[Finding]:
    atlas = Atlas(cloud, [Mounted(b"/fsx", "10.0.0.5@tcp:/abc")])
    return [finding async for finding in examine_aws(atlas, log, [b"/fsx/a", b"/fsx/b"], client=client, now=1e9)]


def _texts(findings: list[Finding], check: str) -> list[str]:
    return [finding.text for finding in findings if finding.check == check]


async def test_what_may_be_read_is_tried_and_the_rest_is_not_checked() -> None:
    cloud = PaperCloud(system=replace(SYSTEM, log_group="/aws/fsx/lustre", arn=ARN), objects={"p/a": Stored(1, 1)})
    you, allowed, unknown = _texts(await _examined(cloud, PaperLog()), "iam")
    assert "assumed-role/fsx/i-1" in you
    assert allowed == (
        "allowed: fsx:DescribeFileSystems, fsx:DescribeDataRepositoryAssociations, s3:ListBucket, s3:GetObject,"
        " logs:FilterLogEvents, fsx:DescribeDataRepositoryTasks"
    )
    assert unknown == "not checked: s3:RestoreObject, fsx:CreateDataRepositoryTask"


async def test_iam_is_asked_about_the_very_resources_and_denied_actions_name_their_feature() -> None:
    simulation = {actions.RESTORE_OBJECT: True, actions.CREATE_TASK: False}
    cloud = PaperCloud(system=replace(SYSTEM, log_group="g", arn=ARN), simulation=simulation)
    findings = await _examined(cloud, PaperLog(denied=True))
    denied = [one for one in findings if one.check == "iam" and one.level is Level.WARN]
    assert [one.text.split()[0] for one in denied] == ["logs:FilterLogEvents", "s3:RestoreObject"]
    assert "--thaw" in denied[1].text
    assert all("deploy/iam" in one.advice for one in denied)
    assert cloud.simulated == [
        ("s3:RestoreObject", ["arn:aws:s3:::data/*"]),
        ("fsx:CreateDataRepositoryTask", [ARN, "arn:aws-cn:fsx:cn-north-1:123456789012:task/*"]),
    ]


async def test_the_region_is_told() -> None:
    (text,) = _texts(await _examined(PaperCloud(system=replace(SYSTEM, arn=ARN)), PaperLog()), "aws")
    assert text.endswith("in cn-north-1")


@pytest.mark.parametrize(
    ("client", "server", "together"),
    [
        ((2, 10, 8), "2.10", True),
        ((2, 10, 8), "2.12", True),
        ((2, 10, 8), "2.15", False),
        ((2, 12, 9), "2.15", True),
        ((2, 15, 6), "2.12", True),
        ((2, 15, 6), "2.10", False),
        ((2, 16, 1), "2.15", True),
        ((2, 16, 1), "2.12", False),
    ],
)
async def test_clients_and_servers_two_lines_apart_are_warned_of(
    client: tuple[int, ...], server: str, *, together: bool
) -> None:
    findings = await _examined(PaperCloud(system=replace(SYSTEM, version=server)), PaperLog(), client)
    (level,) = [one.level for one in findings if one.check == "versions"]
    assert (level is Level.OK) is together


async def test_unknown_versions_are_no_warning() -> None:
    findings = await _examined(PaperCloud(system=replace(SYSTEM, version="next")), PaperLog())
    assert [one.level for one in findings if one.check == "versions"] == [Level.OK]


@pytest.mark.parametrize(
    ("level", "finding", "untold"),
    [
        ("WARN_ERROR", Level.OK, ""),
        ("ERROR_ONLY", Level.WARN, "in classes that FSx cannot read"),
        ("WARN_ONLY", Level.WARN, "denied"),
    ],
)
async def test_half_a_log_is_warned_of(level: str, finding: Level, untold: str) -> None:
    system = replace(SYSTEM, log_group="/aws/fsx/lustre", log_level=level)
    (found,) = [one for one in await _examined(PaperCloud(system=system), PaperLog()) if one.check == "log"]
    assert found.level is finding
    assert untold in found.text
