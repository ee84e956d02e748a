"""Talking to a unix socket as curl does: a connection a request, any bytes at all."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        kind: str = self.json["error"]["kind"]
        return kind


async def ask(path: str, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """Make one request."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close"]
    if body is not None:
        lines.append(f"Content-Length: {len(data)}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return await raw(path, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data)


async def raw(path: str, data: bytes) -> Answer:
    """Send bytes, and read the answer to its end."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(data)
        received = await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
    return parse(received)


def parse(received: bytes) -> Answer:
    """Read an answer."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return Answer(int(first.split()[1]), headers, body)


def _joined(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        parts.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return b"".join(parts)
