"""How files are named over the daemon's socket.

In answers a name is an object with `path`, and `path_b64` (base64 of the exact bytes) when it is not UTF-8; in requests
it may be the bare text, or `path_b64` alone.
"""

from __future__ import annotations

import base64
import binascii
from typing import NotRequired

from typing_extensions import TypedDict  # typing's own tells too little of itself before Python 3.12


class Name(TypedDict):
    """A file's name in an answer."""

    path: str
    path_b64: NotRequired[str]


class Exact(TypedDict):
    """A file's name in a request, byte by byte."""

    path_b64: str


def name(path: bytes) -> Name:
    """Write a file's name for an answer."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        exact = base64.b64encode(path).decode("ascii")
        return {"path": path.decode("utf-8", "backslashreplace"), "path_b64": exact}


def wish(path: bytes) -> str | Exact:
    """Write a file's name for a request."""
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        return {"path_b64": base64.b64encode(path).decode("ascii")}


def exact(named: str | Exact | Name) -> bytes:
    """Read a file's name, of whatever form; ValueError if it is none."""
    if isinstance(named, str):
        return named.encode("utf-8")
    if "path_b64" not in named:
        return named["path"].encode("utf-8")
    try:
        return base64.b64decode(named["path_b64"], validate=True)
    except binascii.Error:
        raise ValueError("path_b64 is no base64") from None
