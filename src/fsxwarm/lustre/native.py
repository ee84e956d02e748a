"""Lustre's HSM without a process a call: ioctls in helper processes, which may hang without taking anything else down.

Looks and requests have helpers of their own. A look that hangs costs its helper; a request that hangs (a second one for
a file in flight does so up to 2.15, until that restore ends) only its thread: its end still tells something.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre import abi
from fsxwarm.lustre.jobs import Job, Names
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.mounts import read_mounts
from fsxwarm.lustre.pool import Pool, Rights
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.filesystems import is_lustre_client
from fsxwarm.model.hsm import IDLE, MAX_REQUEST, Action, Flags, Verb
from fsxwarm.ports.hsm import CallHungError, Reply, Space

if TYPE_CHECKING:
    from fsxwarm.lustre.native_calls import Named

T = TypeVar("T")

_PROGRAM: Final = str(Path(__file__).with_name("native_helper.py"))

_LOOK: Final = 50
"""Files that one thread of a helper looks at before it answers."""
_REQUESTS: Final = 8
"""Requests under way at a time, those that hang not counted."""
_LOST: Final = (errno.EIO, "the process that sent the request ended before the answer came")
_VERBS: Final = {
    10: Verb.ARCHIVE,
    abi.RESTORE: Verb.RESTORE,
    abi.RELEASE: Verb.RELEASE,
    13: Verb.REMOVE,
    abi.CANCEL: Verb.CANCEL,
}
"""`enum hsm_user_action`; 1 is NONE."""
_NAMES: Final = {abi.RESTORE: "hsm_restore", abi.RELEASE: "hsm_release", abi.CANCEL: "hsm_cancel"}


class NativeHsm:
    """Implements `fsxwarm.ports.hsm.Hsm`. What is asked once a run (space, version) is left to `lfs`.

    `mounts` is the mount table's file; `deadline` in seconds, per call; `environ` is the helpers' (None: ours), and
    `rights` whose rights they have (None: our own; others only as root). With `max_hanging` looks or requests that
    hang, calls raise FsxwarmError HUNG.

    Requests are always held to their `keys`, looks from Linux 5.14 on: before, a look takes a name for what it means.
    """

    def __init__(
        self,
        lfs: LfsHsm,
        mounts: str = "/proc/self/mounts",
        *,
        helpers: int = 2,
        lookups: int = 8,
        deadline: float = 60.0,
        max_hanging: int = 4,
        environ: Mapping[str, str] | None = None,
        rights: Rights | None = None,
    ) -> None:
        self._lfs = lfs
        self._mounts = mounts
        self._deadline = deadline
        self._max_hanging = max_hanging
        start: dict[str, Any] = {"rights": rights, "environ": environ, "program": _PROGRAM}
        self._looking = Pool(helpers, lookups, deadline, max_hanging, **start)
        self._asking = Pool(1, _REQUESTS + max_hanging, deadline, max_hanging, **start)
        self._places = asyncio.Semaphore(_REQUESTS)
        self._replies: set[asyncio.Future[Reply]] = set()
        self._hanging: set[asyncio.Future[Reply]] = set()

    @property
    def abandoned(self) -> int:
        """How many calls hang in the kernel right now, abandoned; those of `lfs` are counted by whoever made it."""
        return self._looking.abandoned + self._asking.abandoned + len(self._hanging)

    async def close(self) -> None:
        """End the helpers; what hangs in the kernel is left to it. `lfs` is closed by whoever made it."""
        replies = tuple(self._replies)
        for reply in replies:
            reply.cancel()
        await asyncio.gather(*replies, return_exceptions=True)
        await asyncio.gather(self._looking.close(), self._asking.close())

    async def probe(self, mount: bytes) -> str:
        """Find out whether native calls work on a mount; returns why not, or nothing. Raises FsxwarmError HUNG."""
        answer = await (await self._looking.give(Job("probe", mount))).answer()
        return answer if isinstance(answer, str) else f"{os.fsdecode(mount)}: {os.strerror(answer)}"

    # ---- looking -----------------------------------------------------------------------------------------------

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port. A symlink is ELOOP."""
        return await self._look("states", paths, Flags, keys=keys)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port. A symlink is ELOOP."""
        return await self._look("actions", paths, _action, keys=keys)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """See the port: the layout tells, which needs no rights on the file."""
        return await self._look("released", paths, bool)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """See the port."""
        bit = int(Flags.NORELEASE)
        return await self._look("pin", paths, _nothing, bit if on else 0, 0 if on else bit)

    async def _look(
        self, kind: str, paths: Sequence[bytes], read: Callable[..., T], *more: Any, keys: Sequence[Key] = ()
    ) -> list[T | Trouble]:
        names = _named(paths, keys)
        parts = [names[start : start + _LOOK] for start in range(0, len(names), _LOOK)]
        jobs = [await self._looking.give(Names(kind, part, *more)) for part in parts]
        answers = [answer for job in jobs for answer in await job.answer()]
        return [
            Trouble(path, answer, os.strerror(answer)) if isinstance(answer, int) else read(*answer)
            for path, answer in zip(paths, answers, strict=True)
        ]

    # ---- asking ------------------------------------------------------------------------------------------------

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(abi.RESTORE, paths, keys)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(abi.CANCEL, paths, keys)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(abi.RELEASE, paths, keys)

    async def _request(self, action: int, paths: Sequence[bytes], keys: Sequence[Key]) -> Reply:
        if len(paths) > MAX_REQUEST:
            return Reply(errno.E2BIG, f"{len(paths)} files in one request; at most {MAX_REQUEST} are taken")
        if not paths:
            return Reply(0)
        async with self._places:
            if len(self._hanging) >= self._max_hanging:
                hung = len(self._hanging)
                raise FsxwarmError(Kind.HUNG, f"{hung} requests hang in the kernel", hung=hung)
            reply = asyncio.ensure_future(self._send(action, _named(paths, keys)))
            self._replies.add(reply)
            reply.add_done_callback(self._answered)
            try:
                async with asyncio.timeout(self._deadline):
                    return await asyncio.shield(reply)
            except TimeoutError:
                self._hanging.add(reply)
                reply.add_done_callback(self._hanging.discard)
                raise CallHungError(_NAMES[action], self._deadline, asyncio.shield(reply)) from None

    def _answered(self, reply: asyncio.Future[Reply]) -> None:
        self._replies.discard(reply)
        if not reply.cancelled():
            reply.exception()  # whoever asked may be gone

    async def _send(self, action: int, names: list[Named]) -> Reply:
        job = _Request("request", names, action, self._lustre_mounts(), once=_LOST)
        return Reply(*await (await self._asking.give(job)).answer())

    def _lustre_mounts(self) -> list[bytes]:
        table = read_mounts(self._mounts)
        return [mount.path for mount in table if is_lustre_client(mount.fstype, mount.source)]

    # ---- left to lfs -------------------------------------------------------------------------------------------

    async def space(self, mount: bytes) -> Space | Trouble:
        """See the port."""
        return await self._lfs.space(mount)

    async def version(self) -> tuple[int, ...] | Trouble:
        """See the port."""
        return await self._lfs.version()


class _Request(Job):
    """A request: its helper is never given up for it, however long it hangs."""

    @property
    def waited_for(self) -> bool:
        """See `Work`."""
        return False


def _named(paths: Sequence[bytes], keys: Sequence[Key]) -> list[Named]:
    """Paths with their keys, as helpers take them."""
    if not keys:
        return [(path, None) for path in paths]
    return [(path, (key.dev, key.ino)) for path, key in zip(paths, keys, strict=True)]


def _action(number: int, running: bool, moved: int) -> Action:  # noqa: FBT001 - the fields of abi.Progress
    verb = _VERBS.get(number, Verb.NONE)
    return IDLE if verb is Verb.NONE else Action(verb, running, moved)


def _nothing() -> None:
    return None
