"""What runs in a helper process: walking folders and looking names up, in threads, for the process that started it.

It imports nothing of fsxwarm and nothing slow, so that it starts in a few milliseconds (`python -I -S helper.py`).
Frames over stdin and stdout are a length (4 bytes, native) and a marshalled tuple: both ends are the same interpreter.

A request is (job, kind, …); an answer (job, done, …). A folder is answered in parts of up to a thousand records; a
part is sent only when the other side has given credit for it, so that nobody has to hold a folder of millions.
"""

from __future__ import annotations

import errno
import marshal
import os
import re
import stat
import struct
import sys
import threading
from queue import SimpleQueue

TYPE_CHECKING = False  # as typing's, which is not worth its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Options = tuple[int, bytes, bytes | None, bytes | None, bool]
    Match = Callable[[bytes], object]

PART = 1000
LENGTH = struct.Struct("=I")
_PIECE = 2048
_SIGN_OF_LIFE = 5000
"""Names after which a part is sent in any case, so that a long folder is not taken for a call that hangs."""
_NEVER = re.compile(b"(?!)")
_ALWAYS = re.compile(b"")


class Helper:
    """Takes requests from one pipe, answers on another. One thread reads, the others work."""

    def __init__(self, source: int, sink: int, threads: int) -> None:
        self._source = os.fdopen(source, "rb")
        self._sink = sink
        self._sending = threading.Lock()
        self._jobs: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self._credit: dict[int, int] = {}
        self._granted = threading.Condition()
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def serve(self) -> None:
        """Read requests until the other side is gone."""
        while True:
            head = self._source.read(LENGTH.size)
            if len(head) < LENGTH.size:
                os._exit(0)  # a thread may hang in the kernel for ever: it must not hold the process
            request = marshal.loads(self._source.read(LENGTH.unpack(head)[0]))  # noqa: S302 - from our own parent
            if request[1] == "credit":
                with self._granted:
                    if request[0] in self._credit:
                        self._credit[request[0]] += request[2]
                        self._granted.notify_all()
                continue
            if request[1] == "folder":
                with self._granted:
                    self._credit[request[0]] = request[2]
            self._jobs.put(request)

    def _work(self) -> None:
        kinds: dict[str, Callable[..., None]] = {
            "folder": self._folder,
            "list": self._list,
            "stat": self._stat,
            "resolve": self._resolve,
        }
        while True:
            request = self._jobs.get()
            kinds[request[1]](*request)

    def _send(self, *answer: Any) -> None:
        data = marshal.dumps(answer)
        view = memoryview(LENGTH.pack(len(data)) + data)
        with self._sending:
            while view:
                try:
                    view = view[os.write(self._sink, view) :]
                except BrokenPipeError:
                    os._exit(0)

    # ---- folders -----------------------------------------------------------------------------------------------

    def _part(self, job: int, *part: Any) -> None:
        """Send a part of a folder, once there is credit for it."""
        with self._granted:
            while self._credit[job] <= 0:
                self._granted.wait()
            self._credit[job] -= 1
        self._send(job, 0, *part)

    def _folder(self, job: int, _kind: str, _credit: int, path: bytes, options: Options, skip: int) -> None:
        """Walk one folder: parts of (items, skipped, position), at the end the names of its sub-folders, sorted."""
        folders: list[bytes] = []
        position = 0
        try:
            with Opened(path) as fd:
                if os.fstat(fd).st_dev != options[0]:
                    self._send(job, 1, [], 0, 1)  # another file system is mounted here
                    return
                for items, skipped, position in scan(fd, options, folders, skip):
                    self._part(job, items, skipped, position)
        except OSError as error:
            self._send(job, 1, sorted(folders), error.errno or errno.EIO, 0)
        else:
            self._send(job, 1, sorted(folders), 0, 0)
        finally:
            with self._granted:
                del self._credit[job]

    # ---- names -------------------------------------------------------------------------------------------------

    def _list(self, job: int, _kind: str, paths: list[bytes], options: Options) -> None:
        """Look up listed files: what lstat says of each regular one, an errno for others, 0 for what is skipped."""
        takes, drops, whole = filters(options)
        answers: list[Any] = []
        for path in paths:
            try:
                info = os.lstat(path)
            except (OSError, ValueError) as error:
                answers.append(getattr(error, "errno", None) or errno.EINVAL)
                continue
            if stat.S_ISDIR(info.st_mode):
                answers.append(errno.EISDIR)
            elif not stat.S_ISREG(info.st_mode):
                answers.append(0)
            elif drops(path[1:]) or not takes(path[1:]):
                answers.append(-1)
            elif whole or info.st_nlink > 1 or info.st_blocks <= 1 or not info.st_size:
                answers.append(record(info))
            else:
                answers.append((info.st_size,))
        self._send(job, 1, answers)

    def _stat(self, job: int, _kind: str, paths: list[bytes]) -> None:
        answers: list[Any] = []
        for path in paths:
            try:
                info = os.lstat(path)
            except (OSError, ValueError) as error:
                answers.append(getattr(error, "errno", None) or errno.EINVAL)
            else:
                answers.append((info.st_dev, info.st_ino, info.st_size, info.st_blocks))
        self._send(job, 1, answers)

    def _resolve(self, job: int, _kind: str, path: bytes) -> None:
        try:
            real = os.path.realpath(path, strict=True)
            info = os.lstat(real)
        except (OSError, ValueError) as error:
            self._send(job, 1, getattr(error, "errno", None) or errno.EINVAL)
        else:
            self._send(job, 1, (real, info.st_mode, info.st_dev))


class Opened:
    """A folder, opened without following a symlink at its end; in pieces where its path is too long for one call."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        if len(self._path) <= _PIECE:
            self._fd = os.open(self._path, flags)
            return self._fd
        self._fd = os.open(b"/", flags)
        rest = self._path.strip(b"/")
        while rest:
            cut = len(rest) if len(rest) <= _PIECE else rest.rindex(b"/", 0, _PIECE)
            below = os.open(rest[:cut], flags, dir_fd=self._fd)
            os.close(self._fd)
            self._fd = below
            rest = rest[cut + 1 :]
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def filters(options: Options) -> tuple[Match, Match, bool]:
    """Return the questions "is it taken?" and "is it dropped?" for a relative path, and whether all are entries."""
    _, _, include, exclude, whole = options
    takes = re.compile(include, re.DOTALL) if include else _ALWAYS
    drops = re.compile(exclude, re.DOTALL) if exclude else _NEVER
    return takes.match, drops.match, whole


def record(info: os.stat_result) -> tuple[int, ...]:
    """What an `Entry` needs of a stat, in its order."""
    return (
        info.st_dev, info.st_ino, info.st_size, info.st_blocks,
        int(info.st_mtime), int(info.st_atime), int(info.st_ctime), info.st_nlink, info.st_uid, info.st_mode,
    )  # fmt: skip


def scan(  # noqa: C901, PLR0912 - the one hot loop
    fd: int, options: Options, folders: list[bytes], skip: int
) -> Iterator[tuple[list[Any], int, int]]:
    """Read a folder in its own order, which Lustre's statahead follows; yield (items, skipped, position).

    An item is (name, *record), or (files, bytes) for a run of files whose stat alone proves them resident. The first
    `skip` names were dealt with before. Sub-folders are added to `folders`.
    """
    dev, inside, _, _, _ = options
    takes, drops, whole = filters(options)
    filtered = bool(options[2] or options[3])
    items: list[Any] = []
    position = since = skipped = files = size = 0
    with os.scandir(fd) as names:
        for entry in names:
            position += 1
            if entry.is_dir(follow_symlinks=False):
                name = os.fsencode(entry.name)
                if not filtered or not drops(inside + name):
                    folders.append(name)
                continue
            if position <= skip:
                continue
            if not entry.is_file(follow_symlinks=False):
                skipped += 1
                continue
            if filtered:
                name = os.fsencode(entry.name)
                if drops(inside + name) or not takes(inside + name):
                    continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    items.append((os.fsencode(entry.name), error.errno or errno.EIO))
                continue
            if info.st_blocks > 1 and info.st_nlink == 1 and info.st_size and not whole:
                files += 1
                size += info.st_size
            elif info.st_dev == dev and stat.S_ISREG(info.st_mode):
                if files:
                    items.append((files, size))
                    files = size = 0
                items.append((os.fsencode(entry.name), *record(info)))
            else:
                skipped += 1
            if len(items) >= PART or position - since >= _SIGN_OF_LIFE:
                if files:
                    items.append((files, size))
                    files = size = 0
                yield items, skipped, position
                items, skipped, since = [], 0, position
    if files:
        items.append((files, size))
    if items or skipped:
        yield items, skipped, position


if __name__ == "__main__":
    Helper(0, 1, int(sys.argv[1])).serve()
