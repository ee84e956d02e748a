"""One world: files on a simulated FSx, their objects in S3, and what FSx says and logs of both.

The simulated servers look into S3 themselves when they restore: an object in Glacier, without permission or gone makes
the restore fail, and the file system's log say so.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from aws import repository
from aws.fake_endpoint import Account, Json, Released, association
from aws.in_process import InProcess
from aws.machine import Machine
from fsxwarm.sim.facility import DiskFsx
from fsxwarm.sim.faults import Fault
from fsxwarm.sim.nodes import Node

FILES = 300
_DAY = 86400


class World:
    """One world: its root is linked to `s3://data/base`."""

    def __init__(self, account: Account, s3: Any, fsx: InProcess, here: Machine, system: Json) -> None:
        self.account, self.s3, self.here, self.system = account, s3, here, system
        self._fsx = fsx
        account.file_systems = [system]
        account.associations = [association(system["FileSystemId"], "/", "s3://data/base")]
        account.on_release, account.deliver = self._released, self._deliver
        s3.create_bucket(Bucket="data")
        for path in self.files:
            self._put(path)
        fsx.ask(self._watch)

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.here.fsx.mount.rglob("*") if path.is_file())

    def key(self, path: Path) -> str:
        return f"base/{path.relative_to(self.here.fsx.mount)}"

    def archive(self, paths: list[Path], storage_class: str = "GLACIER") -> None:
        for path in paths:
            self._put(path, storage_class)

    def delete(self, paths: list[Path]) -> None:
        for path in paths:
            self.s3.delete_object(Bucket="data", Key=self.key(path))

    def deny(self, paths: list[Path]) -> None:
        self.s3.put_bucket_policy(Bucket="data", Policy=repository.deny("data", [self.key(path) for path in paths]))

    def put_back(self, path: Path) -> None:
        self._put(path)

    def released(self) -> list[Path]:
        """The files that have no data here."""

        def work(servers: DiskFsx) -> list[Path]:
            return [path for path in self.files if servers.seen_at(os.fsencode(path)).flags.released]

        return self._fsx.ask(work)

    def _put(self, path: Path, storage_class: str = "STANDARD") -> None:
        repository.put("data", self.key(path), path.stat().st_size, storage_class)

    def _watch(self, servers: DiskFsx) -> None:
        def key(node: Node) -> str:
            return self.key(Path(os.fsdecode(servers.path_of(node))))

        def rule(node: Node, _: int) -> Fault | None:
            return repository.fault_of("data", key(node))

        def failed(node: Node) -> None:
            if node.failure in {*Fault}:
                self.account.log(self.system["FileSystemId"], repository.sentence(node.failure, "data", key(node)))

        servers.world.faults.restore.append(rule)
        servers.world.on_failed = failed

    def _deliver(self, uri: str, text: str) -> None:
        address = urlparse(uri)
        self.s3.put_object(Bucket=address.netloc, Key=address.path.lstrip("/"), Body=text.encode())

    def _released(self, paths: list[str], days: int) -> Released:
        """What a release task does to files below `paths`, which are relative to the file system's root."""
        folders = [self.here.fsx.mount / path.strip("/") for path in paths]
        inside = [path for path in self.files if any(path.is_relative_to(folder) for folder in folders)]
        limit = time.time() - days * _DAY
        old = [path for path in inside if _last_used(path) < limit]

        def work(servers: DiskFsx) -> Released:
            nodes = [servers.seen_at(os.fsencode(path)) for path in old]
            cold = [node for node in nodes if not node.flags.released]
            count = servers.world.release_task(cold, servers.clock())
            left = [
                str(path.relative_to(self.here.fsx.mount))
                for path, node in zip(old, nodes, strict=True)
                if not node.flags.released
            ]
            return Released(total=len(cold), released=count, failed=left)

        return self._fsx.ask(work)


def reported(report: Path) -> dict[str, tuple[str, str]]:
    """What a report says of each of its files: outcome and reason."""
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return {line["path"]: (line["outcome"], line["reason"]) for line in lines if "path" in line}


def _last_used(path: Path) -> float:
    """Without the ctime, which tests cannot set on the disk."""
    found = path.stat()
    return max(found.st_atime, found.st_mtime)
