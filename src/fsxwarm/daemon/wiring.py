"""From the configuration to what the daemon is made of."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from fsxwarm.app import open_app
from fsxwarm.configfile import Config
from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.api import Quota
from fsxwarm.daemon.gate import GateLimits
from fsxwarm.engine.archive import Archive
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import KeepWarm, Marks, ServicePlan
from fsxwarm.engine.service import Service
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.access import LustreAccess
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import Identity
from fsxwarm.model.policy import Policy
from fsxwarm.ports.tree import Place
from fsxwarm.store.sqlite import SqliteStore

_LOG: Final = structlog.get_logger("fsxwarm.daemon")


@dataclass(frozen=True, slots=True)
class Core:
    """What the face works with."""

    service: Service
    access: LustreAccess

    async def resolve(self, path: bytes, identity: Identity) -> Place | Trouble:
        """What a path is, with somebody's rights."""
        return await self.access.tree(identity).resolve(path)


@asynccontextmanager
async def open_core(config: Config, environ: Mapping[str, str]) -> AsyncIterator[Core]:
    """Open the store, the adapters and the service; close them in the other order."""
    _make_state(config.daemon.state)
    async with open_app(config.warming, _LOG.warning) as app:
        access = LustreAccess(app.tree, app.hsm, config.warming, environ)
        store = await SqliteStore.open(str(Path(config.daemon.state) / "jobs.sqlite"))
        try:
            policy = await app.policy()
            plan = plan_of(config, policy)
            archive = Archive(app.new_atlas, app.aws.log, _LOG.warning)
            means = Means(app.tree, app.hsm, access, store, archive, time.time)
            async with Service(means, plan) as service:
                yield Core(service, access)
        finally:
            await store.close()
            await access.close()


def plan_of(config: Config, policy: Policy) -> ServicePlan:
    """What the service does of its own accord."""
    return ServicePlan(
        policy=policy,
        reserve=config.warming.reserve,
        keep_warm=tuple(KeepWarm(tuple(map(os.fsencode, one.paths)), one.every) for one in config.keep_warm),
        make_room=tuple(
            Marks(os.fsencode(one.mount), one.low_free, one.high_free, one.dry_run, config.warming.release_unchecked)
            for one in config.make_room
        ),
        inventory=tuple(map(os.fsencode, config.inventory.paths)),
        inventory_every=config.inventory.every,
        inventory_rate=config.inventory.rate,
    )


def circle_of(config: Config) -> Circle:
    """Whom the daemon serves."""
    return Circle.of(config.daemon.group, config.daemon.admin_group)


def quota_of(config: Config) -> Quota:
    """How much one user may take."""
    limits = config.limits
    return Quota(limits.open_jobs, limits.queued_files, limits.leases)


def gate_limits_of(config: Config) -> GateLimits:
    """How many connections there may be, and how slow."""
    limits = config.limits
    return GateLimits(limits.connections, limits.connections_each, limits.request_time)


def _make_state(folder: str) -> None:
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FsxwarmError(
            Kind.STORE, f"cannot make {folder}: {error.strerror}", hint="make it, or name another (daemon.state)"
        ) from None
