"""Running `lfs` as a child process: bounded, with a deadline, and safe from children that cannot be killed."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, cast

from fsxwarm.errors import OTHER_LFS, FsxwarmError, Kind, reason
from fsxwarm.lustre.pool import Rights
from fsxwarm.lustre.replies import Output

MAX_OUTPUT: Final = 16 << 20
"""Bytes that one child may print. A hundred times what our longest argument list can be answered with."""

_NOT_LOADED: Final = 127
"""The exit status of the dynamic loader when a library is missing."""

_UNUSABLE: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP})


class OverdueError(Exception):
    """A child did not end within its deadline. `ended` gives its output if it ends after all."""

    def __init__(self, seconds: float, ended: Awaitable[Output]) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.ended = ended


class Children:
    """Starts `lfs`, at most `parallel` at a time, first come, first served.

    A child past its deadline (seconds) is asked to end and then killed; it gets `grace` seconds to die of it. One
    that does not (it hangs in the kernel) is abandoned: it no longer holds a place, and its end is still awaited in
    the background. With `max_abandoned` of them alive no other is started: the file system does not answer.

    `program` is a name to be found in the PATH of `environ`, or a path. Children get `environ`, with LC_ALL=C. With
    `rights` they run as another user (root only): he may trace them, so believe them in nothing but what is his.
    """

    def __init__(
        self,
        program: str,
        environ: Mapping[str, str],
        *,
        parallel: int = 8,
        deadline: float = 60.0,
        grace: float = 5.0,
        max_abandoned: int = 4,
        rights: Rights | None = None,
    ) -> None:
        self._program = program
        self._rights: dict[str, Any] = (
            {} if rights is None else {"user": rights.uid, "group": rights.gid, "extra_groups": rights.groups}
        )
        self._environ = {**environ, "LC_ALL": "C"}
        self._places = asyncio.Semaphore(parallel)
        self._deadline = deadline
        self._grace = grace
        self._max_abandoned = max_abandoned
        self._found: str | None = None
        self._alive: set[_Child] = set()
        self._abandoned: set[_Child] = set()
        self._beginning: set[asyncio.Future[_Child]] = set()
        self._started: Counter[str] = Counter()

    @property
    def started(self) -> Mapping[str, int]:
        """How many processes have been started, by sub-command."""
        return MappingProxyType(self._started)

    @property
    def program(self) -> str:
        """The program that is run: its path once it was found."""
        return self._found or self._program

    @property
    def running(self) -> bool:
        """Whether a child is alive."""
        return bool(self._alive)

    @property
    def abandoned(self) -> int:
        """How many abandoned children are still alive."""
        return len(self._abandoned)

    async def run(self, command: str, arguments: Sequence[bytes], *, spare: bool = False) -> Output:
        """Run `lfs COMMAND ARGUMENTS…` to its end.

        With `spare` a child past its deadline is abandoned without being killed: the end of a call that hangs on
        another's restore still tells something. Raises OverdueError for one past its deadline, and FsxwarmError:
        NO_LFS when there is no program to run, HUNG when too many children hang, UNFORESEEN when the machine cannot
        start another process. Too long an argument list gives exit E2BIG, as lfs itself would.
        """
        async with self._places:
            if self.abandoned >= self._max_abandoned:
                raise FsxwarmError(Kind.HUNG, f"{self.abandoned} lfs processes hang in the kernel", hung=self.abandoned)
            try:
                child = await self._start(command, arguments)
            except OSError as error:
                if error.errno == errno.E2BIG:
                    return Output(errno.E2BIG, b"", os.strerror(errno.E2BIG).encode())
                raise self._cannot_start(error) from error
            try:
                async with asyncio.timeout(self._deadline):
                    output = await asyncio.shield(child.ended)
            except TimeoutError:
                if not spare:
                    await self._put_down(child)
                self._abandon(child)
                raise OverdueError(self._deadline, asyncio.shield(child.ended)) from None
            except asyncio.CancelledError:
                child.signal(signal.SIGKILL)
                raise
        if output.exit == _NOT_LOADED and b"shared librar" in output.stderr:
            raise FsxwarmError(Kind.NO_LFS, output.text)
        return output

    async def close(self) -> None:
        """Kill all that is alive and wait a moment until it is gone: what hangs in the kernel stays, and dies there."""
        if self._beginning:
            await asyncio.wait(self._beginning)
        for child in self._alive:
            child.signal(signal.SIGKILL)
            child.shut_pipes()
        ends = [child.ended for child in self._alive]
        if ends:
            await asyncio.wait(ends, timeout=min(self._grace, 1.0))
        for child in tuple(self._alive):
            child.forget()

    async def _start(self, command: str, arguments: Sequence[bytes]) -> _Child:
        """Start a child. Half started it cannot be cancelled: asyncio would wait for its end, so it is killed later."""
        begun = asyncio.ensure_future(self._begin(command, arguments))
        self._beginning.add(begun)
        begun.add_done_callback(self._beginning.discard)
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:
            begun.add_done_callback(_kill_begun)
            raise

    async def _begin(self, command: str, arguments: Sequence[bytes]) -> _Child:
        path = self._find()
        loop = asyncio.get_running_loop()
        _, child = await loop.subprocess_exec(
            lambda: _Child(loop),
            "lfs",  # lfs names itself in its messages by this
            command,
            *arguments,
            executable=path,
            stdin=asyncio.subprocess.DEVNULL,
            env=self._environ,
            start_new_session=True,
            **self._rights,
        )
        self._started[command] += 1
        self._alive.add(child)
        child.ended.add_done_callback(lambda _: self._forget(child))
        return child

    def _find(self) -> str:
        if self._found is None:
            where = self._environ.get("PATH", os.defpath)
            self._found = shutil.which(self._program, path=where)
            if self._found is None:
                raise _not_found(self._program, where)
        return self._found

    def _cannot_start(self, error: OSError) -> FsxwarmError:
        message = f"{self._found} cannot be started: {reason(error)}"
        if error.errno in _UNUSABLE:
            self._found = None
            return FsxwarmError(Kind.NO_LFS, message, hint=OTHER_LFS)
        hint = (
            "raise the limits on processes and open files (ulimit -u, -n), or start fewer lfs processes (lfs_parallel)"
        )
        return FsxwarmError(Kind.UNFORESEEN, message, hint=hint)

    async def _put_down(self, child: _Child) -> None:
        """End a child, if it can be ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            child.signal(number)
            child.shut_pipes()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._grace / 2):
                    await asyncio.shield(child.ended)
                return

    def _abandon(self, child: _Child) -> None:
        if not child.ended.done():
            self._abandoned.add(child)

    def _forget(self, child: _Child) -> None:
        self._alive.discard(child)
        self._abandoned.discard(child)


def _not_found(program: str, where: str) -> FsxwarmError:
    """Why there is no such program to run in the PATH `where`: it is missing, or may not be executed."""
    there = shutil.which(program, mode=os.F_OK, path=where)
    if there is not None:
        return FsxwarmError(Kind.NO_LFS, f"{there} may not be executed", hint=f"chmod +x, or {OTHER_LFS}")
    if os.sep not in program:
        return FsxwarmError(Kind.NO_LFS, f"there is no program {program} in PATH ({where})")
    if os.path.isdir(program):  # noqa: PTH112 - as which tells it
        return FsxwarmError(Kind.NO_LFS, f"{program} is a folder", hint=OTHER_LFS)
    return FsxwarmError(Kind.NO_LFS, f"there is no program {program}")


def _kill_begun(begun: asyncio.Future[_Child]) -> None:
    if not begun.cancelled() and begun.exception() is None:
        begun.result().signal(signal.SIGKILL)


class _Child(asyncio.SubprocessProtocol):
    """One process: collects what it prints, and knows its end once it has exited and its pipes are closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[Output] = loop.create_future()
        self._printed = {1: bytearray(), 2: bytearray()}
        self._cut = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if sum(map(len, self._printed.values())) + len(data) > MAX_OUTPUT:
            self._cut = True
            self.signal(signal.SIGKILL)
        if not self._cut:
            self._printed[fd] += data

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # the exit status says more
        self._transport.close()
        status = self._transport.get_returncode()
        if status is None or self._cut:  # a cut output must not pass for a whole one
            status = -signal.SIGKILL
        if not self.ended.done():
            self.ended.set_result(Output(status, bytes(self._printed[1]), bytes(self._printed[2])))

    def signal(self, number: int) -> None:
        """Send a signal to the child and whatever it has started."""
        if self._transport.get_returncode() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), number)

    def shut_pipes(self) -> None:
        """Listen no more: its end is then its exit alone."""
        for fd in (1, 2):
            pipe = self._transport.get_pipe_transport(fd)
            if pipe is not None:
                pipe.close()

    def forget(self) -> None:
        """Let go of a child that cannot be killed."""
        self._transport.close()
        self.ended.cancel()
