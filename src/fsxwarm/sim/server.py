"""The server of a simulated FSx: one world in real time behind a unix socket, asked by the executable `lfs`, and by
`syscalls` in place of the kernel.

A call that blocks in the simulated kernel is simply not answered. A client that is killed while it waits frees itself
and nothing else: what it asked for stays in the world, as on Lustre.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.sim import ioctls, lfs, wire
from fsxwarm.sim.calls import Caller
from fsxwarm.sim.faults import CallFault
from fsxwarm.sim.lfs.kernel import Kernel, Request

_SO_PEERGROUPS: Final = 59  # linux/socket.h; Python 3.11 has no name for it
_ROOM_FOR_GROUPS: Final = 1024  # Python allows no more: 256 groups
_ERRNOS: Final = {CallFault.EIO: errno.EIO, CallFault.EAGAIN: errno.EAGAIN}
_LOOKUPS: Final = {b"hsm_state": "states", b"hsm_action": "actions", b"find": "finds"}

Control = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers a control message's fields; ValueError says what is wrong with them."""


class Facility(Protocol):
    """The simulated FSx behind the server."""

    @property
    def version(self) -> tuple[int, ...]:
        """The version of Lustre, such as (2, 15, 8)."""
        ...

    def kernel(self, caller: Caller, cwd: bytes, broken: int) -> Kernel:
        """A client's kernel, as one caller sees it; with `broken` all its ioctls fail with that errno."""
        ...

    def call_fault(self, kind: str) -> CallFault | None:
        """What goes wrong with a call of this kind (`state`, `action`, `restore`, …), if anything."""
        ...

    def send(self, request: Request, caller: Caller) -> asyncio.Future[int]:
        """Send a request to the metadata servers; the future holds their errno once they answer."""
        ...

    def controls(self) -> Mapping[str, Control]:
        """What control messages do, by their `op`."""
        ...


class Server:
    """Answers calls and control messages until `stopped` is set."""

    def __init__(self, facility: Facility) -> None:
        self._facility = facility
        self._counters: Counter[str] = Counter()
        self._conversations: set[asyncio.Task[None]] = set()
        self.stopped = asyncio.Event()
        self._controls: dict[str, Control] = {
            **facility.controls(),
            "calls": lambda _: dict(self._counters),
            "shutdown": self._shutdown,
        }

    async def serve(self, sock: socket.socket, listening: Callable[[], None]) -> None:
        """Take calls on a socket, call `listening`, serve until stopped."""
        server = await asyncio.start_unix_server(self._connected, sock=sock)
        try:
            listening()
            await self.stopped.wait()
        finally:
            server.close()
            for task in self._conversations:
                task.cancel()
            await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of the server runs in a task
        self._conversations.add(task)
        try:
            # A client that was killed is no error of ours.
            with contextlib.suppress(ConnectionError, wire.WireError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._conversations.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (parts := await wire.receive(reader)) is not None:
            if parts[:1] == [b"run"] and len(parts) > 3:  # noqa: PLR2004 - run, cwd, uid, lfs
                answer = await self._run(parts[1:], reader, writer)
            elif parts[:1] == [b"call"] and len(parts) == 6:  # noqa: PLR2004 - call, uid, name, path, number, argument
                answer = await self._call(parts[1:], writer)
            elif parts[:1] == [b"control"] and len(parts) == 2:  # noqa: PLR2004 - control and its JSON
                answer = [b"told", json.dumps(self._control(parts[1])).encode()]
            else:
                raise wire.WireError("no message of the protocol")
            writer.write(wire.frame(answer))
            await writer.drain()

    async def _run(
        self, parts: Sequence[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> list[bytes]:
        cwd, uid, argv = parts[0], parts[1], parts[2:]
        self._count(argv)
        caller = _caller(writer.get_extra_info("socket"), uid)
        content: bytes | OSError = b""
        path = lfs.filelist(argv)
        if path is not None:
            writer.write(wire.frame([b"read", path]))
            await writer.drain()
            content = _content(await wire.receive(reader), path)

        def read_list(_: bytes) -> bytes:
            if isinstance(content, OSError):
                raise content
            return content

        fault = self._facility.call_fault(_kind(argv))
        if fault is CallFault.HANG:
            await _for_ever()
        broken = _ERRNOS.get(fault, 0) if fault else 0
        outcome = lfs.start(argv, self._facility.kernel(caller, cwd, broken), read_list, self._facility.version)
        if isinstance(outcome, lfs.Send):
            self._counters["requests"] += 1
            error = broken or await self._facility.send(outcome.request, caller)
            outcome = outcome.answered(error)
        if fault is CallFault.HANG_AFTER:
            await _for_ever()
        return [b"done", b"%d" % outcome.exit, outcome.stdout, outcome.stderr]

    async def _call(self, parts: Sequence[bytes], writer: asyncio.StreamWriter) -> list[bytes]:
        """One system call on Lustre, made without `lfs`."""
        uid, name, path, digits, argument = parts
        number = int(digits)
        self._counters[f"{name.decode('ascii', 'replace')} calls"] += 1
        caller = _caller(writer.get_extra_info("socket"), uid)
        fault = self._facility.call_fault(ioctls.kind_of(name, number, argument))
        if fault is CallFault.HANG:
            await _for_ever()
        broken = _ERRNOS.get(fault, 0) if fault else 0
        try:
            answer = ioctls.call(self._facility.kernel(caller, b"/", broken), name, path, number, argument)
        except OSError as error:
            return [b"done", b"%d" % (error.errno or errno.EIO), b""]
        problem = 0
        if isinstance(answer, Request):
            self._counters["requests"] += 1
            problem = broken or await self._facility.send(answer, caller)
            answer = argument
        if fault is CallFault.HANG_AFTER:
            await _for_ever()
        return [b"done", b"%d" % problem, answer]

    def _count(self, argv: Sequence[bytes]) -> None:
        self._counters["processes"] += 1
        if len(argv) > 1 and argv[1] in _LOOKUPS:
            self._counters[_LOOKUPS[argv[1]]] += len(argv) - 2

    def _control(self, message: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(message)
            control = self._controls.get(fields.pop("op"))
            if control is None:
                return {"error": f"no such control message; there are {', '.join(sorted(self._controls))}"}
            return control(fields)
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _shutdown(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.stopped.set()
        return {}


@contextlib.contextmanager
def listen(folder: Path) -> Iterator[socket.socket]:
    """Bind `sim.sock` in a folder, and remove it at the end. FsxwarmError USAGE when a server has it already."""
    path = folder / "sim.sock"
    # By the folder's descriptor: a socket's path may have 107 bytes, a folder's many more.
    where = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    address = f"/proc/self/fd/{where}/sim.sock"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            if path.exists() and sock.connect_ex(address) == 0:
                raise FsxwarmError(Kind.USAGE, f"a simulated FSx runs in {folder} already", hint="name another folder")
            path.unlink(missing_ok=True)
            sock.bind(address)
            path.chmod(0o666)  # as any user may call lfs; who it is, the kernel tells
            try:
                yield sock
            finally:
                path.unlink(missing_ok=True)
    finally:
        os.close(where)


def _caller(sock: socket.socket, uid: bytes) -> Caller:
    """Return whose rights apply: the peer's, or whom the server's owner asked to be taken for."""
    _, peer, group = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid and peer == os.geteuid():
        return Caller(int(uid), frozenset({int(uid)}))
    groups = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _ROOM_FOR_GROUPS)
    return Caller(peer, frozenset({group, *struct.unpack(f"{len(groups) // 4}i", groups)}))


def _kind(argv: Sequence[bytes]) -> str:
    """Return the kind of call that faults are asked for: the sub-command without its `hsm_`."""
    return argv[1].removeprefix(b"hsm_").decode("utf-8", "replace") if len(argv) > 1 else ""


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def _content(parts: list[bytes] | None, path: bytes) -> bytes | OSError:
    if parts is None or len(parts) != 3 or parts[0] != b"content":  # noqa: PLR2004 - content, errno, bytes
        raise wire.WireError("no file list")
    number = int(parts[1])
    return OSError(number, os.strerror(number), path) if number else parts[2]
