"""Requests from other machines: real munged, a core on paper."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from daemon.core import PaperCore, PaperWorld, resolve_on_paper
from daemon.live import gid, living
from fsxwarm.client import sealed
from fsxwarm.client.remote import RemoteClient
from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.api import Api, Quota
from fsxwarm.daemon.gate import GateLimits
from fsxwarm.daemon.munge import Munge as DaemonsMunge
from fsxwarm.daemon.remote import Remote
from fsxwarm.daemon.slurm import SlurmRules
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.address import Address
from slurm.cluster import USER, free_ports, lacking
from slurm.munge import Munge, munged

STRANGER = "man"
"""Another that every Debian has."""


@pytest.fixture(scope="module")
def key() -> bytes:
    return secrets.token_bytes(128)


@pytest.fixture(scope="module")
def munges(real_slurm: None) -> Iterator[Path]:  # noqa: ARG001 - it skips
    """A folder that munged trusts and every user may reach."""
    folder = Path(tempfile.mkdtemp(prefix="munge-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def munge(munges: Path, key: bytes) -> Iterator[Munge]:
    """The daemon's munged."""
    with munged(munges / "own", key=key) as one:
        yield one


@pytest.fixture(scope="module")
def faketime() -> str:
    """The library that lies about the time."""
    found = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    return str(found or lacking("libfaketime"))


@dataclass
class Listener:
    """A listener, and what is behind it."""

    address: Address
    core: PaperCore
    munge: Munge
    remote: Remote

    def client(self) -> RemoteClient:
        """As root."""
        return RemoteClient(self.address, munge_socket=str(self.munge.socket))

    async def post(self, *credentials: bytes) -> tuple[int, bytes]:
        """Send credentials; the status and the body of the answer, as they are."""
        return await self.raw(b"\n".join(credentials))

    async def raw(self, data: bytes, target: str = sealed.ROUTE) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection(*self.address)
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        try:
            answer = await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()
        first, _, body = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), body

    async def refused(self, *credentials: bytes) -> str:
        """What is said to credentials that are not taken."""
        status, body = await self.post(*credentials)
        assert status in {400, 403, 413, 503}, body
        assert self.core.all == {}
        message: str = json.loads(body)["error"]["message"]
        return message

    async def ask(self, method: str, path: str, body: Any = None, *, user: str | None = None) -> tuple[int, Any]:
        """Make a request as a user."""
        status, answer = await self.post(
            *(self.munge.credential(one, user=user) for one in request(method, path, body))
        )
        assert status == 200, answer
        parts = [sealed.read(self.munge.opened(line, user=user)) for line in answer.split()]
        return parts[0].head["status"], json.loads(sealed.join(parts) or b"null")


def request(method: str, path: str, body: Any = None, nonce: str | None = None) -> list[bytes]:
    head = {"nonce": nonce or secrets.token_hex(16), "method": method, "path": path}
    return list(sealed.cut(head, b"" if body is None else json.dumps(body).encode()))


JOB = {"kind": "preload", "paths": ["/fsx/imagenet"]}


def wish(nonce: str | None = None) -> bytes:
    """A request that would leave a job behind, were it carried out."""
    return request("POST", "/v1/jobs", JOB, nonce)[0]


@asynccontextmanager
async def listening(
    munge: Munge, *networks: str, started: float = 0.0, size: int = 1 << 20, patience: float = 20.0
) -> AsyncIterator[Listener]:
    core = PaperCore()
    circle = Circle(0, gid(USER), None, slurm=frozenset({0}))
    api = Api(core, resolve_on_paper, Quota(9, 100_000, 9), PaperWorld(), SlurmRules(frozenset({0})), core.wall)
    limits = GateLimits(connections=20, connections_each=10, patience=patience)
    allowed = [ip_network(one) for one in networks or ("127.0.0.0/8",)]
    remote = Remote(
        api, lambda: circle, limits, allowed, DaemonsMunge(str(munge.socket), {}), lambda: started or time.time(), size
    )
    remote_address = await remote.start(Address("127.0.0.1", 0))
    try:
        yield Listener(remote_address, core, munge, remote)
    finally:
        await core.drain()
        await remote.close()


@pytest.fixture
async def listener(munge: Munge) -> AsyncIterator[Listener]:
    async with listening(munge, started=time.time() - 3600) as one:
        yield one


async def test_the_user_is_who_munge_says(listener: Listener) -> None:
    status, job = await listener.ask("POST", "/v1/jobs", JOB, user=USER)

    assert (status, job["id"]) == (202, "j1")
    identity = listener.core.all["j1"].request.identity
    assert (identity.uid, identity.gids[0]) == (5, gid(USER))


async def test_a_client_s_calls_work_over_the_network(listener: Listener) -> None:
    client = listener.client()
    job = await asyncio.to_thread(client.submit, {"kind": "preload", "paths": ["/fsx/a"]})
    assert (await asyncio.to_thread(client.wait, job["id"], 0.0))["phase"] == "queued"
    assert (await asyncio.to_thread(client.cancel, job["id"]))["phase"] == "cancelled"
    assert [one["id"] for one in await asyncio.to_thread(client.jobs)] == [job["id"]]
    with pytest.raises(FsxwarmError) as caught:
        await asyncio.to_thread(client.job, "j/9?x")
    assert caught.value.kind is Kind.NO_SUCH_JOB


async def test_long_lists_go_in_parts_and_come_back_whole(listener: Listener, munge: Munge) -> None:
    files = [f"/fsx/imagenet/train/{number:012d}.tar" for number in range(30_000)]
    async with listening(munge, started=time.time() - 9, size=4 << 20) as large:
        job = await asyncio.to_thread(large.client().submit, {"kind": "preload", "files": list(files)})
        assert job["listed"] == len(files)
    with pytest.raises(FsxwarmError) as caught:
        await asyncio.to_thread(listener.client().submit, {"kind": "preload", "files": list(files)})
    assert caught.value.kind is Kind.TOO_LARGE


async def test_nobody_is_an_administrator_from_afar_and_others_jobs_are_none(listener: Listener) -> None:
    await listener.ask("POST", "/v1/jobs", JOB, user=USER)

    assert await listener.ask("GET", "/v1/jobs") == (200, {"jobs": []})
    assert (await listener.ask("DELETE", "/v1/jobs/j1"))[0] == 404
    assert (await listener.ask("POST", "/v1/jobs", {**JOB, "priority": 60}))[0] == 403


async def test_who_is_not_served_is_refused(listener: Listener) -> None:
    assert "not for this user" in await listener.refused(listener.munge.credential(wish(), user=STRANGER))


async def test_slurm_acts_for_others_and_nobody_else_does(listener: Listener) -> None:
    body = {"slurm_job_id": "7", "uid": 1001, "text_b64": "ZnN4d2FybTpwcmVsb2FkPS9mc3gvYQ=="}

    assert (await listener.ask("POST", "/v1/slurm/begin", body, user=USER))[0] == 403
    status, answer = await listener.ask("POST", "/v1/slurm/begin", body)
    assert (status, answer["state"], listener.core.all["j1"].owner) == (200, "warming", 1001)


async def test_a_credential_is_good_once(listener: Listener) -> None:
    credential = listener.munge.credential(request("GET", "/v1/health")[0], user=USER)

    assert (await listener.post(credential))[0] == 200
    assert "used before" in await listener.refused(credential)


async def test_a_request_is_good_once_even_if_munged_forgets(listener: Listener) -> None:
    one, other = (listener.munge.credential(request("GET", "/v1/health", nonce="n" * 32)[0], user=USER) for _ in "12")

    assert (await listener.post(one))[0] == 200
    assert "made before" in await listener.refused(other)


async def test_what_was_made_before_the_start_is_refused(munge: Munge) -> None:
    async with listening(munge, started=time.time() + 60) as late:
        assert "before the daemon started" in await late.refused(munge.credential(wish(), user=USER))


async def test_altered_credentials_are_refused(listener: Listener) -> None:
    whole = listener.munge.credential(wish(), user=USER)
    for place in (20, len(whole) // 2, len(whole) - 8):
        altered = bytearray(whole)
        altered[place] = ord("A") if altered[place] != ord("A") else ord("B")
        assert "refused" in await listener.refused(bytes(altered))


async def test_another_key_s_credentials_are_refused(listener: Listener, munges: Path) -> None:
    with munged(munges / "foreign") as foreign:
        assert "another key" in await listener.refused(foreign.credential(wish(), user=USER))


@pytest.mark.parametrize(
    ("shift", "said"), [("-10m", "stale"), ("+10m", "comes from the future"), ("-200s", "200 s old")]
)
async def test_clocks_that_are_wrong_are_named(
    listener: Listener, faketime: str, munges: Path, key: bytes, shift: str, said: str
) -> None:
    with munged(munges / f"at{shift}", key=key, environ={"LD_PRELOAD": faketime, "FAKETIME": shift}) as skewed:
        message = await listener.refused(skewed.credential(wish(), user=USER))
    assert said in message.replace("201 s old", "200 s old")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"hello",
        b'{"nonce": "nnnnnnnnnnnnnnnn", "method": "POST", "path": "/v1/jobs"}\n{}',
        b'{"to": "fsxwarm", "method": "POST", "path": "/v1/jobs"}\n{}',
        b'{"to": "fsxwarm", "nonce": "short", "method": "POST", "path": "/v1/jobs"}\n{}',
        b'{"to": "fsxwarm", "nonce": "nnnnnnnnnnnnnnnn", "part": 2, "parts": 1}\n{}',
        b'{"to": "fsxwarm", "nonce": "nnnnnnnnnnnnnnnn", "part": "1"}\n{}',
        b"[]\n",
    ],
)
async def test_credentials_made_for_others_are_refused(listener: Listener, payload: bytes) -> None:
    assert "refused" in await listener.refused(listener.munge.credential(payload, user=USER))


async def test_parts_of_different_users_or_requests_do_not_make_one(listener: Listener) -> None:
    first, second = request("POST", "/v1/jobs", {**JOB, "label": "x" * 100, "files": ["/fsx/" + "y" * 600_000]})
    made = listener.munge.credential
    assert "different users" in await listener.refused(made(first, user=USER), made(second))
    status, answer = await listener.post(made(wish(), user=USER), made(wish(), user=USER))
    part = sealed.read(listener.munge.opened(answer.strip(), user=USER))
    assert (status, part.head["status"], listener.core.all) == (200, 400, {})
    assert b"do not belong together" in part.body


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/events"), ("POST", "/v1/munge"), ("GET", "/metrics"), ("TRACE", "/v1/jobs"), ("GET", "v1/jobs")],
)
async def test_only_routes_with_one_answer_are_there(listener: Listener, method: str, path: str) -> None:
    status, answer = await listener.ask(method, path, user=USER)

    assert (status, answer["error"]["kind"]) == (400, "usage")


async def test_other_networks_are_not_let_in(munge: Munge) -> None:
    async with listening(munge, "10.0.0.0/8", "::1/128") as closed:
        assert "no allowed network" in await closed.refused(munge.credential(wish(), user=USER))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"MUNGE:", b"\0" * 100, b"x" * 3_000_000])
async def test_rubbish_is_refused(listener: Listener, data: bytes) -> None:
    status, body = await listener.raw(data)
    assert status in {403, 413}
    assert json.loads(body)["error"]["kind"] in {"no_permission", "too_large"}


async def gone(writer: asyncio.StreamWriter) -> None:
    """Hang up, and see it through."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_who_says_nothing_is_hung_up_on(munge: Munge) -> None:
    async with listening(munge, patience=0.2) as hasty:
        reader, writer = await asyncio.open_connection(*hasty.address)
        writer.write(b"POST /v1/munge HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nMUNGE:")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        await gone(writer)


async def test_one_machine_has_only_so_many_connections(listener: Listener) -> None:
    open_ones = [await asyncio.open_connection(*listener.address) for _ in range(10)]
    assert "too many connections" in (await listener.raw(b""))[1].decode()
    for _, writer in open_ones:
        await gone(writer)


def test_new_limits_hold_for_other_machines_from_the_reload_on(munge: Munge) -> None:
    address = Address("127.0.0.1", free_ports(1)[0])
    settings = f'[remote]\nlisten = "{address}"\nnetworks = ["127.0.0.0/8"]\nmunge_socket = "{munge.socket}"\n'
    with living(settings=settings + '[slurm]\nact_for_others = ["root"]\n') as live:
        client = RemoteClient(address, munge_socket=str(munge.socket))
        assert list(client.jobs()) == []
        live.config.write_text(live.config.read_text() + "[limits]\nrequest_size = 100\n")
        live.reload()
        with pytest.raises(FsxwarmError) as caught:
            client.jobs()
    assert caught.value.kind is Kind.TOO_LARGE


async def test_who_waits_is_told_of_a_restart(listener: Listener) -> None:
    client = listener.client()
    job = await asyncio.to_thread(client.submit, {"kind": "preload", "paths": ["/fsx/a"]})
    waiting = asyncio.ensure_future(asyncio.to_thread(client.wait, job["id"], 50.0))
    await asyncio.sleep(0.3)
    await listener.core.drain()
    with pytest.raises(FsxwarmError) as caught:
        await waiting
    assert caught.value.kind is Kind.RESTARTING


async def test_nothing_is_there_unsealed(listener: Listener) -> None:
    assert (await listener.raw(json.dumps(JOB).encode(), "/v1/jobs"))[0] == 404
    assert listener.core.all == {}


async def test_nothing_sensitive_is_in_clear(listener: Listener) -> None:
    await listener.ask("POST", "/v1/jobs", JOB, user=USER)
    sent = listener.munge.credential(request("GET", "/v1/jobs")[0], "--restrict-uid=0", user=USER)
    _, received = await listener.post(sent)

    assert b"imagenet" not in sent + received
    with pytest.raises(PermissionError, match="Unauthorized"):
        listener.munge.opened(received.strip(), user=STRANGER)
    with pytest.raises(PermissionError, match="Unauthorized"):
        listener.munge.opened(listener.munge.credential("x", "--restrict-uid=0"), user=USER)


@asynccontextmanager
async def impostor(answer: bytes) -> AsyncIterator[Address]:
    """Something that answers every request with the same credential."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield Address(*server.sockets[0].getsockname())


@pytest.mark.parametrize(
    ("maker", "payload", "said"),
    [
        (USER, b'{"to": "fsxwarm", "nonce": "nnnnnnnnnnnnnnnn", "status": 200}\n{}', "not root"),
        (None, b'{"to": "fsxwarm", "nonce": "nnnnnnnnnnnnnnnn", "status": 200}\n{}', "answers another request"),
        (None, b"hello", "not made for fsxwarm"),
    ],
)
async def test_an_impostor_s_answer_is_not_believed(munge: Munge, maker: str | None, payload: bytes, said: str) -> None:
    async with impostor(munge.credential(payload, user=maker)) as address:
        client = RemoteClient(address, munge_socket=str(munge.socket))
        with pytest.raises(FsxwarmError, match=said) as caught:
            await asyncio.to_thread(client.health)
    assert caught.value.kind is Kind.NO_DAEMON


async def test_a_plain_answer_is_no_daemon_s(munge: Munge) -> None:
    async with impostor(b'{"jobs": []}') as address:
        client = RemoteClient(address, munge_socket=str(munge.socket))
        with pytest.raises(FsxwarmError, match="no daemon of fsxwarm"):
            await asyncio.to_thread(client.jobs)


async def test_without_munged_a_client_says_so(listener: Listener) -> None:
    client = RemoteClient(listener.address, munge_socket="/nonexistent")
    with pytest.raises(FsxwarmError, match="munge") as caught:
        await asyncio.to_thread(client.jobs)
    assert "systemctl status munge" in caught.value.hint
