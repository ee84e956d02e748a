"""Addresses to listen at."""

from __future__ import annotations

from typing import Final, NamedTuple

_HIGHEST: Final = 65535


class Address(NamedTuple):
    """A host name or number, and a TCP port (0: a free one)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read `host:port` or `[v6]:port`; ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host) is not bracketed:
        raise ValueError(f"{text!r} is no address: write 127.0.0.1:9955 or [::1]:9955")
    if not port.isascii() or not port.isdigit() or int(port) > _HIGHEST:
        raise ValueError(f"{port!r} is no port: from 0 to {_HIGHEST}")
    return Address(host, int(port))
