"""Lustre's HSM through the `lfs` command: the adapter behind the `Hsm` port that needs nothing but a Lustre client."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from fsxwarm.errors import OTHER_LFS, FsxwarmError, Kind
from fsxwarm.lustre import replies
from fsxwarm.lustre.child import Children, OverdueError
from fsxwarm.lustre.replies import Output, Parsed
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import MAX_REQUEST, Action, Flags
from fsxwarm.ports.hsm import CallHungError, Reply, Space

T = TypeVar("T")

MAX_LOOK: Final = 500
"""Files that one look-up process is asked for: enough to make its start (30 ms) cheap, short enough to answer soon."""

MAX_ARGUMENTS: Final = 120 << 10
"""Bytes of arguments for one look-up, so that it starts even where the limit is the smallest (128 KiB)."""

_PER_ARGUMENT: Final = 9
"""Bytes that an argument takes beside its own: its NUL and the pointer to it."""


_SHOWN: Final = 60
"""Characters that are shown of what should have been a version."""

_SCREEN_AFTER: Final = 3
"""Bad files at which a look-up stops before all of its files are screened at once: a folder may have been removed."""


class LfsHsm:
    """Implements `fsxwarm.ports.hsm.Hsm` with `lfs` processes.

    Paths are absolute: lfs takes options anywhere, and a name that begins with a dash for one. Look-ups of any size
    are split; a request of more than `MAX_REQUEST` files is refused with E2BIG, as lfs refuses it above 52.

    It passes names on, and what they mean by then is what is done: nothing can hold `lfs` to the `keys` that are given.

    Up to Lustre 2.15 a look-up stops at the first bad file: it costs one more process, which goes on behind it. Where
    that happens again and again, one `lfs path2fid`, which does not stop, finds all files that are gone.
    """

    def __init__(self, children: Children) -> None:
        self._children = children
        self._is_lustres = False

    @property
    def abandoned(self) -> int:
        """How many calls hang in the kernel right now, abandoned."""
        return self._children.abandoned

    @property
    def running(self) -> bool:
        """Whether a process runs."""
        return self._children.running

    @property
    def started(self) -> Mapping[str, int]:
        """How many processes have been started, by sub-command of lfs."""
        return self._children.started

    async def close(self) -> None:
        """End what still runs."""
        await self._children.close()

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """Read the flags of files (needs read permission on each: EACCES otherwise). Follows a final symlink."""
        del keys
        return await self._look("hsm_state", (), paths, (), replies.parse_states)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """Read what the coordinator does with files; NOOP is no proof of success."""
        del keys
        return await self._look("hsm_action", (), paths, (), replies.parse_actions)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """Tell which files are released, without permissions on them. False for a file that is not on Lustre."""
        options = (b"-type", b"f", b"-L", b"released", b"-print0")
        return await self._look("find", (), paths, options, replies.parse_released)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """Set or clear norelease on files (needs ownership or root)."""
        command = "hsm_set" if on else "hsm_clear"
        marks = await self._look(command, (b"--norelease",), paths, (), replies.parse_marks)
        return [mark if isinstance(mark, Trouble) else None for mark in marks]

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Ask for at most 50 files. A call that hangs on a duplicate is left alone: killing it would do nothing."""
        del keys
        return await self._request("hsm_restore", paths)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Cancel requests (root only)."""
        del keys
        return await self._request("hsm_cancel", paths)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """Release at most 50 files, in order, up to the first refusal."""
        del keys
        return await self._request("hsm_release", paths)

    async def space(self, mount: bytes) -> Space | Trouble:
        """Measure free space by `lfs df`; OSTs that do not answer are left out."""
        output = await self._run("df", [mount])
        space = replies.parse_space(output.stdout)
        if space is None:
            return Trouble(mount, _errno(output), output.text)
        return space

    async def version(self) -> tuple[int, ...] | Trouble:
        """The client's version, such as (2, 15, 8); a Trouble for a program that is no Lustre client's lfs."""
        output, version = await self._tell_version()
        if version is not None:
            return version
        return Trouble(os.fsencode(self._children.program), _errno(output), self._not_lustres(output))

    async def must_be_lustres(self) -> None:
        """FsxwarmError NO_LFS for a program that is no Lustre client's lfs; once it was found to be, nothing is asked.

        One that was killed before it could tell may be anything: the calls that follow have their own words for it.
        """
        if self._is_lustres:
            return
        output, version = await self._tell_version()
        if version is None and output.exit >= 0:
            what = self._not_lustres(output)
            raise FsxwarmError(Kind.NO_LFS, f"this is no Lustre client's lfs: {what}", hint=OTHER_LFS)

    async def _tell_version(self) -> tuple[Output, tuple[int, ...] | None]:
        output = await self._run("--version", [])
        version = replies.parse_version(output.stdout) if output.exit == 0 else None
        self._is_lustres |= version is not None
        return output, version

    def _not_lustres(self, output: Output) -> str:
        return f"`{self._children.program} --version` {_no_version(output)}"

    async def _look(
        self,
        command: str,
        before: Sequence[bytes],
        paths: Sequence[bytes],
        after: Sequence[bytes],
        parse: Callable[[Sequence[bytes], Output], Parsed[T]],
    ) -> list[T | Trouble]:
        """Ask for all paths, each once, again and in smaller groups where an output left something unclear."""
        known: dict[bytes, T | Trouble] = {}
        stops, retried = 0, False
        groups = deque(_split(tuple(dict.fromkeys(paths))))
        while groups:
            group = groups.popleft()
            output = await self._run(command, [*before, *group, *after])
            parsed = parse(group, output)
            known |= parsed.known
            rest = tuple(path for path in group if path not in parsed.known)
            if not rest:
                continue
            if output.exit < 0 and len(group) == 1 and not retried:
                retried = True
                groups.appendleft(rest)
            elif len(group) == 1 or _fails_altogether(group, output):
                known |= {path: Trouble(path, replies.errno_of(output), _unclear(command, output)) for path in rest}
            elif parsed.known:
                stops += parsed.stopped
                if parsed.stopped and stops == _SCREEN_AFTER:
                    output = await self._run("path2fid", rest)
                    unreachable = replies.parse_unreachable(rest, output)
                    known |= unreachable
                    rest = tuple(path for path in rest if path not in unreachable)
                if rest:
                    groups.appendleft(rest)
            else:
                groups.extendleft(reversed(_smaller(rest)))
        return [known[path] for path in paths]

    async def _request(self, command: str, paths: Sequence[bytes]) -> Reply:
        if len(paths) > MAX_REQUEST:
            return Reply(errno.E2BIG, f"{len(paths)} files in one request; at most {MAX_REQUEST} are taken")
        if not paths:
            return Reply(0)
        try:
            return _reply(command, await self._children.run(command, paths, spare=True))
        except OverdueError as error:
            raise CallHungError(f"lfs {command}", error.seconds, _later(command, error.ended)) from None

    async def _run(self, command: str, arguments: Sequence[bytes]) -> Output:
        try:
            return await self._children.run(command, arguments)
        except OverdueError as error:
            raise CallHungError(f"lfs {command}", error.seconds) from None


def _split(paths: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Cut into groups of at most MAX_LOOK files and MAX_ARGUMENTS bytes, keeping the order."""
    group: list[bytes] = []
    size = 0
    for path in paths:
        cost = len(path) + _PER_ARGUMENT
        if group and (len(group) == MAX_LOOK or size + cost > MAX_ARGUMENTS):
            yield tuple(group)
            group, size = [], 0
        group.append(path)
        size += cost
    if group:
        yield tuple(group)


def _smaller(paths: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
    """Split a group whose output was unclear: names with newlines apart from the others first, then in halves."""
    odd = tuple(path for path in paths if b"\n" in path)
    if odd and len(odd) < len(paths):
        return [tuple(path for path in paths if b"\n" not in path), odd]
    middle = len(paths) // 2
    return [paths[:middle], paths[middle:]]


_OF_A_NAME: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM})


def _fails_altogether(paths: Sequence[bytes], output: Output) -> bool:
    """Whether lfs failed without getting to any file: asking in smaller groups would fail as often."""
    if output.exit <= 0 or output.exit in _OF_A_NAME or output.stdout:
        return False
    return not any(path in output.stderr for path in paths)


def _errno(output: Output) -> int:
    """The errno of an output that is no answer: the exit status, or EIO where that tells none."""
    return output.exit if output.exit > 0 else errno.EIO


def _unclear(command: str, output: Output) -> str:
    if output.exit < 0:
        return f"lfs {command} was killed by signal {-output.exit} ({signal.strsignal(-output.exit)})"
    return output.text or f"lfs {command} gave no answer that can be understood"


def _no_version(output: Output) -> str:
    """What was done in place of telling a version."""
    if output.exit < 0:
        return f"was killed by signal {-output.exit} ({signal.strsignal(-output.exit)})"
    ended = f"ended with status {output.exit} and " if output.exit else ""
    lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
    if not lines:
        return f"{ended}printed nothing"
    line = lines[0].decode("utf-8", "backslashreplace")
    return f"{ended}printed {line[:_SHOWN]}{'…' if len(line) > _SHOWN or len(lines) > 1 else ''}"


def _reply(command: str, output: Output) -> Reply:
    if output.exit == 0:
        return Reply(0)
    return Reply(_errno(output), _unclear(command, output))


def _later(command: str, ended: Awaitable[Output]) -> Awaitable[Reply]:
    """The reply of a call that has been given up, for whoever waits for it."""
    reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def settle(source: asyncio.Future[Output]) -> None:
        if source.cancelled():
            reply.cancel()
        elif not reply.done():
            reply.set_result(_reply(command, source.result()))

    asyncio.ensure_future(ended).add_done_callback(settle)
    return reply
