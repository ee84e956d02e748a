"""The plain TCP listener: what it answers, what it does not, and how many it bears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from daemon.talk import Answer, parse
from fsxwarm.daemon.public import Public, metrics_answer
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.address import Address, parse_address
from metrics.tools import everything, promtool


@asynccontextmanager
async def listening(address: Address = Address("127.0.0.1", 0)) -> AsyncIterator[Address]:  # noqa: B008 - immutable
    public = Public(address, [("/metrics", metrics_answer(everything))])
    where = await public.start()
    try:
        yield where
    finally:
        await public.close()


async def ask(where: Address, line: str = "GET /metrics HTTP/1.1", *headers: str) -> Answer:
    reader, writer = await asyncio.open_connection(*where)
    writer.write("\r\n".join([line, "Host: x", "Connection: close", *headers, "", ""]).encode())
    received = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return parse(received)


async def test_it_tells_metrics_to_whoever_asks() -> None:
    async with listening() as where:
        plain = await ask(where)
        opened = await ask(where, "GET /metrics HTTP/1.1", "Accept: application/openmetrics-text; version=1.0.0")
    assert plain.status == opened.status == 200
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert plain.headers["cache-control"] == "no-store"
    assert promtool("check", "metrics", text=plain.body) == ""
    assert opened.headers["content-type"].startswith("application/openmetrics-text")
    assert opened.body.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET / HTTP/1.1", 404),
        ("GET /v1/jobs HTTP/1.1", 404),
        ("GET /v1/health HTTP/1.1", 404),
        ("GET /metrics/../v1/health HTTP/1.1", 404),
        ("POST /metrics HTTP/1.1", 405),
        ("DELETE /metrics HTTP/1.1", 405),
        ("nonsense", 400),
        (f"GET /{'x' * 9000} HTTP/1.1", 400),
    ],
)
async def test_it_tells_nothing_else(line: str, status: int) -> None:
    async with listening() as where:
        answer = await ask(where, line)
        assert answer.status == status
        assert (await ask(where)).status == 200


async def test_more_connections_than_it_bears_are_turned_away_with_a_reason() -> None:
    async with listening() as where:
        held = [await asyncio.open_connection(*where) for _ in range(256)]
        refused = await ask(where)
        assert refused.status == 429
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(20):
            while (await ask(where)).status != 200:
                pass


async def test_an_address_that_is_taken_is_told() -> None:
    async with listening() as where:
        with pytest.raises(FsxwarmError, match=r"cannot listen at 127\.0\.0\.1:\d+: Address already in use") as caught:
            async with listening(where):
                pass
    assert caught.value.kind is Kind.CONFLICT


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9955", ("127.0.0.1", 9955)), ("[::1]:0", ("::1", 0)), ("login1:65535", ("login1", 65535))],
)
def test_addresses_are_read_and_written_alike(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text", ["", ":", "9955", ":9955", "host:", "host:x", "host:-1", "host:65536", "::1:80", "[a]:1", "h:٣"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (address|port)"):
        parse_address(text)
