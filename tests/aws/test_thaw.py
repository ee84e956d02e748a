"""Thawing on paper: what is asked of S3, when a file goes on, and what is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from aws.paper_cloud import PaperCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.looks import Looks
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.engine.thaw import Thawer, ThawWish
from fsxwarm.model.entry import Entry
from fsxwarm.model.outcome import Reason
from fsxwarm.model.s3 import CheckS3, Stored, Thaw, ThawTier
from fsxwarm.ports.cloud import CloudError, Fault
from fsxwarm.ports.tree import Batch, Filters, Place
from paper import CLEAN, GONE, File, Paper


@dataclass
class Glacier(PaperCloud):
    """Thaws take `rounds` looks; keys in `refused` may not be thawed."""

    rounds: int = 2
    refused: dict[str, CloudError] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)
    before_head: Callable[[], None] = lambda: None

    async def head(self, bucket: str, key: str) -> Stored | None:
        self.before_head()
        self.heads.append(key)
        stored = self.objects.get(key)
        if stored is not None and stored.thaw is Thaw.ONGOING:
            self.looks[key] = self.looks.get(key, 0) + 1
            if self.looks[key] >= self.rounds:
                live = replace(stored, thaw=Thaw.LIVE, archive="")
                self.objects[key] = live
                return live
        return stored

    async def thaw(self, bucket: str, key: str, tier: ThawTier, days: int) -> None:
        if key in self.refused:
            raise self.refused[key]
        await super().thaw(bucket, key, tier, days)
        self.objects[key] = replace(self.objects[key], thaw=Thaw.ONGOING)


@dataclass
class Run:
    """A preflight with a thawer over files of `world`, and what came of it."""

    cloud: Glacier
    world: Paper
    wish: ThawWish = field(default_factory=lambda: ThawWish(ThawTier.BULK, 7))
    spare: Mapping[int, int] = field(default_factory=dict)
    fit: bool = False
    said: list[str] = field(default_factory=list)
    order: list[bytes] = field(default_factory=list)
    barred: dict[bytes, Reason] = field(default_factory=dict)

    async def go(self, most: int = 10**9) -> Thawer:
        async def spare() -> Mapping[int, int]:
            return self.spare

        atlas = Atlas(self.cloud, [Mounted(b"/fsx", "10.0.0.7@tcp:/abc")])
        looks = Looks(self.world, self.world)
        thawer = Thawer(atlas, looks, self.wish, self.said.append, spare=spare, fit=self.fit, poll=0.0)
        preflight = Preflight(Inspector(atlas, CheckS3.ALWAYS, self.said.append), thawer)
        async for batch in preflight.checked(_walk(self.world)):
            for item in batch.items:
                assert isinstance(item, Entry)
                self.order.append(item.path)
                if item.key in batch.barred:
                    self.barred[item.path] = batch.barred[item.key]
            most -= 1
            if not most:
                break
        return thawer


async def _walk(world: Paper) -> AsyncIterator[Batch]:
    place = await world.resolve(b"/fsx")
    assert isinstance(place, Place)
    async for batch in world.walk(place, Filters(), whole=True):
        yield batch


def _files(names: Sequence[str], **changes: File) -> Paper:
    return Paper({f"/fsx/{name}".encode(): changes.get(name, File(GONE, size=100)) for name in names})


def _objects(names: Sequence[str], storage: str = "GLACIER", **changes: Stored) -> dict[str, Stored]:
    return {f"p/{name}": changes.get(name, Stored(100, 5, storage)) for name in names}


async def test_archived_objects_are_thawed_and_their_files_come_last() -> None:
    names = ["a", "b", "c"]
    run = Run(Glacier(_objects(names, c=Stored(100, 5))), _files(names))
    thawer = await run.go()
    assert run.order == [b"/fsx/c", b"/fsx/a", b"/fsx/b"]
    assert run.barred == {}
    assert run.cloud.thawed == [("p/a", ThawTier.BULK, 7), ("p/b", ThawTier.BULK, 7)]
    assert (thawer.found.asked.files, thawer.found.thawed.files, thawer.found.waiting.files) == (2, 2, 0)
    assert "thawing 2 archived objects, 200 B: Bulk (the cheapest" in run.said[0]


async def test_what_is_being_thawed_already_is_only_waited_for() -> None:
    run = Run(Glacier(_objects(["a"], a=Stored(100, 5, "DEEP_ARCHIVE", Thaw.ONGOING))), _files(["a"]))
    thawer = await run.go()
    assert run.order == [b"/fsx/a"]
    assert run.cloud.thawed == []
    assert thawer.found.already.files == 1


async def test_nothing_is_thawed_for_files_that_are_resident() -> None:
    run = Run(Glacier(_objects(["a", "b"])), _files(["a", "b"], a=File(CLEAN, size=0)))
    run.cloud.objects["p/a"] = Stored(0, 5, "GLACIER")
    await run.go()
    assert run.cloud.thawed == [("p/b", ThawTier.BULK, 7)]
    assert run.barred == {b"/fsx/a": Reason.STORAGE_CLASS}


async def test_tiering_objects_come_back_for_good_and_take_no_days() -> None:
    cloud = Glacier(_objects(["a"], a=Stored(100, 5, "INTELLIGENT_TIERING", archive="ARCHIVE_ACCESS")))
    run = Run(cloud, _files(["a"]))
    await run.go()
    assert cloud.thawed == [("p/a", ThawTier.BULK, 0)]
    assert run.order == [b"/fsx/a"]
    assert run.barred == {}


async def test_expedited_is_not_asked_for_deep_archive() -> None:
    cloud = Glacier(_objects(["a", "b"], a=Stored(100, 5, "DEEP_ARCHIVE")))
    run = Run(cloud, _files(["a", "b"]), wish=ThawWish(ThawTier.EXPEDITED, 1))
    await run.go()
    assert cloud.thawed == [("p/b", ThawTier.EXPEDITED, 1)]
    assert run.barred == {b"/fsx/a": Reason.STORAGE_CLASS}
    assert [line for line in run.said if "not for Deep Archive" in line]


async def test_a_refused_thaw_blocks_its_file_and_is_said_once() -> None:
    names = [f"f{number}" for number in range(30)]
    denied = CloudError(Fault.DENIED, "s3:RestoreObject", "AccessDenied", "Access Denied")
    run = Run(Glacier(_objects(names), refused={f"p/{name}": denied for name in names[:20]}), _files(names))
    await run.go()
    assert run.barred == {f"/fsx/{name}".encode(): Reason.STORAGE_CLASS for name in names[:20]}
    assert len(run.order) == 30
    assert len([line for line in run.said if "s3:RestoreObject" in line]) == 1


async def test_an_object_that_goes_away_meanwhile_is_missing() -> None:
    run = Run(Glacier(_objects(["a"]), rounds=5), _files(["a"]))
    run.cloud.before_head = lambda: run.cloud.objects.clear() if len(run.cloud.heads) == 3 else None
    await run.go()
    assert run.barred == {b"/fsx/a": Reason.OBJECT_MISSING}


async def test_passing_errors_while_waiting_are_waited_out() -> None:
    run = Run(Glacier(_objects(["a"]), rounds=3), _files(["a"]))
    busy = CloudError(Fault.UNREACHABLE, "s3:GetObject", "ConnectTimeoutError", "timed out")

    def fail() -> None:
        if len(run.cloud.heads) in (2, 3):
            run.cloud.heads.append("failed")
            raise busy

    run.cloud.before_head = fail
    await run.go()
    assert run.order == [b"/fsx/a"]
    assert run.barred == {}
    assert len([line for line in run.said if "cannot be seen" in line]) == 1


@pytest.mark.parametrize(("fit", "thawed"), [(False, 0), (True, 2)])
async def test_nothing_is_thawed_that_has_no_room(fit: bool, thawed: int) -> None:  # noqa: FBT001
    names = ["a", "b", "c"]
    run = Run(Glacier(_objects(names)), _files(names), spare={7: 250}, fit=fit)
    await run.go()
    assert len(run.cloud.thawed) == thawed
    assert list(run.barred.values()) == [Reason.NO_ROOM] * (3 - thawed)
    assert ("no room" in run.said[0]) is not fit


async def test_a_thousand_are_all_thawed_whatever_the_order_they_come_in() -> None:
    names = [f"f{number:04d}" for number in range(1000)]
    run = Run(Glacier(_objects(names), rounds=4), _files(names))
    thawer = await run.go()
    assert sorted(run.order) == [f"/fsx/{name}".encode() for name in names]
    assert thawer.found.thawed.files == 1000
    assert len(run.cloud.thawed) == 1000


async def test_who_waits_no_longer_gets_the_rest_named() -> None:
    names = ["a", "b", "c"]
    run = Run(Glacier(_objects(names, c=Stored(100, 5)), rounds=10**9), _files(names))
    thawer = await run.go(most=4)
    assert sorted(entry.path for entry in thawer.let_go()) == [b"/fsx/a", b"/fsx/b"]
    assert len(run.cloud.thawed) == 2
