"""The wiring: adapters and settings become one thing that commands run in."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from fsxwarm.aws.calls import Calls
from fsxwarm.aws.cloud import AwsCloud
from fsxwarm.aws.logs import CloudWatchLog
from fsxwarm.config import Backend, Settings
from fsxwarm.engine.addresses import Addresses
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.files import read_whole
from fsxwarm.lustre.backend import ChosenHsm
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.mounts import Mount, read_mounts
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.association import parse_source
from fsxwarm.model.entry import Trouble
from fsxwarm.model.filesystems import is_lustre_client
from fsxwarm.model.shard import WHOLE, Shard
from fsxwarm.ports.cloud import Cloud
from fsxwarm.ports.restore_log import RestoreLog
from fsxwarm.ports.tree import Tree

if TYPE_CHECKING:
    from fsxwarm.model.measures import CallTally
    from fsxwarm.model.policy import Policy

T = TypeVar("T")

_STAT_SETTLES: Final = (2, 15)
"""Clients from this version answer the stat of a file in flight from a cached lock (measured); older ones may block."""
_TOGETHER: Final = {Backend.AUTO: 50, Backend.NATIVE: 50, Backend.LFS: 500}
"""Native calls cost the same in any company; of `lfs` each costs a process. Which of them AUTO takes is not asked here:
that would try the first mount there is, which may be dead and nobody's matter."""


@dataclass(frozen=True, slots=True)
class Aws:
    """AWS as a command works with it. Nothing is asked, and no boto3 imported, before the first call."""

    cloud: Cloud
    log: RestoreLog
    atlas: Atlas
    tally: Callable[[], CallTally]


@dataclass(frozen=True, slots=True)
class App:
    """What a command works with."""

    settings: Settings
    tree: Tree
    hsm: ChosenHsm
    aws: Aws

    def lustre_mounts(self) -> list[bytes]:
        """Mount points of Lustre clients, in the order of mounting."""
        return [mount.path for mount in _clients(self.settings)]

    async def server_version(self, source: str) -> tuple[int, ...] | Trouble:
        """The oldest version among the metadata servers of a mount's source; a Trouble tells why it is unknown."""
        from fsxwarm.lustre.servers import server_version  # noqa: PLC0415 - only what warms needs it

        found = parse_source(source)
        if found is None:
            return Trouble(b"", errno.EINVAL, f"{source} names no file system")
        return await server_version(found.name, self.settings.connections, os.environ)

    async def policy(
        self, *, window: int | None = None, attempts: int | None = None, shard: Shard | None = None
    ) -> Policy:
        """How files are warmed here; a `window` or `attempts` of the caller's takes the place of the settings'.

        A `shard` has its part of all windows: what they may be is for all shards together.
        """
        from fsxwarm.model.policy import Policy, WindowPolicy  # noqa: PLC0415 - only what warms needs it

        settings = self.settings
        part = (shard or WHOLE).part
        version = await self.hsm.version()
        epoch = time.time() - asyncio.get_running_loop().time()
        return Policy(
            WindowPolicy(
                part(settings.window_start),
                part(settings.window_floor),
                part(settings.window_ceiling),
                None if window is None else part(window),
                epoch,
            ),
            attempts=settings.attempts if attempts is None else attempts,
            skip_duplicates=await self.skipping(),
            stat_settles=not isinstance(version, Trouble) and version >= _STAT_SETTLES,
            may_cancel=os.geteuid() == 0,
            together=_TOGETHER[settings.backend if self.hsm.choice is None else self.hsm.choice.backend],
        )

    async def skipping(self) -> frozenset[int]:
        """Find the file systems (st_dev) of which it is known right now that all their servers skip duplicates."""
        from fsxwarm.model.policy import SKIPS_DUPLICATES  # noqa: PLC0415 - only what warms needs it

        devs = set()
        for mount in _clients(self.settings):
            version = await self.server_version(mount.source)
            if isinstance(version, Trouble) or version < SKIPS_DUPLICATES:
                continue
            place = await self.tree.resolve(mount.path)
            if not isinstance(place, Trouble) and place.source == mount.source:
                devs.add(place.dev)
        return frozenset(devs)

    def new_atlas(self) -> Atlas:
        """A map of the mounts that there are now, for what runs longer than a command."""
        return Atlas(self.aws.cloud, _mounted(self.settings))

    @property
    def addresses(self) -> Addresses:
        """What S3 addresses mean on this machine."""
        return self.aws.atlas


def open_aws(settings: Settings, say: Callable[[str], None]) -> Aws:
    """AWS, in the region of the first FSx mount; `say` is told when credentials have expired, and are renewed."""
    mounts = _mounted(settings)
    sources = [source for mount in mounts if (source := parse_source(mount.source)) is not None]
    named = next((source.region for source in sources if source.region), "")
    calls = Calls(say, region=named or os.environ.get("AWS_REGION", ""))  # which boto3 does not read
    cloud = AwsCloud(calls)
    return Aws(cloud, CloudWatchLog(calls), Atlas(cloud, mounts), calls.counter.tally)


def _mounted(settings: Settings) -> list[Mounted]:
    return [Mounted(mount.path, mount.source) for mount in _clients(settings)]


def _clients(settings: Settings) -> list[Mount]:
    return [mount for mount in read_mounts(settings.mounts) if is_lustre_client(mount.fstype, mount.source)]


def run_app(settings: Settings, work: Callable[[App], Awaitable[T]], say: Callable[[str], None]) -> T:
    """Run `work` on an event loop with an open app; returns what it returns. `say` tells the user a line meanwhile.

    SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) cancel it: it may handle the cancellation and
    return, or let it pass, which raises FsxwarmError INTERRUPTED.
    """
    use_pidfd()
    came_of_it: list[T] = []

    async def kept() -> None:
        came_of_it.append(await _run(settings, work, say))

    try:
        asyncio.run(kept())
    except RuntimeError:
        # To wait for its other threads, asyncio starts one more: where memory is scarce all may be done but that.
        if not came_of_it:
            raise
    return came_of_it[0]


async def _run(settings: Settings, work: Callable[[App], Awaitable[T]], say: Callable[[str], None]) -> T:
    task = asyncio.ensure_future(_with_app(settings, work, say))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, _hang_up, task)
    try:
        return await task
    except asyncio.CancelledError:
        raise FsxwarmError(Kind.INTERRUPTED, "interrupted") from None


def _hang_up(task: asyncio.Future[T]) -> None:
    """Cancel once: a terminal that closes may send SIGHUP twice, by the shell and by the kernel."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: None)
    task.cancel()


async def _with_app(settings: Settings, work: Callable[[App], Awaitable[T]], say: Callable[[str], None]) -> T:
    async with open_app(settings, say) as app:
        return await work(app)


@asynccontextmanager
async def open_app(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[App]:
    """Wire an app; close it at the end, whatever happens. What hangs in the kernel is left to it."""
    _must_be_readable(settings.mounts)
    lfs = LfsHsm(Children(settings.lfs, os.environ, parallel=settings.lfs_parallel, deadline=settings.call_deadline))
    native = NativeHsm(lfs, settings.mounts, helpers=settings.helpers, deadline=settings.call_deadline)
    hsm = ChosenHsm(settings.backend, native, lfs, settings.mounts)
    tree = HelperTree(mounts=settings.mounts, helpers=settings.helpers, deadline=settings.call_deadline)
    try:
        yield App(settings, tree, hsm, open_aws(settings, say))
    finally:
        await hsm.close()
        await tree.close()


def _must_be_readable(table: str) -> None:
    """FsxwarmError USAGE for a mount table that somebody named and that cannot be read: it would just add nothing."""
    try:
        read_whole(table)
    except OSError as error:
        hint = "name another (FSXWARM_MOUNTS, or mounts of [warming]), or none"
        raise FsxwarmError(Kind.USAGE, f"cannot read the mount table {table}: {error.strerror}", hint=hint) from None


def use_pidfd() -> None:
    """Watch children through pidfds, which 3.12 does by itself: four times faster than a thread a child."""
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError:  # a kernel before 5.3, or a sandbox
            return
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
