"""What can go wrong with a call to AWS, and that the endpoint which the tests talk to makes nothing up."""

from __future__ import annotations

import pytest

from aws.conftest import MakeMachine
from aws.fake_endpoint import Account, Trouble, association, file_system
from fsxwarm.aws.calls import Calls
from fsxwarm.aws.cloud import AwsCloud
from fsxwarm.aws.logs import CloudWatchLog
from fsxwarm.ports.cloud import CloudError, Fault


@pytest.fixture
def calls(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Calls:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Calls(pytest.fail, region="us-east-1", timeout=0.5)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("AccessDeniedException", Fault.DENIED),
        ("UnrecognizedClientException", Fault.NO_CREDENTIALS),
        ("FileSystemNotFound", Fault.NOT_FOUND),
        ("BadRequest", Fault.INVALID),
        ("DataRepositoryTaskExecuting", Fault.BUSY),
        ("ServiceLimitExceeded", Fault.OTHER),
    ],
)
async def test_errors_of_the_service_become_a_few_kinds(
    code: str, fault: Fault, account: Account, calls: Calls
) -> None:
    account.trouble = [Trouble("DescribeFileSystems", code=code)]
    with pytest.raises(CloudError) as caught:
        await AwsCloud(calls).file_systems()
    assert (caught.value.fault, caught.value.code) == (fault, code)
    assert account.calls["DescribeFileSystems refused"] == 1


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("DescribeFileSystems", code="ThrottlingException", times=2),
        Trouble("DescribeFileSystems", code="InternalServerError", status=500),
        Trouble("DescribeFileSystems", cut=True),
        Trouble("DescribeFileSystems", seconds=1.0),
    ],
    ids=["throttled", "broken", "cut", "slow"],
)
async def test_what_passes_is_waited_out(trouble: Trouble, account: Account, calls: Calls) -> None:
    account.file_systems = [file_system()]
    account.trouble = [trouble]
    assert len(await AwsCloud(calls).file_systems()) == 1
    assert trouble.times == 0


def test_a_slow_service_only_takes_longer(account: Account, machine: MakeMachine) -> None:
    system = file_system()
    account.file_systems = [system]
    account.associations = [association(system["FileSystemId"], "/", "s3://data")]
    account.trouble = [Trouble("*", seconds=1.0, times=2)]
    done = machine(system, "--files", "3").fsxwarm("associations")
    assert done.status == 0, done


async def test_requests_are_checked_against_the_service_model(calls: Calls) -> None:
    with pytest.raises(CloudError) as caught:
        await AwsCloud(calls).release_task("no-id", ["a"], 1, "x" * 64, "")
    assert caught.value.fault is Fault.INVALID


async def test_answers_are_checked_against_the_service_model(account: Account, calls: Calls) -> None:
    account.file_systems = [{**file_system(), "Colour": "blue", "StorageCapacity": "much"}]
    with pytest.raises(CloudError, match="answer of DescribeFileSystems") as caught:
        await AwsCloud(calls).file_systems()
    assert "StorageCapacity" in caught.value.message


async def test_events_of_a_log_come_page_by_page(account: Account, calls: Calls) -> None:
    for number in range(250):
        account.log("fs-1", f"Failed to restore file because {number}", at=1000 + number)
    account.log("fs-1", "something else", at=1000)
    account.log("fs-2", "Failed to restore file because of another", at=1000)
    events = CloudWatchLog(calls).events("/aws/fsx/lustre", "fs-1", start=1000, end=1200)
    assert [event.at async for event in events] == [1000 + number for number in range(200)]
    assert account.calls["FilterLogEvents"] == 2
