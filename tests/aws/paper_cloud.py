"""A cloud on paper: the Cloud port over a dictionary, without network or time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fsxwarm.model.association import Association, FileSystem, as_prefix
from fsxwarm.model.s3 import Stored, ThawTier
from fsxwarm.ports.cloud import CloudError, Content, Fault, Listed, Task

SYSTEM = FileSystem("fs-1", "fs-1.example", "abc", "AVAILABLE", "2.15", "PERSISTENT_2", "SSD", 2**40)


@dataclass
class PaperCloud:
    """A cloud on paper: one bucket, one association; `fails` lets every call fail."""

    objects: dict[str, Stored] = field(default_factory=dict)
    associations_: list[Association] = field(
        default_factory=lambda: [Association("dra-1", "/", as_prefix("s3://data/p"), "AVAILABLE")]
    )
    fails: CloudError | None = None
    fails_after: int = 0
    page: int = 1000
    system: FileSystem = SYSTEM
    simulation: dict[str, bool] = field(default_factory=dict)
    """Actions that IAM, asked, calls denied or not; of others it may not be asked."""
    simulated: list[tuple[str, list[str]]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    thawed: list[tuple[str, ThawTier, int]] = field(default_factory=list)

    def _call(self) -> None:
        if self.fails is not None and len(self.lists) >= self.fails_after:
            raise self.fails

    async def file_systems(self, ids: Sequence[str] = ()) -> list[FileSystem]:
        self._call()
        return [self.system]

    async def associations(self, system: str) -> list[Association]:
        return self.associations_

    async def list_objects(self, bucket: str, prefix: str, after: str) -> Listed:
        self._call()
        self.lists.append(after)
        keys = sorted(key for key in self.objects if key > after and key.startswith(prefix))
        some = keys[: self.page]
        return Listed({key: self.objects[key] for key in some}, some[-1] if some else "", len(keys) > len(some))

    async def head(self, bucket: str, key: str) -> Stored | None:
        self._call()
        self.heads.append(key)
        stored = self.objects.get(key)
        if stored is not None and stored.storage_class == "INTELLIGENT_TIERING":
            archive = "ARCHIVE_ACCESS" if key.endswith("cold") else ""
            return Stored(stored.size, stored.modified, stored.storage_class, stored.thaw, archive)
        return stored

    async def thaw(self, bucket: str, key: str, tier: ThawTier, days: int) -> None:
        self._call()
        self.thawed.append((key, tier, days))

    async def read_object(self, bucket: str, key: str) -> Content:
        raise NotImplementedError

    async def release_task(self, system: str, paths: Sequence[str], days: int, token: str, report: str) -> Task:
        raise NotImplementedError

    async def task(self, id: str) -> Task:  # noqa: A002 - the port's word
        raise CloudError(Fault.NOT_FOUND, "fsx:DescribeDataRepositoryTasks", "DataRepositoryTaskNotFound", "none")

    async def who(self) -> str:
        return "arn:aws:sts::123456789012:assumed-role/fsx/i-1"

    async def denied(self, arn: str, action: str, resources: Sequence[str]) -> bool | None:
        self.simulated.append((action, list(resources)))
        return self.simulation.get(action)
