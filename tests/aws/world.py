"""One world: files on a simulated FSx, their objects in S3, and the file system's log, made to agree."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from aws.fake_endpoint import Account, Json, association
from aws.machine import Machine

FILES = 300


class World:
    """One world: files on the simulated FSx, objects in S3 and FSx's log, made to agree."""

    def __init__(self, account: Account, s3: Any, here: Machine, system: Json) -> None:
        self.account, self.s3, self.here, self.system = account, s3, here, system
        account.file_systems = [system]
        account.associations = [association(system["FileSystemId"], "/", "s3://data/base")]
        s3.create_bucket(Bucket="data")
        for path in self.files:
            s3.put_object(Bucket="data", Key=self.key(path), Body=b"x" * path.stat().st_size)

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.here.fsx.mount.rglob("*") if path.is_file())

    def key(self, path: Path) -> str:
        return f"base/{path.relative_to(self.here.fsx.mount)}"

    def archive(self, paths: list[Path]) -> None:
        for path in paths:
            body = b"x" * path.stat().st_size
            self.s3.put_object(Bucket="data", Key=self.key(path), Body=body, StorageClass="GLACIER")
        self._fail(
            paths,
            "unsupported class",
            "Failed to restore file because S3 object {} in bucket data was in an unsupported GLACIER.",
        )

    def delete(self, paths: list[Path]) -> None:
        for path in paths:
            self.s3.delete_object(Bucket="data", Key=self.key(path))
        self._fail(
            paths,
            "object missing",
            "Failed to restore file because S3 object with key {} was not found in S3 bucket data.",
        )

    def deny(self, paths: list[Path]) -> None:
        self._fail(
            paths,
            "access denied",
            "Failed to restore file because access was denied to S3 object {} in S3 bucket data.",
        )

    def _fail(self, paths: list[Path], fault: str, sentence: str) -> None:
        """Let restores fail, and the file system's log say why, soon: the log is read for the time of the run."""
        self.here.fsx.control("fail", paths=[str(path) for path in paths], fault=fault)
        for path in paths:
            self.account.log(self.system["FileSystemId"], sentence.format(self.key(path)), at=time.time() + 1)
