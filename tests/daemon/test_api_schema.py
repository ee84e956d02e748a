"""Whatever the OpenAPI document allows, and much that it does not, gets an answer that the document describes."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from requests.adapters import HTTPAdapter
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from daemon.conftest import serving
from daemon.talk import ask
from fsxwarm.client import wire
from fsxwarm.daemon.openapi import document
from fsxwarm.daemon.routes import ROUTES
from fsxwarm.model.lease import LeaseRequest

TOO_LARGE = 413

schema = schemathesis.openapi.from_dict(json.loads(json.dumps(document()))).exclude(path="/v1/events")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[requests.Session]:
    """A session of the requests library with a face that runs in a thread, over its unix socket."""
    folder = tmp_path_factory.mktemp("face")
    with running(folder) as path, requests.Session() as made:
        made.trust_env = False
        made.mount("http://", UnixAdapter(path))
        yield made


class running:  # noqa: N801 - used as a function is
    """A face in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._path = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(self._folder) as face:
            taken = await face.core.submit(await _wish())
            assert taken.id == "j1"
            lease = await face.core.lease(LeaseRequest(0, b"/fsx", 60.0, "", ""))
            assert lease.id == "l1"
            self._path = face.path
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> str:
        self._thread.start()
        assert self._ready.wait(20)
        return self._path

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)


async def _wish() -> Any:
    from fsxwarm.model.job import Identity, JobRequest, Kind  # noqa: PLC0415 - names that requests has too

    return JobRequest(Kind.PRELOAD, Identity(0, (0,)), (b"/fsx",))


class UnixAdapter(HTTPAdapter):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._pool = UnixPool("localhost")
        self._pool.path = path

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool


class UnixConnection(HTTPConnection):
    path = ""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class UnixPool(HTTPConnectionPool):
    path = ""

    def _new_conn(self) -> Any:
        connection = UnixConnection("localhost")
        connection.path = self.path
        return connection


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_answers_are_as_documented(case: Any, session: requests.Session) -> None:
    if "timeout" in (case.query or {}):
        case.query["timeout"] = 0.01
    named = "id" in (case.path_parameters or {}) and len(case.path_parameters["id"]) % 2 == 0
    if named:  # what chance calls a job or lease hardly ever is one: every other time it is one that there is
        case.path_parameters["id"] = "l1" if "leases" in case.path else "j1"
    response = case.call(base_url="http://localhost", session=session)
    excluded = [positive_data_acceptance]  # what no schema can say: that a glob has balanced brackets, say
    if response.status_code == TOO_LARGE or named:
        excluded.append(negative_data_rejection)
    case.validate_response(response, excluded_checks=excluded)


def test_every_route_but_the_endless_one_is_tried() -> None:
    tried = {(one.ok().method.upper(), one.ok().path) for one in schema.get_all_operations()}
    assert tried == {
        *((route.method, route.path) for route in ROUTES if not route.stream), ("GET", "/v1/openapi.json")
    }  # fmt: skip


async def test_events_are_as_documented(tmp_path: Path) -> None:
    described = document()
    operation = described["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]["application/x-ndjson"]
    one = jsonschema.Draft202012Validator({**operation["schema"], "components": described["components"]})
    async with serving(tmp_path) as face:
        reader, writer = await asyncio.open_unix_connection(face.path)
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await face.core.heard_by(1)
        await face.core.submit(await _wish())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert b"application/x-ndjson" in head
        size = int(await asyncio.wait_for(reader.readline(), 20), 16)
        one.validate(json.loads(await asyncio.wait_for(reader.readexactly(size), 20)))
        writer.close()


async def test_the_document_is_served_and_has_every_route(tmp_path: Path) -> None:
    async with serving(tmp_path) as face:
        served = (await ask(face.path, "GET", "/v1/openapi.json")).json
    assert {(method.upper(), path) for path, methods in served["paths"].items() for method in methods} == {
        *((route.method, route.path) for route in ROUTES),
        ("GET", "/v1/openapi.json"),
    }


def test_the_clients_types_are_the_servers_models() -> None:
    schemas = document()["components"]["schemas"]
    assert set(schemas["JobWish"]["properties"]) == set(wire.JobWish.__annotations__)
    assert set(schemas["LeaseWish"]["properties"]) == set(wire.LeaseWish.__annotations__)
    assert set(schemas["WishOptions"]["properties"]) == set(wire.Options.__annotations__)
