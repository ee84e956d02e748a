"""Lists of files, as `find -print0` or a data loader writes them."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Final

import aiofiles

from fsxwarm.engine.addresses import is_address
from fsxwarm.errors import FsxwarmError, Kind

CHUNK: Final = 1000
"""Entries handed on at a time."""

_READ: Final = 1 << 16
_LONGEST: Final = 1 << 16
_BOM: Final = b"\xef\xbb\xbf"


async def read_manifest(source: bytes, *, folder: bytes, nul: bool) -> AsyncIterator[list[bytes]]:
    """Read the list in file `source` (`-` is standard input) and yield absolute paths, 1,000 at a time.

    Entries are separated by NUL bytes when `nul` is set, else by newlines (LF or CRLF); empty ones are skipped.
    Relative entries are taken from `folder`; S3 addresses stay as they are. FsxwarmError NO_SUCH_PATH or USAGE when
    there is no such list, or when it cannot be one.
    """
    separator = b"\0" if nul else b"\n"
    paths: list[bytes] = []
    async for line in _lines(source, separator):
        entry = line if nul else line.removesuffix(b"\r")
        if not entry:
            continue
        if b"\0" in entry:
            raise FsxwarmError(Kind.USAGE, f"{_name(source)} holds NUL bytes", hint="read it with -0")
        paths.append(_absolute(folder, entry))
        if len(paths) == CHUNK:
            yield paths
            paths = []
    if paths:
        yield paths


def _absolute(folder: bytes, entry: bytes) -> bytes:
    if is_address(entry):
        return entry
    while entry.startswith(b"./"):
        entry = entry[2:].lstrip(b"/")
    path = entry if entry.startswith(b"/") else folder + b"/" + entry
    return path.rstrip(b"/") or b"/"


def _name(source: bytes) -> str:
    return "standard input" if source == b"-" else f"the list {os.fsdecode(source)}"


async def _lines(source: bytes, separator: bytes) -> AsyncIterator[bytes]:
    rest = b""
    first = True
    async for data in _chunks(source):
        *lines, rest = (rest + data).split(separator)
        if len(rest) > _LONGEST or any(len(line) > _LONGEST for line in lines):
            hint = "read a list of NUL-separated names with -0" if separator == b"\n" else "leave -0 out"
            raise FsxwarmError(Kind.USAGE, f"{_name(source)} has entries longer than any path", hint=hint)
        for line in lines:
            yield line.removeprefix(_BOM) if first else line
            first = False
    yield rest.removeprefix(_BOM) if first else rest


async def _chunks(source: bytes) -> AsyncIterator[bytes]:
    if source == b"-" and sys.stdin is None:
        raise FsxwarmError(Kind.USAGE, "standard input is closed", hint="pipe the list in, or name a file")
    try:
        descriptor = os.dup(0) if source == b"-" else await asyncio.to_thread(os.open, source, os.O_RDONLY)
    except OSError as error:
        raise FsxwarmError(
            Kind.NO_SUCH_PATH, f"cannot read {_name(source)}: {os.strerror(error.errno or 0)}", hint=""
        ) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        os.close(descriptor)
        raise FsxwarmError(Kind.USAGE, f"{_name(source)} is a folder", hint="name it as a PATH to take what is in it")
    waits = not stat.S_ISREG(mode)
    async with aiofiles.open(descriptor, "rb", buffering=0) as file:
        while True:
            if waits:
                await _readable(descriptor)
            data = os.read(descriptor, _READ) if waits else await file.read(_READ)
            if not data:
                return
            yield data


async def _readable(descriptor: int) -> None:
    """Wait until a pipe or terminal has something, so that Ctrl-C need not wait for a thread that reads it."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, _wake, ready)
    except PermissionError:  # /dev/null and the like cannot be waited for, and never block
        return
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
