"""The daemon's core as a process that can be killed: `core.py STATE MOUNT JOBS` over whatever `lfs` is in PATH.

It keeps at it until JOBS jobs have been submitted and all have ended. It says `ready` when it has begun, `submitted N`
after each submission, and at the end one line of JSON for each job.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict

from fsxwarm.app import open_aws
from fsxwarm.config import Settings
from fsxwarm.engine.archive import Archive
from fsxwarm.engine.means import Means
from fsxwarm.engine.service import Service, ServicePlan
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.job import ROOT, Identity, JobRequest, Kind
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree
from fsxwarm.store.sqlite import SqliteStore


class OneForAll:
    """Access that hands out the same ports to everybody: whose rights apply is no matter here."""

    def __init__(self, tree: Tree, hsm: Hsm) -> None:
        self._tree, self._hsm = tree, hsm

    def tree(self, _: Identity) -> Tree:
        return self._tree

    def hsm(self, _: Identity) -> Hsm:
        return self._hsm


def wish(number: int, mount: bytes, folders: list[bytes]) -> JobRequest:
    """Job number N: all of the tree, or one of its folders, for one of three users, hurried or not."""
    path = mount if number % 3 == 0 else mount + b"/" + folders[number % len(folders)]
    identity = ROOT if number % 3 == 2 else Identity(1000 + number % 3, (100,))
    return JobRequest(Kind.PRELOAD, identity, (path,), priority=10 * (number % 11), label=f"job {number}")


async def main(state: str, mount: bytes, jobs: int) -> None:
    settings = Settings.from_environ(os.environ)
    hsm = LfsHsm(Children(settings.lfs, os.environ))
    tree = HelperTree(mounts=settings.mounts, helpers=1)
    store = await SqliteStore.open(state)
    folders = sorted(entry.name for entry in os.scandir(mount) if entry.is_dir())
    plan = ServicePlan(Policy(WindowPolicy(start=16)))
    aws = open_aws(settings, print)
    archive = Archive(lambda: aws.atlas, aws.log, print)
    means = Means(tree, hsm, OneForAll(tree, hsm), store, archive, time.time)
    try:
        async with Service(means, plan) as service:
            print("ready", flush=True)
            running = asyncio.ensure_future(service.run())
            known = {view.job.request.label for view in service.jobs()}
            for number in range(jobs):
                request = wish(number, mount, folders)
                if request.label not in known:
                    job = await service.submit(request)
                    print(f"submitted {job.id}", flush=True)
                    await asyncio.sleep(0.3)
            for view in service.jobs():
                while not (await service.wait(view.job.id, 10.0)).job.phase.final:
                    if running.done():
                        await running
            for view in service.jobs():
                answer = {
                    "id": view.job.id,
                    "phase": view.job.phase,
                    "exit": view.job.exit,
                    "resumed": view.job.resumed,
                }
                print(json.dumps({**answer, **asdict(view.counters)}), flush=True)
            running.cancel()
    finally:
        await store.close()
        await hsm.close()
        await tree.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.fsencode(sys.argv[2]), int(sys.argv[3])))
