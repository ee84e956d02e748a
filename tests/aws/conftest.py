"""AWS for the tests: an account behind a fake endpoint, S3 by moto, and a machine that uses both."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from aws.fake_endpoint import Account, file_system, serve
from aws.in_process import run_in_process
from aws.machine import Machine
from aws.world import FILES, World
from fsxwarm.sim.launch import SimulatedFsx

REGION = "us-east-1"


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.fixture
def endpoint(account: Account) -> Iterator[str]:
    with serve(account) as address:
        yield address


@pytest.fixture(scope="session")
def moto_address() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def variables(endpoint: str, moto_address: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a command that uses them, and nothing of this machine's own AWS."""
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "no-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "no-credentials"),
        "AWS_ENDPOINT_URL": moto_address,
        "AWS_ENDPOINT_URL_FSX": endpoint,
        "AWS_ENDPOINT_URL_IAM": endpoint,
        "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": endpoint,
    }


@pytest.fixture
def s3(moto_address: str) -> Iterator[Any]:
    """A client of an empty S3."""
    client = boto3.client(
        "s3",
        endpoint_url=moto_address,
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - moto takes anything
    )
    yield client
    for bucket in client.list_buckets()["Buckets"]:
        name = bucket["Name"]
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
            if some := [{"Key": one["Key"]} for one in page.get("Contents", [])]:
                client.delete_objects(Bucket=name, Delete={"Objects": some})
        client.delete_bucket(Bucket=name)
    client.close()


MakeMachine = Callable[..., Machine]


@pytest.fixture
def machine(sim_fsx: Callable[..., SimulatedFsx], variables: dict[str, str], tmp_path: Path) -> MakeMachine:
    """Make a machine: `machine(file_system, "--files", "20", …)`."""

    def make(system: dict[str, Any], *options: str) -> Machine:
        return _mounted(system, sim_fsx(*options), variables, tmp_path)

    return make


def _mounted(system: dict[str, Any], fsx: SimulatedFsx, variables: dict[str, str], folder: Path) -> Machine:
    mounts = folder / "mounts"
    source = f"{system['DNSName']}@tcp:/{system['LustreConfiguration']['MountName']}"
    table = (fsx.folder / "mounts").read_text()
    mounts.write_text(table.replace(table.split(" ", 1)[0], source, 1))
    return Machine(fsx, variables | {"FSXWARM_MOUNTS": str(mounts)})


MakeWorld = Callable[[int], World]


@pytest.fixture
def make_world(account: Account, s3: Any, variables: dict[str, str], tmp_path: Path) -> Iterator[MakeWorld]:
    """Make the world with so many files of 1 KB, all released."""
    with ExitStack() as running:

        def make(files: int) -> World:
            system = file_system()
            fsx = running.enter_context(run_in_process(tmp_path / "fsx", files=files, size=1000))
            return World(account, s3, fsx, _mounted(system, fsx.launched, variables, tmp_path), system)

        yield make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world(FILES)
