"""From the configuration to what the daemon is made of."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from fsxwarm.app import open_app
from fsxwarm.configfile import Config
from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.api import Api, Quota
from fsxwarm.daemon.chronicle import Chronicle
from fsxwarm.daemon.gate import GateLimits
from fsxwarm.daemon.logs import log, writes
from fsxwarm.daemon.munge import Munge
from fsxwarm.daemon.people import uids_of
from fsxwarm.daemon.remote import Remote
from fsxwarm.daemon.server import Server
from fsxwarm.daemon.slurm import SlurmRules
from fsxwarm.daemon.vocabulary import Line
from fsxwarm.engine.addresses import Addresses
from fsxwarm.engine.archive import Archive
from fsxwarm.engine.means import Means
from fsxwarm.engine.plan import KeepWarm, Marks, ServicePlan
from fsxwarm.engine.service import Service
from fsxwarm.engine.surroundings import Surroundings
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.access import LustreAccess
from fsxwarm.model.entry import Trouble
from fsxwarm.model.job import Identity
from fsxwarm.model.policy import Policy
from fsxwarm.ports.tree import Place
from fsxwarm.store.sqlite import SqliteStore

_LOOK_BATCH: Final = 200
"""Files of one look: what it tells is taken in at a stretch, and clients wait for so long."""
_AFTER_RESTART: Final = (
    "daemon.socket", "daemon.state", "metrics.listen", "remote",
    "warming.backend", "warming.lfs", "warming.mounts", "warming.connections", "warming.lfs_parallel",
    "warming.call_deadline", "warming.helpers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Core:
    """What the face works with."""

    service: Service
    access: LustreAccess
    chronicle: Chronicle
    addresses: Callable[[], Addresses]
    """What S3 addresses mean on this machine, asked anew each time it is called."""

    async def resolve(self, path: bytes, identity: Identity) -> Place | Trouble:
        """What a path is, with somebody's rights."""
        return await self.access.tree(identity).resolve(path)


@asynccontextmanager
async def open_core(config: Config, environ: Mapping[str, str]) -> AsyncIterator[Core]:
    """Open the store, the adapters and the service; close them in the other order."""
    _make_state(config.daemon.state)
    async with open_app(config.warming, _notice) as app:
        access = LustreAccess(app.tree, app.hsm, config.warming, environ)
        store = await SqliteStore.open(str(Path(config.daemon.state) / "jobs.sqlite"))
        try:
            policy = await app.policy()
            plan = plan_of(config, policy)
            chronicle = Chronicle(log, time.monotonic, writes)
            archive = Archive(app.new_atlas, app.aws.log, _notice)
            means = Means(app.tree, app.hsm, access, store, archive, time.time, app.skipping)
            around = Surroundings(app.lustre_mounts, lambda: archive.atlas, app.aws.tally, lambda: access.abandoned)
            service = Service(means, plan, hears=chronicle.hear, wants=chronicle.wants, around=around)
            chronicle.view = service.job
            async with service:
                yield Core(service, access, chronicle, app.new_atlas)
        finally:
            await store.close()
            await access.close()


def _notice(message: str) -> None:
    log(Line.NOTICE, message=message)


def plan_of(config: Config, policy: Policy) -> ServicePlan:
    """What the service does of its own accord; `policy` says of warming what is no matter of the configuration."""
    warming = config.warming
    bounds = {"start": warming.window_start, "floor": warming.window_floor, "ceiling": warming.window_ceiling}
    window = replace(policy.window, **bounds)
    return ServicePlan(
        policy=replace(policy, window=window, attempts=warming.attempts, look_batch=_LOOK_BATCH),
        reserve=config.warming.reserve,
        keep_warm=tuple(KeepWarm(tuple(map(os.fsencode, one.paths)), one.every) for one in config.keep_warm),
        make_room=tuple(
            Marks(os.fsencode(one.mount), one.low_free, one.high_free, one.dry_run, config.warming.release_unchecked)
            for one in config.make_room
        ),
        inventory=tuple(map(os.fsencode, config.inventory.paths)),
        inventory_linked=config.inventory.associations,
        inventory_every=config.inventory.every,
        inventory_rate=config.inventory.rate,
    )


def after_restart(config: Config, running: Config) -> list[str]:
    """Which keys have values that are not `running`, and cannot hold before the next start."""
    return [key for key in _AFTER_RESTART if _value(config, key) != _value(running, key)]


def _value(config: Config, key: str) -> object:
    value: object = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def circle_of(config: Config) -> Circle:
    """Whom the daemon serves."""
    return Circle.of(config.daemon.group, config.daemon.admin_group, uids_of(config.slurm.act_for_others))


def slurm_rules_of(config: Config) -> SlurmRules:
    """How Slurm's jobs are taken on."""
    slurm = config.slurm
    return SlurmRules(uids_of(slurm.act_for_others), slurm.lease, slurm.fresh, slurm.patience)


def remote_of(config: Config, api: Api, server: Server, environ: Mapping[str, str]) -> Remote:
    """What takes requests from other machines. FsxwarmError USAGE unless we are root: nobody else may read them."""
    if os.geteuid() != 0:
        raise FsxwarmError(
            Kind.USAGE, "only root's daemon takes requests from other machines", hint="unset remote.listen"
        )
    networks = [ip_network(one) for one in config.remote.networks]
    munge = Munge(config.remote.munge_socket, environ)
    circle, limits = lambda: server.gate.circle, gate_limits_of(config)
    return Remote(api, circle, limits, networks, munge, time.time, config.limits.request_size)


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
