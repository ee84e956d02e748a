"""The adapter's calls, one by one, against the fake endpoint and moto."""

from __future__ import annotations

from typing import Any

import pytest

from aws.fake_endpoint import Account, Trouble, file_system
from fsxwarm.aws.calls import Calls
from fsxwarm.aws.cloud import AwsCloud
from fsxwarm.model.s3 import ThawTier
from fsxwarm.ports.cloud import CloudError, Fault, TaskState


@pytest.fixture
def cloud(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> AwsCloud:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return AwsCloud(Calls(pytest.fail, region="us-east-1"))


async def test_a_task_is_begun_once_and_one_at_a_time(account: Account, cloud: AwsCloud) -> None:
    account.task_looks = 2
    first = await cloud.release_task("fs-00000000000000001", ["train"], 7, "token-1", "s3://data/reports")
    again = await cloud.release_task("fs-00000000000000001", ["train"], 7, "token-1", "s3://data/reports")
    assert first.id == again.id
    assert len(account.tasks) == 1
    with pytest.raises(CloudError) as caught:
        await cloud.release_task("fs-00000000000000001", ["val"], 7, "token-2", "")
    assert caught.value.fault is Fault.BUSY
    seen = [(await cloud.task(first.id)).state for _ in range(2)]
    assert seen == [TaskState.EXECUTING, TaskState.SUCCEEDED]


async def test_an_archived_object_can_be_thawed(cloud: AwsCloud, s3: Any) -> None:
    s3.create_bucket(Bucket="data")
    s3.put_object(Bucket="data", Key="cold", Body=b"x", StorageClass="GLACIER")
    before = await cloud.head("data", "cold")
    assert before is not None
    assert before.offline
    await cloud.thaw("data", "cold", ThawTier.BULK, 3)
    after = await cloud.head("data", "cold")
    assert after is not None
    assert after.thaw != before.thaw
    assert await cloud.head("data", "none") is None


async def test_expired_credentials_are_waited_for(
    account: Account, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    account.file_systems = [file_system()]
    said: list[str] = []
    cloud = AwsCloud(Calls(said.append, region="us-east-1", renew_every=0.0))
    await cloud.file_systems()
    account.trouble = [Trouble("DescribeFileSystems", code="ExpiredTokenException", times=2)]
    assert len(await cloud.file_systems()) == 1
    assert ["expired" in said[0], "valid again" in said[1], len(said)] == [True, True, 2]
