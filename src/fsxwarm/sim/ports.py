"""The ports of fsxwarm over a simulated world, in process, on whatever event loop runs: virtual or real time."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.ports.hsm import CallHungError, Ost, Reply, Space
from fsxwarm.sim import lookup
from fsxwarm.sim.calls import ROOT, Call, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.faults import CallFault
from fsxwarm.sim.inodes import Inode, LustreFile
from fsxwarm.sim.lfs.kernel import Kind
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.tree import SimTree

__all__ = ["SimHsm", "SimTree"]

T = TypeVar("T")
N = TypeVar("N", bound=Inode)

_NOT_A_FILE: Final = 4
"""What `lfs` exits with for an operand that is no regular file: a usage error (measured on 2.15.8)."""
_SERVER_ERRORS: Final = {CallFault.EAGAIN: errno.EAGAIN, CallFault.EIO: errno.EIO}


class SimHsm:
    """The Hsm port for one caller. A call that has not come back after `deadline` seconds is abandoned."""

    def __init__(
        self, clockwork: Clockwork, names: VirtualNamespace, caller: Caller = ROOT, *, deadline: float = 60.0
    ) -> None:
        self._clockwork = clockwork
        self._world = clockwork.world
        self._names = names
        self._caller = caller
        self._deadline = deadline
        self._hanging: set[asyncio.Future[Reply]] = set()
        self._sends_until = 0.0

    @property
    def abandoned(self) -> int:
        """How many calls hang right now, abandoned."""
        return len(self._hanging)

    # ---- looking -----------------------------------------------------------------------------------------------

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port."""
        broken = await self._look("state", paths, self._world.spec.costs.state)
        return [self._ask(path, self._opening(key), self._state, broken) for path, key in _keyed(paths, keys)]

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port."""
        broken = await self._look("action", paths, self._world.spec.costs.action)
        return [self._ask(path, self._opening(key), self._action, broken) for path, key in _keyed(paths, keys)]

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """See the port."""
        broken = await self._look("find", paths, self._world.spec.costs.stat)
        self._world.counts["getattr"] += len(paths)
        return [self._ask(path, self._name, lambda file: file.node.flags.released, broken) for path in paths]

    def _state(self, file: LustreFile) -> Flags:
        return self._world.state(file.fid, self._clockwork.now()).flags

    def _action(self, file: LustreFile) -> Action:
        return self._world.action(file.fid, self._clockwork.now())

    # ---- asking ------------------------------------------------------------------------------------------------

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(Verb.RESTORE, paths, keys)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(Verb.CANCEL, paths, keys)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await self._request(Verb.RELEASE, paths, keys)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """See the port."""
        broken = await self._look("pin", paths, self._world.spec.costs.state)
        bit = int(Flags.NORELEASE)

        def change(file: LustreFile) -> None:
            if not lookup.may(self._caller, file, lookup.WRITE):
                raise lookup.failure(errno.EACCES, b"")
            self._world.change(file.fid, bit if on else 0, 0 if on else bit, 0, self._clockwork.now())

        return [self._ask(path, self._open, change, broken) for path in paths]

    async def space(self, mount: bytes) -> Space | Trouble:
        """See the port."""
        broken = await self._look("space", (), 0.0)
        try:
            if broken:
                raise lookup.failure(broken, mount)
            on = self._names.find(mount, self._caller).mount
        except OSError as error:
            return _trouble(mount, error)
        if on is None:
            return _trouble(mount, lookup.failure(errno.ENOTTY, mount))
        self._world.advance(self._clockwork.now())
        osts = tuple(
            Ost(f"{on.fsname}-OST{number:04x}_UUID", ost.total, max(0, ost.free))
            for number, ost in enumerate(self._world.osts.all)
        )
        return Space(sum(ost.total for ost in osts), sum(ost.free for ost in osts), osts)

    async def version(self) -> tuple[int, ...] | Trouble:
        """See the port."""
        broken = await self._look("version", (), 0.0)
        return _trouble(b"", lookup.failure(broken, b"")) if broken else self._world.spec.version

    # ---- calls -------------------------------------------------------------------------------------------------

    async def _look(self, kind: str, paths: Sequence[bytes], cost: float) -> int:
        """Let the time pass that a call takes, for ever if it hangs; return the errno that it fails with, if any."""
        self._world.counts[f"{kind} calls"] += 1
        fault = self._world.faults.on_call(kind, self._clockwork.now())
        await asyncio.sleep(self._world.spec.costs.process + cost * len(paths))
        if fault in {CallFault.HANG, CallFault.HANG_AFTER}:
            raise await self._hung(kind, self._never())
        searched = self._names.files(paths) if self._world.spec.costs.per_queued or self._world.starved else []
        if searched:
            await self._served(kind, {file.node.mdt for file in searched})
            nodes = (file.node for file in searched)
            await asyncio.sleep(self._world.search_time(nodes, self._clockwork.now(), log=kind == "action"))
        return 0 if fault is None else _SERVER_ERRORS[fault]

    async def _served(self, kind: str, mdts: set[int]) -> None:
        """Wait until metadata targets have a thread for us."""
        for mdt in mdts:
            await self._answered(kind, self._world.admit(mdt, self._clockwork.now()), [b"-"])

    def _ask(
        self, path: bytes, reach: Callable[[bytes], LustreFile], question: Callable[[LustreFile], T], broken: int
    ) -> T | Trouble:
        if broken or self._world.faults.on_call("file", self._clockwork.now()) is CallFault.EIO:
            return _trouble(path, lookup.failure(broken or errno.EIO, path))
        try:
            return question(reach(path))
        except OSError as error:
            return _trouble(path, error)

    def _open(self, path: bytes) -> LustreFile:
        """Open for reading, which follows a link, and ask what only a file on Lustre knows."""
        found = self._names.find(path, self._caller)
        self._world.counts["opens"] += 1
        if not lookup.may(self._caller, found, lookup.READ):
            raise lookup.failure(errno.EACCES, path)
        if not isinstance(found, LustreFile):
            raise lookup.failure(errno.ENOTTY, path)
        return found

    def _opening(self, key: Key | None) -> Callable[[bytes], LustreFile]:
        def reach(path: bytes) -> LustreFile:
            return _same(self._open(path), key, path)

        return reach

    def _name(self, path: bytes) -> LustreFile:
        found = self._names.find(path, self._caller, follow=False)
        if not isinstance(found, LustreFile):
            raise lookup.failure(errno.ENOTTY, path)
        return found

    async def _request(self, verb: Verb, paths: Sequence[bytes], keys: Sequence[Key]) -> Reply:
        """Check every name, then send one request, as `lfs` does."""
        kind = verb.value.lower()
        costs = self._world.spec.costs
        self._world.counts[f"{kind} calls"] += 1
        await asyncio.sleep(costs.process + costs.request * len(paths) + self._queue_here(len(paths)))
        fault = self._world.faults.on_call(kind, self._clockwork.now())
        if fault is CallFault.HANG:
            raise await self._hung(f"hsm_{kind}", self._never())
        files = self._checked(paths, keys)
        if isinstance(files, Reply):
            return files
        if fault in _SERVER_ERRORS:
            return _reply(paths, _SERVER_ERRORS[fault])
        call = self._world.request(verb, [file.fid for file in files], self._caller, self._clockwork.now())
        if fault is CallFault.HANG_AFTER:
            raise await self._hung(f"hsm_{kind}", self._never())
        return await self._answered(f"hsm_{kind}", call, paths)

    async def _answered(self, what: str, call: Call, paths: Sequence[bytes]) -> Reply:
        """Wait for a call to come back; CallHungError if it does not do so in time."""
        if call.errno is not None:
            return _reply(paths, call.errno)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def come_back(problem: int) -> None:
            if not answer.done():
                answer.set_result(_reply(paths, problem))

        call.when_done(come_back)
        await asyncio.wait({answer}, timeout=self._deadline)
        if not answer.done():
            self._hanging.add(answer)
            answer.add_done_callback(self._hanging.discard)
            raise CallHungError(f"lfs {what}", self._deadline, asyncio.shield(answer))
        return answer.result()

    def _queue_here(self, files: int) -> float:
        """Seconds until this client's node gets so many files through (`WorldSpec.client_rate`)."""
        rate = self._world.spec.client_rate
        if rate is None:
            return 0.0
        now = self._clockwork.now()
        self._sends_until = max(now, self._sends_until) + files / rate
        return self._sends_until - now

    def _checked(self, paths: Sequence[bytes], keys: Sequence[Key]) -> Reply | list[LustreFile]:
        """Look up every name of a request; the answer if one keeps it from being sent."""
        files: list[LustreFile] = []
        dev = None
        for path, key in _keyed(paths, keys):
            try:
                found = _same(self._names.find(path, self._caller, follow=False), key, path)
            except OSError as error:
                number = error.errno or errno.EIO
                return Reply(number, f"Cannot stat {_text(path)}: {error.strerror}")
            if found.kind is not Kind.FILE:
                return Reply(_NOT_A_FILE, f'error: "{_text(path)}" is not a regular file')
            if dev is not None and found.dev != dev:
                return Reply(errno.EINVAL, f"All files should be on the same filesystem: {_text(path)}")
            dev = found.dev
            if not isinstance(found, LustreFile):
                return Reply(errno.ENODATA, f"Cannot read FID of {_text(path)}: No data available")
            files.append(found)
        return files

    def _never(self) -> asyncio.Future[Reply]:
        hanging: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._hanging.add(hanging)
        return hanging

    async def _hung(self, what: str, ended: Awaitable[Reply]) -> CallHungError:
        await asyncio.sleep(self._deadline)
        return CallHungError(f"lfs {what}", self._deadline, ended)


def _reply(paths: Sequence[bytes], number: int) -> Reply:
    if not number:
        return Reply(0)
    words = lookup.failure(number, b"").strerror
    return Reply(number, f"Cannot send HSM request (use of {_text(paths[0])}): {words}")


def _keyed(paths: Sequence[bytes], keys: Sequence[Key]) -> Iterator[tuple[bytes, Key | None]]:
    return zip(paths, keys or (None,) * len(paths), strict=True)


def _same(found: N, key: Key | None, path: bytes) -> N:
    if key is not None and (found.dev, found.ino) != key:
        raise lookup.failure(errno.ESTALE, path)
    return found


def _trouble(path: bytes, error: OSError) -> Trouble:
    return Trouble(path, error.errno or errno.EIO, error.strerror or "")


def _text(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
