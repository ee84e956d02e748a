"""A simulated FSx on a local disk in real time: a world whose files are sparse files, and what remembers them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim import blocks
from fsxwarm.sim.calls import ROOT, Caller
from fsxwarm.sim.clockwork import Clockwork
from fsxwarm.sim.controls import Controls
from fsxwarm.sim.disk import DiskMachine, DiskNode
from fsxwarm.sim.faults import CallFault, Faults
from fsxwarm.sim.layout import FSNAME, INSTANCE, Sizes, fill
from fsxwarm.sim.lfs.kernel import Fid, Mounted, Request
from fsxwarm.sim.metadata import MetadataServers
from fsxwarm.sim.mounted import LustreClient
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.records import Record, Records
from fsxwarm.sim.requests import make_fid
from fsxwarm.sim.server import Control, Server, listen
from fsxwarm.sim.spec import WorldSpec
from fsxwarm.sim.world import World

_FOLDERS: Final = 0x300000007
_BATCH: Final = 50
_GLANCE: Final = 200
"""Files at rest that are looked at in each sweep."""

_SWEEP: Final = 0.5
"""Seconds between looks at the disk for files in flight that vanished, and between writes of what changed."""


class _Seen:
    """A file as it was on the disk when last looked at."""

    __slots__ = ("identity", "kept", "mtime_ns", "node", "path")

    def __init__(self, node: Node, identity: bytes, path: bytes, mtime_ns: int) -> None:
        self.node = node
        self.identity = identity
        self.path = path
        self.mtime_ns = mtime_ns
        self.kept: Record | None = None

    def record(self) -> Record:
        node = self.node
        return Record(
            identity=self.identity,
            path=self.path,
            seq=node.fid.seq,
            oid=node.fid.oid,
            flags=int(node.flags),
            archive_id=node.archive_id,
            size=node.size,
            mtime_ns=self.mtime_ns,
            verb=node.verb.value,
        )


class DiskFsx:
    """Implements `fsxwarm.sim.server.Facility` for the folder `<folder>/mnt`; must be made in a running event loop.

    A file that changed behind the servers' back (size or mtime) counts as written to: dirty if it was archived. A file
    that is gone is noticed within half a second.
    """

    def __init__(self, folder: Path, spec: WorldSpec, faults: Faults) -> None:
        self._loop = asyncio.get_running_loop()
        self.top = os.fsencode(folder / "mnt")
        self.world = World(spec, faults)
        self._by_identity: dict[bytes, _Seen] = {}
        self._by_fid: dict[Fid, _Seen] = {}
        self._hot: set[Fid] = set()
        self._round: list[_Seen] = []
        self._last = 0
        self._records = Records(folder / "state.sqlite")
        self.machine = DiskMachine(Mounted(self.top, FSNAME, INSTANCE), self._fid_of)
        self.servers = MetadataServers(self.world, FSNAME, self._loop.time)
        self.world.on_data = self._data_changed
        self._clockwork = Clockwork(self.world)
        self._load()
        self._sweeper = self._loop.call_soon(self._sweep)

    # ---- what the server asks ----------------------------------------------------------------------------------

    @property
    def version(self) -> tuple[int, ...]:
        """See `Facility`."""
        return self.world.spec.version

    def clock(self) -> float:
        """The world's time, in seconds."""
        return self._loop.time()

    def kernel(self, caller: Caller, cwd: bytes, broken: int) -> LustreClient[DiskNode]:
        """See `Facility`."""
        return LustreClient(self.machine, self.servers, caller, cwd, broken)

    def call_fault(self, kind: str) -> CallFault | None:
        """See `Facility`."""
        return self.world.faults.on_call(kind, self.clock())

    def send(self, request: Request, caller: Caller) -> asyncio.Future[int]:
        """See `Facility`."""
        answer: asyncio.Future[int] = self._loop.create_future()
        # By FID nobody looked the names up: are the files still there?
        asked = [self._by_fid[fid] for fid in request.fids if fid in self._by_fid]
        self._notice_gone(asked)
        self._hot.update(seen.node.fid for seen in asked if seen.node.fid in self._by_fid)

        def come_back(error: int) -> None:
            if not answer.done():
                answer.set_result(error)

        self.servers.send(request, caller).when_done(come_back)
        return answer

    def controls(self) -> Mapping[str, Control]:
        """See `Facility`."""
        return Controls(self).table()

    # ---- files -------------------------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """Whether no file is known yet."""
        return not self._by_fid

    def adopt(self, paths: Iterable[bytes], flags: Flags) -> None:
        """Take files on the disk as being in a state, whatever they were; their blocks follow."""
        adopted = []
        for path in paths:
            found = os.lstat(path)
            identity = blocks.identity(path)
            seen = self._by_identity.get(identity)
            if seen is None:
                fid = self._next_fid(path)
            else:
                fid = seen.node.fid
                self.world.unlink(seen.node, self.clock())
            adopted.append(self._add(fid, identity, path, found, flags))
            self._show(adopted[-1], resident=not flags & Flags.RELEASED)
        self._keep(adopted)

    def seen_at(self, path: bytes) -> Node:
        """The servers' file of a path; KeyError if it is none."""
        return self._by_fid[self._fid_of(path, os.lstat(path))].node

    def path_of(self, node: Node) -> bytes:
        """Where a file of the servers' was last seen; KeyError if it is gone."""
        return self._by_fid[node.fid].path

    def _fid_of(self, path: bytes, found: os.stat_result) -> Fid:
        if not stat.S_ISREG(found.st_mode):
            return Fid(_FOLDERS + (found.st_ino >> 32), found.st_ino & 0xFFFFFFFF)
        identity = blocks.identity(path)
        seen = self._by_identity.get(identity)
        if seen is None:
            seen = self._add(self._next_fid(path), identity, path, found, Flags(0))
            self._keep([seen])
        node = seen.node
        node.uid, node.gid, node.mode = found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
        seen.path = path
        if (found.st_size, found.st_mtime_ns) != (node.size, seen.mtime_ns):
            seen.mtime_ns = found.st_mtime_ns
            self.world.write(node, found.st_size, self.clock())
            self._hot.add(node.fid)
        return node.fid

    def _next_fid(self, path: bytes) -> Fid:
        """Make a FID: files below one folder of the top belong to one metadata target, as on Lustre."""
        self._last += 1
        top = path[len(self.top) + 1 :].partition(b"/")[0]
        return Fid(make_fid(zlib.crc32(top) % self.world.spec.mdts, 0).seq, self._last)

    def _add(self, fid: Fid, identity: bytes, path: bytes, found: os.stat_result, flags: Flags) -> _Seen:
        caller = Caller(found.st_uid, frozenset({found.st_gid}))
        node = self.world.create(found.st_size, flags, caller=caller, mode=stat.S_IMODE(found.st_mode), fid=fid)
        seen = _Seen(node, identity, path, found.st_mtime_ns)
        self._by_identity[identity] = self._by_fid[fid] = seen
        return seen

    def _data_changed(self, node: Node, resident: bool) -> None:  # noqa: FBT001 - the world's callback
        seen = self._by_fid[node.fid]
        if self._lost([seen]):
            self._loop.call_soon(self._gone, seen)
        else:
            self._show(seen, resident=resident)
            self._keep([seen])

    def _show(self, seen: _Seen, *, resident: bool) -> None:
        (blocks.give if resident else blocks.take)(seen.path)

    def _lost(self, files: Iterable[_Seen]) -> list[_Seen]:
        """Find out which files are gone: neither at their old paths nor, after one walk, anywhere in the tree."""
        lost = [seen for seen in files if _identity_at(seen.path) != seen.identity]
        if lost:
            places = self._places()
            for seen in lost:
                seen.path = places.get(seen.identity, seen.path)
            lost = [seen for seen in lost if seen.identity not in places]
        return lost

    def _places(self) -> dict[bytes, bytes]:
        """Walk the tree: identities and where they are."""
        places: dict[bytes, bytes] = {}
        for folder, _, names in os.walk(self.top):
            for name in names:
                path = folder + b"/" + name
                identity = _identity_at(path)
                if identity is not None:
                    places[identity] = path
        return places

    def _notice_gone(self, files: Iterable[_Seen]) -> None:
        for seen in self._lost(files):
            self._gone(seen)

    def _gone(self, seen: _Seen) -> None:
        if self._by_identity.pop(seen.identity, None) is not None:
            self.world.unlink(seen.node, self.clock())
            del self._by_fid[seen.node.fid]
            self._hot.discard(seen.node.fid)
            self._records.forget(seen.identity)

    def _sweep(self) -> None:
        """Notice what vanished, files in flight first of all, and write down what changed."""
        self._notice_gone([self._by_fid[fid] for fid in self._hot])
        self._notice_gone(self._some())
        self._keep(self._by_fid[fid] for fid in self._hot)
        self._hot = {fid for fid in self._hot if self._by_fid[fid].node.verb is not Verb.NONE}
        self._sweeper = self._loop.call_later(_SWEEP, self._sweep)

    def _some(self) -> list[_Seen]:
        """A few files, others each time, round and round."""
        if not self._round:
            self._round = list(self._by_fid.values())
        some, self._round = self._round[:_GLANCE], self._round[_GLANCE:]
        return [seen for seen in some if seen.node.fid in self._by_fid]

    # ---- memory ------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        waiting = []
        places = self._places()
        for record in list(self._records):
            fid = Fid(record.seq, record.oid)
            self._last = max(self._last, fid.oid)
            path = places.get(record.identity)
            if path is None:
                self._records.forget(record.identity)
                continue
            seen = self._add(fid, record.identity, path, os.lstat(path), Flags(record.flags))
            seen.node.archive_id = record.archive_id
            seen.node.size, seen.mtime_ns = record.size, record.mtime_ns
            if record.verb == Verb.RESTORE.value:
                waiting.append(fid)
        for start in range(0, len(waiting), _BATCH):
            self.world.request(Verb.RESTORE, waiting[start : start + _BATCH], ROOT, self.clock())
        self._hot.update(waiting)
        self.world.counts.clear()

    def _keep(self, files: Iterable[_Seen]) -> None:
        changed = []
        for seen in files:
            record = seen.record()
            if record != seen.kept:
                seen.kept = record
                changed.append(record)
        if changed:
            self._records.keep(*changed)

    def close(self) -> None:
        """Write down everything and stop."""
        self._sweeper.cancel()
        self._clockwork.stop()
        self._keep(self._by_fid.values())
        self._records.close()


def _identity_at(path: bytes) -> bytes | None:
    try:
        return blocks.identity(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


async def run_server(
    folder: Path, spec: WorldSpec, faults: Faults, *, files: int, sizes: Sizes, seed: int, listening: Callable[[], None]
) -> None:
    """Serve the simulated FSx in `folder` until SIGINT, SIGTERM or a `shutdown` message.

    If it knows no file yet, `files` released ones are made first. `listening` is called once clients may come.
    """
    with listen(folder) as sock, contextlib.closing(DiskFsx(folder, spec, faults)) as fsx:
        if fsx.empty:
            made = fill(folder / "mnt", files, sizes, seed=seed, now=time.time())
            fsx.adopt((os.fsencode(path) for path in made), Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED)
        server = Server(fsx)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stopped.set)
        await server.serve(sock, listening)
