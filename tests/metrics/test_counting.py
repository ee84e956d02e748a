"""What is counted on the way: calls of the ports by how long they took and what failed, calls to AWS, histograms."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aws.fake_endpoint import Account, Trouble, file_system, serve
from fsxwarm.aws.calls import Calls
from fsxwarm.aws.cloud import AwsCloud
from fsxwarm.engine.metered import MeteredHsm, MeteredTree
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Key
from fsxwarm.model.meter import Histogram, Meter
from fsxwarm.ports.cloud import CloudError
from fsxwarm.ports.hsm import CallHungError, Reply
from fsxwarm.ports.tree import Filters, Place
from fsxwarm.sim.vloop import run
from paper import GONE, File, Paper

FSX = Place(b"/fsx", True, False, 7, "lustre", b"/fsx", "fs-1@tcp:/abc")


def paper(count: int = 3) -> Paper:
    return Paper({b"/fsx/%d" % number: File(GONE) for number in range(count)})


async def test_each_file_that_a_look_could_not_do_is_counted_by_its_errno() -> None:
    world, meter = paper(), Meter()
    world.files[b"/fsx/1"].errno = 13
    answers = await MeteredHsm(world, meter).states([b"/fsx/0", b"/fsx/1", b"/fsx/none"])
    assert len(answers) == 3
    assert meter.calls["states"].count == 1
    assert meter.call_errors == {("states", "EACCES"): 1, ("states", "ENOENT"): 1}


async def test_a_walk_counts_its_files() -> None:
    world, meter = paper(5), Meter()
    tree = MeteredTree(world, meter)
    async for _ in tree.walk(FSX, Filters()):
        pass
    assert meter.scanned_files == 5
    assert await tree.stat([b"/fsx/0", b"/fsx/none"])
    assert meter.call_errors == {("stat", "ENOENT"): 1}


class Slow(Paper):
    """Takes three seconds to restore, and hangs, fails or refuses on demand."""

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        await asyncio.sleep(3.0)
        match paths[0]:
            case b"hangs":
                raise CallHungError("hsm_restore", 3.0)
            case b"fails":
                raise FsxwarmError(Kind.HUNG, "too many")
            case b"refused":
                return Reply(1, "no")
        return Reply(0)


def test_requests_are_counted_and_timed_also_those_that_fail() -> None:
    meter = Meter()

    async def act() -> None:
        hsm = MeteredHsm(Slow({}), meter)
        assert (await hsm.restore([b"a", b"b"])).errno == 0
        assert (await hsm.restore([b"refused"])).errno == 1
        with pytest.raises(CallHungError):
            await hsm.restore([b"hangs"])
        with pytest.raises(FsxwarmError):
            await hsm.restore([b"fails"])

    run(act())
    assert (meter.requests, meter.requested_files) == (4, 5)
    assert meter.calls["restore"].count == 4
    assert meter.calls["restore"].sum == pytest.approx(12.0)
    assert meter.call_errors == {("restore", "EPERM"): 1, ("restore", "hung"): 2}


@given(
    st.lists(st.floats(min_value=0, max_value=1e6)), st.lists(st.floats(min_value=0.001, max_value=1e5), unique=True)
)
def test_a_histogram_loses_no_value(values: list[float], bounds: list[float]) -> None:
    bounds.sort()
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    assert histogram.sum == pytest.approx(sum(values))
    for at, bound in enumerate(bounds):
        assert sum(histogram.counts[: at + 1]) == sum(value <= bound for value in values)


async def test_calls_to_aws_are_counted_by_what_came_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account([file_system()])
    account.trouble.append(Trouble("DescribeFileSystems", "ThrottlingException", times=2))
    with serve(account) as endpoint:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_ENDPOINT_URL_FSX": endpoint,
        }.items():
            monkeypatch.setenv(name, value)
        calls = Calls(pytest.fail, region="us-east-1")
        cloud = AwsCloud(calls)
        assert len(await cloud.file_systems()) == 1
        account.trouble.append(Trouble("DescribeFileSystems", "AccessDeniedException"))
        with pytest.raises(CloudError):
            await cloud.file_systems()
    tally = calls.counter.tally()
    assert tally.calls == {("fsx:DescribeFileSystems", "ok"): 1, ("fsx:DescribeFileSystems", "denied"): 1}
    assert tally.throttled == {"fsx:DescribeFileSystems": 2}
