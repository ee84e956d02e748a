"""The report of a preload: JSON lines, one for each file that is not resident at the end.

    {"schema": "fsxwarm.report/1", "version": …, "started": …, "arguments": […], "shard": "1/1"}
    {"path": …, "path_b64": …, "size": …, "outcome": …, "reason": …, "errno": …, "flags": […], "flags_hex": …,
     "attempts": …, "in_flight": …, "detail": …, "what": …, "todo": …}
    {"summary": {"exit": …, "ended": …, …}}

`path_b64` has the exact bytes of a name that is not UTF-8, and is only there for one. `outcome` is failed, blocked,
vanished or cancelled; for what could not be looked at it is unreadable, missing or outside (not on FSx for Lustre).
`in_flight` tells that the file's restore goes on at FSx. Without its last line a report is unfinished. `unlisted` in
the summary of a daemon's job counts what has no line: the daemon remembers so many files of each job.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import json
import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiofiles
from aiofiles.threadpool.binary import AsyncBufferedIOBase

from fsxwarm.engine.advice import advice
from fsxwarm.engine.looks import GONE
from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import MEANINGS, Reason
from fsxwarm.ports.tree import NOT_REGULAR

SCHEMA: Final = "fsxwarm.report/1"
_BATCH: Final = 500
_READ: Final = 1 << 20
_LONGEST: Final = 1 << 16
_CHUNK: Final = 1000
_RETRIED: Final = {"failed", "blocked", "cancelled", "unreadable"}
_WORDS: Final = {
    Flags.RELEASED: "released",
    Flags.EXISTS: "exists",
    Flags.DIRTY: "dirty",
    Flags.ARCHIVED: "archived",
    Flags.NORELEASE: "never_release",
    Flags.NOARCHIVE: "never_archive",
    Flags.LOST: "lost_from_hsm",
}


class Report:
    """Writes a report beside its target and puts it in its place at the end: it is whole, or it is not there.

    Lines are handed over without waiting and written in batches by a task. When that fails, `problem` says why, what
    was written is removed, and the warming goes on.
    """

    def __init__(self, target: Path, header: Mapping[str, object], *, fit: bool = False) -> None:
        self._target = target
        self._fit = fit
        self._draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        self._lines = [_line({"schema": SCHEMA, "shard": "1/1", **header})]
        self._full = asyncio.Event()
        self._ending = False
        self._over = False
        self._writer: asyncio.Task[None] | None = None
        self.problem: str | None = None

    @classmethod
    async def begin(
        cls, target: Path, header: Mapping[str, object], *, fresh: bool = False, fit: bool = False
    ) -> Report:
        """Open a report; FsxwarmError USAGE when there cannot be one at `target`. `fit` is the preload's `--fit`.

        With `fresh` an older one there is removed at once: should this run be killed, nobody takes it for this run's.
        """
        try:
            real = await asyncio.to_thread(_usable, target)
            report = cls(real, header, fit=fit)
            if fresh:
                await asyncio.to_thread(real.unlink, missing_ok=True)
            file = await aiofiles.open(report._draft, "xb")
        except OSError as error:
            why = error.strerror or str(error)
            raise FsxwarmError(
                Kind.USAGE, f"cannot write a report to {target}: {why}", hint="name another file with --report"
            ) from None
        report._writer = asyncio.create_task(report._write(file))
        return report

    def settled(self, finish: Finish) -> None:
        """Note a file that did not become resident."""
        self._add(_finished(finish, fit=self._fit))

    def trouble(self, trouble: Trouble) -> None:
        """Note a path that could not be looked at."""
        self._add(_troubled(trouble))

    def copied(self, line: Mapping[str, object]) -> None:
        """Note a file as another report has it."""
        self._add(line)

    async def end(self, summary: Mapping[str, object]) -> None:
        """Write the last line, sync, and put the report in its place; see `problem` afterwards."""
        if self._writer is None:
            return
        self._add({"summary": summary})
        await self._finish()
        if self.problem is None:
            try:
                await asyncio.to_thread(self._draft.replace, self._target)
            except OSError as error:
                self._give_up(error)
        self._over = True

    async def discard(self) -> None:
        """Leave no report, unless it has been put in its place."""
        if not self._over:
            self._over = True
            await self._finish()
            self._remove()

    async def _finish(self) -> None:
        writer, self._writer = self._writer, None
        self._ending = True
        self._full.set()
        if writer is not None:
            await writer

    def _add(self, document: Mapping[str, object]) -> None:
        if self.problem is None:
            self._lines.append(_line(document))
            if len(self._lines) >= _BATCH:
                self._full.set()

    async def _write(self, file: AsyncBufferedIOBase) -> None:
        try:
            try:
                while self._lines or not self._ending:
                    await self._full.wait()
                    lines, self._lines = self._lines, []
                    if not self._ending:
                        self._full.clear()
                    await file.write(b"".join(lines))
                await file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            finally:
                await file.close()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.problem = f"no report: cannot write {self._target}: {error.strerror or error}"
        self._lines = []
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self._draft.unlink()


async def check_report(source: Path) -> Mapping[str, Any] | None:
    """Read a report through; returns its summary, None if it is unfinished. FsxwarmError names its first bad line."""
    summary: object = None
    async for _, document in documents(source):
        summary = document.get("summary")
    return summary if isinstance(summary, dict) else None


async def files_to_retry(source: Path) -> AsyncIterator[Sequence[bytes]]:
    """The files of a report that may become resident yet, in its order, 1,000 at a time."""
    paths: list[bytes] = []
    async for number, document in documents(source):
        if document.get("outcome") in _RETRIED:
            paths.append(path_of(document, source, number))
        if len(paths) == _CHUNK:
            yield paths
            paths = []
    if paths:
        yield paths


def _usable(target: Path) -> Path:
    """Where the report really goes; only a regular file is ever replaced."""
    if str(target) == "-":
        raise OSError(errno.EINVAL, "a report goes to a file, not to standard output")
    try:
        found = target.stat()  # before it is resolved, which makes no name of a pipe behind /dev/stdout
    except FileNotFoundError:
        return target.resolve()
    mode = found.st_mode
    if any(os.path.samestat(found, os.fstat(stream)) for stream in (1, 2)):
        raise OSError(errno.EINVAL, "that is where this command's own output goes")
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return target.resolve()


def _finished(finish: Finish, *, fit: bool) -> dict[str, object]:
    meaning = None if finish.reason is None else advice(finish.reason, fit=fit)
    flags = finish.flags
    return {
        **_named(finish.entry.path),
        "size": finish.entry.size,
        "outcome": finish.outcome.value,
        "reason": None if finish.reason is None else finish.reason.value,
        "errno": finish.errno,
        "flags": None if flags is None else [word for flag, word in _WORDS.items() if flags & flag],
        "flags_hex": None if flags is None else f"0x{flags:08x}",
        "attempts": finish.attempts,
        "in_flight": finish.in_flight,
        "detail": finish.detail,
        "what": "" if meaning is None else meaning.what,
        "todo": "" if meaning is None else meaning.todo,
    }


def _troubled(trouble: Trouble) -> dict[str, object]:
    outcome, todo = "unreadable", "check its permissions and that the file system answers"
    if trouble.errno in GONE:
        outcome, todo = "missing", "correct the list"
    elif trouble.errno == NOT_ON_LUSTRE:
        outcome, todo = "outside", "nothing: only files on FSx for Lustre can be released"
    elif trouble.errno == NOT_REGULAR:
        todo = MEANINGS[Reason.NOT_REGULAR].todo
    return {
        **_named(trouble.path),
        "outcome": outcome,
        "reason": None,
        "errno": trouble.errno,
        "what": trouble.text or os.strerror(trouble.errno),
        "todo": todo,
    }


def _named(path: bytes) -> dict[str, str]:
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        exact = base64.b64encode(path).decode("ascii")
        return {"path": path.decode(errors="backslashreplace"), "path_b64": exact}


def _line(document: Mapping[str, object]) -> bytes:
    return json.dumps(document).encode() + b"\n"


# ---- reading -------------------------------------------------------------------------------------------------------


async def documents(source: Path) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """The lines of a report with their numbers. A torn last line, as a crash leaves it, counts as none.

    FsxwarmError NO_SUCH_PATH where it cannot be read, USAGE with the line that no report has.
    """
    number = 0
    async for line, whole in _lines(source):
        number += 1
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            if number > 1 and not whole:
                return
            raise bad_line(source, number, "it is no JSON object")
        if number == 1 and document.get("schema") != SCHEMA:
            raise bad_line(source, number, f'a report begins with {{"schema": "{SCHEMA}"')
        if number > 1 and "summary" not in document:
            path_of(document, source, number)
        yield number, document
    if not number:
        raise bad_line(source, 1, "the file is empty")


def path_of(document: Mapping[str, Any], source: Path, number: int) -> bytes:
    """The exact name in a file's line."""
    exact, text = document.get("path_b64"), document.get("path")
    try:
        path = base64.b64decode(exact, validate=True) if isinstance(exact, str) else os.fsencode(text or "")
    except (binascii.Error, UnicodeEncodeError, TypeError, ValueError):
        path = b""
    if not path.startswith(b"/") or b"\0" in path:
        raise bad_line(source, number, "it names no file by an absolute path")
    return path


def bad_line(source: Path, number: int, why: str) -> FsxwarmError:
    """The error that says which line no report has."""
    return FsxwarmError(
        Kind.USAGE,
        f"the report {source}: line {number}: {why}",
        hint="name a file that preload --report wrote",
    )


async def _lines(source: Path) -> AsyncIterator[tuple[bytes, bool]]:
    """Lines without their ends; the flag tells whether there was one."""
    try:
        if not stat.S_ISREG((await asyncio.to_thread(source.stat)).st_mode):
            raise FsxwarmError(Kind.USAGE, f"the report {source}: it is no regular file")
        async with aiofiles.open(source, "rb") as file:
            rest = b""
            number = 0
            while data := await file.read(_READ):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield line, True
                number += len(lines)
                if len(rest) > _LONGEST:
                    raise bad_line(source, number + 1, "it is longer than any line of a report")
            if rest:
                yield rest, False
    except OSError as error:
        raise FsxwarmError(
            Kind.NO_SUCH_PATH, f"cannot read the report {source}: {error.strerror or error}", hint=""
        ) from None
