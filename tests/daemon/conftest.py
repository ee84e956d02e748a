"""The daemon's face over a core on paper, in the test's own event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.core import PaperCore, PaperWorld, resolve_on_paper
from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.api import Api, Quota
from fsxwarm.daemon.gate import GateLimits
from fsxwarm.daemon.listening import bind
from fsxwarm.daemon.server import Server
from fsxwarm.daemon.slurm import SlurmRules, World

USERS, ADMINS = 70_001, 70_002
"""Groups that no machine has."""


@dataclass
class Face:
    """A face that answers at `path`."""

    path: str
    core: PaperCore
    api: Api
    server: Server


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    circle: Circle | None = None,
    patience: float = 20.0,
    connections: int = 4000,
    connections_each: int = 1500,
    request_size: int = 1 << 20,
    quota: Quota | None = None,
    rules: SlurmRules | None = None,
    world: World | None = None,
) -> AsyncIterator[Face]:
    """A face on a socket in `folder`."""
    core = PaperCore()
    quota = quota or Quota(open_jobs=50, queued_files=1000, leases=3)
    api = Api(core, resolve_on_paper, quota, world or PaperWorld(), rules or SlurmRules(), core.wall)
    limits = GateLimits(connections, connections_each, patience)
    server = Server(api, circle or Circle(os.geteuid(), USERS, ADMINS), limits, request_size)
    path = str(folder / "fsxwarm.sock")
    sock = bind(path, USERS if os.geteuid() == 0 else None)
    await server.start(sock)
    try:
        yield Face(path, core, api, server)
    finally:
        await core.drain()
        await server.close()


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Face]:
    """A face whose caller is its own user: an administrator."""
    async with serving(tmp_path) as one:
        yield one
