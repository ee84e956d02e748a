"""What runs in a helper process: walking folders and looking names up, in threads, for the process that started it.

It imports nothing of fsxwarm and nothing slow, so that it starts in a few milliseconds (`python -I -S helper.py`).
Over stdin and stdout go frames: a head and a marshalled tuple, for both ends are the same interpreter. Each request
has a thread of its own from the moment it is read, so that the other side knows what it waits for. No file is opened.
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
    from collections.abc import Callable
    from typing import Any, NoReturn

    Share = tuple[int, int] | None
    """The shard whose files are wanted, and how many shards there are; None: all files are."""

    Options = tuple[int, str | None, str | None, bool, Share]
    """Of a walk: st_dev of its file system, expressions of names to take and to drop, are all files entries, whose."""

    Question = Callable[[str], object]
    Send = Callable[[list[Any], int, int], None]

REQUEST = struct.Struct("=I")
"""Head of a request: the bytes that follow, (job, kind, …)."""
ANSWER = struct.Struct("=IIB")
"""Head of an answer: the bytes that follow, the job, and what it is: MORE, DONE or MARKS."""
MORE, DONE, MARKS = range(3)
"""A part of a folder; a job's last answer; how far all jobs are, which is sent at every beat as a sign of life."""

UNWANTED, LINK, IRREGULAR = 0, -1, -2
"""Of a listed path: a file that filters or the shard leave out; a symlink; a pipe, socket or device."""

_PART = 1000
"""Records in a part of a folder."""
_LONG = 20_000
"""Names after which a part is sent in any case, so that a long folder shows that it moves."""
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DroppedError(Exception):
    """Nobody wants the rest of a folder."""


class Helper:
    """Takes requests from one pipe, answers on another. `beat` is the seconds between two signs of life."""

    def __init__(self, source: int, sink: int, beat: float, *, guarded: bool = False) -> None:
        self._source = os.fdopen(source, "rb")
        self._sink = sink
        self._beat = beat
        self._guarded = guarded
        self._sending = threading.Lock()
        self._requests: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._credit: dict[int, int] = {}
        self._granted = threading.Condition()
        self._marks: dict[int, list[int]] = {}
        self.kinds: dict[str, Callable[..., None]] = {
            "folder": self._folder,
            "list": self._list,
            "stat": self._stat,
            "resolve": self._resolve,
        }
        """What answers each kind of request, called with (job, mark, …): it moves `mark[0]` on, and sends."""

    def serve(self) -> NoReturn:
        """Read requests until the other side is gone."""
        threading.Thread(target=self._live, daemon=True).start()
        while True:
            head = self._source.read(REQUEST.size)
            if len(head) < REQUEST.size:
                os._exit(0)  # a thread may hang in the kernel for ever: nobody may wait for it
            job, kind, *arguments = marshal.loads(self._source.read(REQUEST.unpack(head)[0]))  # noqa: S302 - our parent's
            if kind == "credit":
                self._grant(job, *arguments)
                continue
            if kind == "folder":
                self._credit[job] = arguments.pop(0)
            if not self._idle.acquire(blocking=False):
                threading.Thread(target=self._work, daemon=True).start()
            self._requests.put((kind, job, *arguments))

    def _work(self) -> None:
        while True:
            kind, job, *arguments = self._requests.get()
            mark = self._marks[job] = [0]
            self.kinds[kind](job, mark, *arguments)
            del self._marks[job]
            self._idle.release()

    def _live(self) -> None:
        """Tell at every beat how far each job is: one whose mark does not move hangs in a call."""
        never = threading.Event()
        while not never.wait(self._beat):
            self.send(0, MARKS, {job: mark[0] for job, mark in self._marks.copy().items()})

    def send(self, job: int, what: int, answer: Any) -> None:
        """Send an answer, from any thread."""
        data = marshal.dumps(answer)
        view = memoryview(ANSWER.pack(len(data), job, what) + data)
        with self._sending:
            while view:
                try:
                    view = view[os.write(self._sink, view) :]
                except BrokenPipeError:
                    os._exit(0)

    # ---- folders -----------------------------------------------------------------------------------------------

    def _grant(self, job: int, parts: int) -> None:
        """Let a folder send more parts; less than none: drop it."""
        with self._granted:
            if job in self._credit:
                self._credit[job] = -1 if parts < 0 else self._credit[job] + parts
                self._granted.notify_all()

    def _take_credit(self, job: int) -> None:
        """Wait until a part may be sent, so that nobody has to hold a folder of millions."""
        with self._granted:
            while not self._credit[job]:
                self._granted.wait()
            if self._credit[job] < 0:
                raise DroppedError
            self._credit[job] -= 1

    def _folder(
        self, job: int, mark: list[int], root: bytes, inside: bytes, options: Options, skip: int, stamp: int
    ) -> None:
        """Walk one folder, `inside` a root.

        MORE is (items, skipped, position, stamp); DONE (items marshalled on their own, for later, skipped,
        errno, names of its sub-folders). With `skip` a helper before us got that far, when the folder had changed last
        at `stamp`.
        """
        folders: list[bytes] = []
        items: list[Any] = []
        skipped = problem = 0

        def part(items: list[Any], skipped: int, position: int) -> None:
            self._take_credit(job)
            self.send(job, MORE, (items, skipped, position, changed))

        try:
            fd = open_folder(root, inside)
            try:
                info = os.fstat(fd)
                changed = info.st_mtime_ns
                if info.st_dev != options[0]:
                    skipped = int(owns(info.st_ino, options[4]))  # another file system is mounted here
                else:
                    items, skipped, problem = scan(
                        fd, inside, options, folders, skip, mark, part, guarded=self._guarded
                    )
                    if skip and changed != stamp:
                        problem = problem or errno.ESTALE  # what was skipped may not be what had been read
            finally:
                os.close(fd)
            if items:
                self._take_credit(job)
        except OSError as error:
            problem = error.errno or errno.EIO
        except DroppedError:
            return
        finally:
            del self._credit[job]
        folders.sort()
        self.send(job, DONE, (marshal.dumps(items) if items else b"", skipped, problem, folders))

    # ---- names -------------------------------------------------------------------------------------------------

    def _list(self, job: int, mark: list[int], paths: list[bytes], options: Options) -> None:
        """Look up listed files, each as `listed` tells it."""
        takes, drops = filters(options)
        answers: list[Any] = []
        for path in paths:
            answers.append(listed(path, takes, drops, options, guarded=self._guarded))
            mark[0] += 1
        self.send(job, DONE, answers)

    def _stat(self, job: int, mark: list[int], paths: list[bytes]) -> None:
        answers: list[Any] = []
        for path in paths:
            info = look(path)
            answers.append(info if isinstance(info, int) else (info.st_dev, info.st_ino, info.st_size, info.st_blocks))
            mark[0] += 1
        self.send(job, DONE, answers)

    def _resolve(self, job: int, _mark: list[int], path: bytes) -> None:
        try:
            real = b"/" + os.path.realpath(path, strict=True).lstrip(b"/")
            info = os.lstat(real)
        except (OSError, ValueError) as error:
            self.send(job, DONE, getattr(error, "errno", None) or errno.EINVAL)
        else:
            self.send(job, DONE, (real, info.st_mode, info.st_dev))


def open_folder(root: bytes, inside: bytes) -> int:
    """Open a folder below `root`, one part of its path after the other: no symlink is followed, wherever it came up.

    All but the last are opened with O_PATH, which asks no server for an open.
    """
    if not inside:
        return os.open(root, os.O_RDONLY | _FOLDER)
    above, _, name = inside.rpartition(b"/")
    fd = os.open(root, os.O_PATH | _FOLDER)
    try:
        if above:
            for part in above.split(b"/"):
                below = os.open(part, os.O_PATH | _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
        return os.open(name, os.O_RDONLY | _FOLDER, dir_fd=fd)
    finally:
        os.close(fd)


def filters(options: Options) -> tuple[Question, Question]:
    """Return the questions "is it taken?" and "is it dropped?" for a relative path."""
    _, include, exclude, _, _ = options
    return re.compile(include or "", re.DOTALL).match, re.compile(exclude or "(?!)", re.DOTALL).match


def owns(ino: int, share: Share) -> bool:
    """Whether a file is one of that shard's: the rule of `fsxwarm.model.shard`, which is not imported here."""
    return share is None or ((ino ^ ino >> 32) * 0x9E3779B97F4A7C15 >> 32 & 0xFFFFFFFF) % share[1] == share[0] - 1


def record(info: os.stat_result) -> tuple[int, ...]:
    """What an `Entry` needs of a stat, in its order."""
    return (
        info.st_dev, info.st_ino, info.st_size, info.st_blocks,
        int(info.st_mtime), int(info.st_atime), int(info.st_ctime), info.st_nlink, info.st_uid, info.st_mode,
    )  # fmt: skip


def look(path: bytes) -> os.stat_result | int:
    """Stat a path without following a symlink at its end; an errno if that fails."""
    try:
        return os.lstat(path)
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:  # a NUL in it
        return errno.EINVAL


def listed(
    path: bytes, takes: Question, drops: Question, options: Options, *, guarded: bool = False
) -> tuple[int, ...] | int:
    """Say what a listed path is: its record, or (size,) if proven resident; an errno; UNWANTED, LINK or IRREGULAR."""
    info = look(path)
    if isinstance(info, int):
        return info
    if stat.S_ISDIR(info.st_mode):
        return errno.EISDIR
    mine = owns(info.st_ino, options[4])
    name = os.fsdecode(path).lstrip("/")
    if not mine or drops(name) or not takes(name):
        return UNWANTED
    if not stat.S_ISREG(info.st_mode):
        return LINK if stat.S_ISLNK(info.st_mode) else IRREGULAR
    resident = info.st_blocks > 1 and info.st_nlink == 1 and info.st_size and not options[3]
    if resident:
        return (info.st_size,)
    return readable_record(path) if guarded else record(info)


def readable_record(path: bytes) -> tuple[int, ...] | int:
    """Return the record of a file that this process may read, or the errno that says why there is none."""
    try:
        return record(readable(path))
    except OSError as error:
        return error.errno or errno.EIO


def readable(path: bytes | str, folder: int | None = None) -> os.stat_result:
    """Stat a regular file (a path, or a name in `folder`) that this process may read; OSError says why not.

    It is opened by name alone, which asks for no rights on it and cannot wait or wake anything. Both the stat and the
    question whether it may be read are then about that one file, whatever its name comes to mean meanwhile.
    """
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        if not os.access(f"/proc/self/fd/{fd}", os.R_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return info
    finally:
        os.close(fd)


def scan(  # noqa: C901, PLR0912 - the one hot loop
    fd: int,
    inside: bytes,
    options: Options,
    folders: list[bytes],
    skip: int,
    mark: list[int],
    send: Send,
    *,
    guarded: bool = False,
) -> tuple[list[Any], int, int]:
    """Read a folder in its own order, which Lustre's statahead follows.

    Hands (items, skipped, position) to `send` part by part, and returns (items, skipped, errno) of the rest. An item is
    (name, *record); or (files, bytes) for a run of files whose stat alone proves them resident; or (name, errno). The
    first `skip` names were dealt with before. What is another shard's is passed over without a stat: folders list inode
    numbers. Sub-folders are added to `folders`. With `guarded` a file that this
    process may not read is an error of its own, unless its stat proves it resident.
    """
    dev, include, exclude, whole, share = options
    filtered = include is not None or exclude is not None
    takes, drops = filters(options)
    prefix = os.fsdecode(inside) + "/" if inside else ""
    items: list[Any] = []
    position = skipped = files = size = problem = 0
    due = skip + _LONG
    try:
        with os.scandir(fd) as names:
            for entry in names:
                if len(items) >= _PART or position >= due:
                    if files:
                        items.append((files, size))
                        files = size = 0
                    send(items, skipped, position)
                    items, skipped, due = [], 0, position + _LONG
                position += 1
                mark[0] = position
                try:
                    if not entry.is_file(follow_symlinks=False):
                        if not entry.is_dir(follow_symlinks=False):
                            skipped += position > skip and owns(entry.inode(), share)
                        elif not filtered or not drops(prefix + entry.name):
                            folders.append(os.fsencode(entry.name))
                        continue
                    if position <= skip or not owns(entry.inode(), share):
                        continue
                    if filtered and (drops(prefix + entry.name) or not takes(prefix + entry.name)):
                        continue
                    info = entry.stat(follow_symlinks=False)
                    if guarded and (whole or info.st_blocks <= 1 or info.st_nlink > 1 or not info.st_size):
                        info = readable(entry.name, fd)
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        items.append((os.fsencode(entry.name), error.errno or errno.EIO))
                    continue
                if info.st_dev != dev or not stat.S_ISREG(info.st_mode):
                    skipped += 1
                elif info.st_blocks > 1 and info.st_nlink == 1 and info.st_size and not whole:
                    files += 1
                    size += info.st_size
                else:
                    if files:
                        items.append((files, size))
                        files = size = 0
                    items.append((os.fsencode(entry.name), *record(info)))
    except OSError as error:
        problem = error.errno or errno.EIO
    if files:
        items.append((files, size))
    return items, skipped, problem


def take_rights(uid: int, gid: int, *groups: int) -> None:
    """Become another user for good. Done here, for that user may have no right to the interpreter's own files."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def give_up(args: threading.ExceptHookArgs) -> None:
    """End the process over an error that nobody foresaw in a thread: its jobs are then done by another."""
    sys.excepthook(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    os._exit(1)


def main(kind: Callable[..., Helper] = Helper) -> NoReturn:
    """Serve the process that started us: `helper.py BEAT [UID GID [GROUP…]]`; with somebody's rights, guarded."""
    threading.excepthook = give_up
    rights = [int(number) for number in sys.argv[2:]]
    if rights:
        take_rights(*rights)
    kind(0, 1, float(sys.argv[1]), guarded=bool(rights)).serve()


if __name__ == "__main__":
    main()
