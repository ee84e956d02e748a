"""Attacks by clients that have a socket to talk to, and nothing else: all fail, and the daemon goes on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon.conftest import Face, serving
from daemon.talk import Answer, ask, raw
from fsxwarm.client.client import Client
from fsxwarm.daemon.listening import bind
from fsxwarm.errors import FsxwarmError, Kind

PRELOAD = {"kind": "preload", "paths": ["/fsx/a"]}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a gate tells nobody
            await asyncio.sleep(0.01)


async def alive(path: str) -> None:
    assert (await ask(path, "GET", "/v1/health")).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"preload"',
        b"[" * 100_000,
        b'{"kind":' * 50_000,
        b"\xff\xfe{}",
        b'{"kind": "preload", "paths": ["\\ud800"]}',
        b'{"kind": "preload", "paths": ["/fsx/a\\u0000b"]}',
        b'{"kind": "preload", "paths": [{"path_b64": "!!"}]}',
        b'{"kind": "preload", "paths": [{"path_b64": "ZXRj"}]}',
        b'{"kind": "preload", "paths": ["fsx/a"]}',
        b'{"kind": "preload", "paths": []}',
        b'{"kind": "preload"}',
        b'{"kind": "erase", "paths": ["/fsx"]}',
        b'{"kind": "preload", "paths": ["/fsx"], "priority": 101}',
        b'{"kind": "preload", "paths": ["/fsx"], "priority": -1}',
        b'{"kind": "preload", "paths": ["/fsx"], "priority": 1e3}',
        b'{"kind": "preload", "paths": ["/fsx"], "priority": true}',
        b'{"kind": "preload", "paths": ["/fsx"], "uid": 0}',
        b'{"kind": "preload", "paths": ["/fsx"], "identity": {"uid": 0}}',
        b'{"kind": "preload", "paths": ["/fsx"], "owner": 0}',
        b'{"kind": "preload", "paths": ["/fsx"], "options": {"deadline": NaN}}',
        b'{"kind": "preload", "paths": ["/fsx"], "options": {"deadline": Infinity}}',
        b'{"kind": "preload", "paths": ["/fsx"], "options": {"every": 0}}',
        b'{"kind": "preload", "paths": ["/fsx"], "options": {"used_before": 99999999999999999999}}',
        b'{"kind": "preload", "paths": ["/fsx"], "label": "%s"}' % (b"x" * 201),
        b'{"kind": "preload", "paths": ["/%s"]}' % (b"x" * 140_000),
        b'{"kind": "preload", "paths": ["/fsx"], "include": ["["]}',
    ],
)
async def test_bodies_that_mean_nothing_are_refused(face: Face, body: bytes) -> None:
    answer = await ask(face.path, "POST", "/v1/jobs", body)
    assert (answer.status, answer.kind) == (400, "usage")
    assert not face.core.all
    await alive(face.path)


async def test_a_body_that_says_how_huge_it_is_is_not_read(face: Face) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
    answer = await raw(face.path, head)
    assert (answer.status, answer.kind) == (413, "too_large")
    await alive(face.path)


async def test_a_huge_body_in_chunks_is_cut_off(face: Face) -> None:
    _, writer = await asyncio.open_unix_connection(face.path)
    writer.write(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        async with asyncio.timeout(20):
            while True:
                writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                await writer.drain()
    except ConnectionError:
        pass
    writer.close()
    await alive(face.path)


async def test_who_sends_too_much_gets_to_hear_why(face: Face) -> None:
    answer = await ask(face.path, "POST", "/v1/jobs", b" " * (5 << 20))
    assert (answer.status, answer.kind) == (413, "too_large")


async def test_compressed_bodies_are_refused(face: Face) -> None:
    answer = await ask(face.path, "POST", "/v1/jobs", b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert (answer.status, answer.kind) == (400, "usage")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/health HTTP/1.1\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"",
    ],
    ids=["half a head", "half a body", "half a chunk", "silence"],
)
async def test_the_slow_are_cut_off(tmp_path: Path, head: bytes) -> None:
    async with serving(tmp_path, patience=0.3) as face:
        reader, writer = await asyncio.open_unix_connection(face.path)

        async def drip() -> None:
            writer.write(head)
            while not writer.is_closing():
                await asyncio.sleep(0.05)
                writer.write(b"x")

        dripping = asyncio.create_task(drip() if head else asyncio.sleep(0))
        async with asyncio.timeout(10):
            with_end = await asyncio.gather(reader.read(), return_exceptions=True)
        writer.close()
        await asyncio.gather(dripping, return_exceptions=True)
        assert with_end[0] == b"" or isinstance(with_end[0], ConnectionError)
        await alive(face.path)


async def test_who_does_not_take_an_answer_in_is_cut_off(tmp_path: Path) -> None:
    async with serving(tmp_path, patience=0.3) as face:
        paths = [f"/fsx/{'x' * 200}/{n}" for n in range(2000)]
        for _ in range(20):
            await ask(face.path, "POST", "/v1/jobs", {"kind": "preload", "paths": paths})
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(face.path)
            deaf.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n")
            await alive(face.path)
            await until(lambda: not face.server.gate.count)


async def test_connections_beyond_the_limit_leave_room_for_others(tmp_path: Path) -> None:
    """Beyond the limit each is told so, and root always gets through."""
    async with serving(tmp_path, connections=100, connections_each=60) as face:
        if os.geteuid() == 0:
            face.server.gate.circle = type(face.server.gate.circle)(os.geteuid(), None, None)
        with ExitStack() as held:
            for _ in range(200):
                one = held.enter_context(socket.socket(socket.AF_UNIX))
                one.connect(face.path)
            await until(lambda: face.server.gate.count + face.server.gate.turned_away >= 200)
            if os.geteuid() == 0:
                await alive(face.path)
            else:
                assert face.server.gate.count == 60
                assert (await ask(face.path, "GET", "/v1/health")).kind == "too_many"
        await until(lambda: not face.server.gate.count)
        await alive(face.path)


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Remote-User": "root"},
        {"Authorization": "Basic cm9vdDo="},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Uid": "0"},
        {"X-HTTP-Method-Override": "DELETE"},
        {"Cookie": "uid=0"},
        {"Host": "root@localhost"},
    ],
)
async def test_headers_make_nobody_somebody_else(face: Face, headers: dict[str, str]) -> None:
    answer = await ask(face.path, "POST", "/v1/jobs", PRELOAD, headers)
    owner = face.core.all[answer.json["id"]].owner if answer.status == 202 else os.geteuid()
    assert owner == os.geteuid()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/health HTTP/9.9\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n" + b"A: x\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x00" * 1000,
    ],
)
async def test_what_is_no_http_is_refused(face: Face, data: bytes) -> None:
    answer = await raw(face.path, data)
    assert (answer.status, answer.kind) == (400, "usage")
    assert answer.headers["content-type"].startswith("application/json")
    await alive(face.path)


@pytest.mark.parametrize("chunk", [b"zz\r\n{", b"-5\r\n{", b"2\r\n{}garbage"])
async def test_chunks_that_are_none_are_refused(face: Face, chunk: bytes) -> None:
    answer = await raw(
        face.path, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"\r\n"
    )
    assert (answer.status, answer.kind) == (400, "usage")
    assert not face.core.all
    await alive(face.path)


@pytest.mark.parametrize(
    "target",
    [
        "/v1/jobs/../../etc/passwd",
        "/v1/jobs/%2e%2e%2fhealth",
        "/v1/jobs/j1%00",
        "/v1/jobs/%ff",
        "/v1/jobs/j1'%20OR%201=1--",
        "/v1/jobs/" + "9" * 5000,
        "/v1/jobs/-1",
        "/v2/jobs",
        "/etc/passwd",
        "//v1/health",
    ],
)
async def test_addresses_that_mean_nothing(face: Face, target: str) -> None:
    answer = await ask(face.path, "GET", target)
    assert answer.status in {400, 404}
    assert b"root:" not in answer.body
    await alive(face.path)


@pytest.mark.parametrize(
    "query",
    [
        "timeout=-1",
        "timeout=NaN",
        "timeout=1e9",
        "timeout=inf",
        "timeout=",
        "timeout=1&timeout=2",
        "uid=0",
        "&&&&",
        "%",
    ],
)
async def test_queries_that_mean_nothing(face: Face, query: str) -> None:
    job = (await ask(face.path, "POST", "/v1/jobs", PRELOAD)).json["id"]
    answer = await ask(face.path, "GET", f"/v1/jobs/{job}/wait?{query}")
    assert (answer.status, answer.kind) == (400, "usage")


async def test_a_method_that_a_route_does_not_have(face: Face) -> None:
    for method in ("PUT", "TRACE", "CONNECT", "OPTIONS", "DELETE"):
        answer = await ask(face.path, method, "/v1/health")
        assert answer.status in {400, 404, 405}
    await alive(face.path)


async def test_an_answer_never_says_what_went_wrong_inside(face: Face) -> None:
    face.core.health = None  # type: ignore[assignment,method-assign]  # a bug in the core
    answer: Answer = await ask(face.path, "GET", "/v1/health")
    assert (answer.status, answer.kind) == (500, "unforeseen")
    assert b"NoneType" not in answer.body
    assert (await ask(face.path, "GET", "/v1/jobs")).status == 200


def test_the_socket_is_nobody_elses_from_the_first_moment(tmp_path: Path) -> None:
    bind(str(tmp_path / "s"), None).close()
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    bind(str(tmp_path / "s"), os.getegid()).close()
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("squatter", ["file", "folder", "link"])
def test_what_stands_where_the_socket_belongs_is_not_replaced(tmp_path: Path, squatter: str) -> None:
    place, precious = tmp_path / "s", tmp_path / "precious"
    precious.write_text("kept")
    match squatter:
        case "file":
            place.write_text("mine")
        case "folder":
            place.mkdir()
        case _:
            place.symlink_to(precious)
    with pytest.raises(FsxwarmError) as error:
        bind(str(place), None)
    assert error.value.kind is Kind.NO_PERMISSION
    assert precious.read_text() == "kept"


def test_a_folder_that_others_may_write_is_no_place_for_the_socket(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(FsxwarmError) as error:
        bind(str(tmp_path / "s"), None)
    assert error.value.kind is Kind.NO_PERMISSION


async def test_a_second_daemon_does_not_take_the_first_ones_socket(face: Face) -> None:
    with pytest.raises(FsxwarmError) as error:
        bind(face.path, None)
    assert error.value.kind is Kind.CONFLICT
    await alive(face.path)


def test_a_socket_that_a_dead_daemon_left_is_replaced(tmp_path: Path) -> None:
    bind(str(tmp_path / "s"), None).close()
    with bind(str(tmp_path / "s"), None) as sock:
        sock.listen()


async def test_too_many_jobs_of_nobody_in_particular(face: Face) -> None:
    """The caller here is an administrator: no quota. What is tested is that the daemon stays quick."""
    await asyncio.gather(*(ask(face.path, "POST", "/v1/jobs", PRELOAD) for _ in range(300)))
    listed = await ask(face.path, "GET", "/v1/jobs?limit=200")
    assert len(listed.json["jobs"]) == 200


async def test_a_request_behind_a_refused_one_is_not_smuggled_in(face: Face) -> None:
    inner = b"DELETE /v1/jobs/j1 HTTP/1.1\r\nHost: x\r\n\r\n"
    await ask(face.path, "POST", "/v1/jobs", PRELOAD)
    outer = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (9 << 20)
    await raw(face.path, outer + inner)
    assert face.core.all["j1"].phase == "queued"


def test_the_client_does_not_follow_a_daemon_that_sends_it_elsewhere(tmp_path: Path) -> None:
    """A socket of the caller's own that answers nonsense: an error, no traceback."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        with Client(path, timeout=0.2) as client, pytest.raises(FsxwarmError) as error:
            client.health()
        assert error.value.kind is Kind.NO_DAEMON


async def test_control_bytes_come_back_escaped(face: Face) -> None:
    wish = {"kind": "preload", "paths": ["/fsx/a\n\x1b[31mroot logged in"], "label": "x\r\nSet-Cookie: y"}
    answer = await ask(face.path, "POST", "/v1/jobs", wish)
    assert b"\x1b" not in answer.body
    assert answer.body.count(b"\n") == 1
    assert "set-cookie" not in answer.headers
    assert json.loads(answer.body)["label"] == wish["label"]
