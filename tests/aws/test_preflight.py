"""What S3 will refuse, found by listing: against a cloud on paper that counts requests."""

from __future__ import annotations

import asyncio
import bisect
import tracemalloc
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aws.paper_cloud import PaperCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.guard import ReleaseGuard
from fsxwarm.engine.objects import Budget, Objects, before
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.association import Association, FileSystem, as_prefix
from fsxwarm.model.entry import Entry, Resident
from fsxwarm.model.outcome import Reason
from fsxwarm.model.s3 import CheckS3, Stored, Thaw, parse_restore
from fsxwarm.ports.cloud import CloudError, Fault, Listed
from fsxwarm.ports.tree import Batch
from fsxwarm.sim.vloop import run


def entry(name: str, number: int, size: int = 100) -> Entry:
    return Entry(b"/fsx/" + name.encode(), 7, number, size, 0, 10, 10, 10, 1, 0, 0o100644)


def atlas(cloud: PaperCloud) -> Atlas:
    return Atlas(cloud, [Mounted(b"/fsx", "10.0.0.7@tcp:/abc")])


async def _walk(entries: Sequence[Entry], size: int = 100) -> AsyncIterator[Batch]:
    for start in range(0, len(entries), size):
        yield Batch(b"/fsx", list(entries[start : start + size]))


async def _barred(preflight: Preflight, entries: Sequence[Entry]) -> dict[bytes, Reason]:
    found: dict[bytes, Reason] = {}
    order: list[Entry] = []
    async for batch in preflight.checked(_walk(entries)):
        order += [item for item in batch.items if isinstance(item, Entry)]
        found |= {item.path: batch.barred[item.key] for item in order if item.key in batch.barred}
    assert order == list(entries)
    return found


async def test_each_file_that_s3_cannot_give_is_barred_for_its_reason() -> None:
    entries = [entry(f"f{number:04d}", number) for number in range(2500)]
    cloud = PaperCloud({f"p/f{number:04d}": Stored(100, 5) for number in range(2500)})
    cloud.objects["p/f0007"] = Stored(100, 5, "GLACIER")
    cloud.objects["p/f0008"] = Stored(100, 5, "DEEP_ARCHIVE", Thaw.ONGOING)
    cloud.objects["p/f0009"] = Stored(100, 5, "GLACIER", Thaw.LIVE)
    cloud.objects["p/f0010"] = Stored(100, 5, "GLACIER_IR")
    cloud.objects["p/f0011"] = Stored(99, 5)
    cloud.objects["p/f0012"] = Stored(100, 10**6)
    del cloud.objects["p/f0999"], cloud.objects["p/f2499"]
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, pytest.fail))
    assert await _barred(preflight, entries) == {
        b"/fsx/f0007": Reason.STORAGE_CLASS,
        b"/fsx/f0008": Reason.THAWING,
        b"/fsx/f0011": Reason.OBJECT_CHANGED,
        b"/fsx/f0999": Reason.OBJECT_MISSING,
        b"/fsx/f2499": Reason.OBJECT_MISSING,
    }
    assert preflight.found.newer.files == 1
    assert preflight.found.checked.files == 2500
    assert len(cloud.lists) <= 13  # one for each 200 wanted files


class SilentCloud(PaperCloud):
    """A network without a way to AWS: no call comes back."""

    async def file_systems(self, ids: Sequence[str] = ()) -> list[FileSystem]:
        await asyncio.Event().wait()
        raise AssertionError(ids)


def test_a_network_without_a_way_to_aws_holds_nothing_up_for_long() -> None:
    entries = [entry(f"f{number:04d}", number) for number in range(2500)]
    said: list[str] = []

    async def look() -> tuple[float, int]:
        preflight = Preflight(Inspector(atlas(SilentCloud()), CheckS3.AUTO, said.append))
        assert await _barred(preflight, entries) == {}
        return asyncio.get_running_loop().time(), preflight.found.unchecked.files

    assert run(look()) == (10.0, 2500)
    assert ["no answer within 10 s" in said[0], "VPC endpoints" in said[0], len(said)] == [True, True, 1]


async def test_auto_spends_one_request_for_200_files_and_says_what_stayed_unchecked() -> None:
    sparse = {f"p/{number:05d}/{inner:04d}": Stored(100, 5) for number in range(40) for inner in range(1200)}
    entries = [entry(f"{number:05d}/0000", number) for number in range(40)]
    for mode, requests, unchecked in ((CheckS3.AUTO, 1, 39), (CheckS3.ALWAYS, 40, 0)):
        cloud = PaperCloud(dict(sparse))
        preflight = Preflight(Inspector(atlas(cloud), mode, pytest.fail))
        assert await _barred(preflight, entries) == {}
        assert (len(cloud.lists), preflight.found.unchecked.files) == (requests, unchecked)


async def test_archive_tiers_of_intelligent_tiering_are_asked_for() -> None:
    cloud = PaperCloud({f"p/{name}": Stored(100, 5, "INTELLIGENT_TIERING") for name in ("a.cold", "b.warm")})
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.ALWAYS, pytest.fail))
    found = await _barred(preflight, [entry("a.cold", 1), entry("b.warm", 2)])
    assert found == {b"/fsx/a.cold": Reason.STORAGE_CLASS}
    assert sorted(cloud.heads) == ["p/a.cold", "p/b.warm"]


class Blind(PaperCloud):
    """Objects can be listed, and not be asked about one by one."""

    async def head(self, bucket: str, key: str) -> Stored | None:
        self.heads.append(key)
        raise CloudError(Fault.DENIED, "s3:GetObject", "403", "Forbidden")


async def test_when_single_objects_may_not_be_asked_about_the_listings_go_on() -> None:
    said: list[str] = []
    entries = [entry(f"f{number:05d}", number) for number in range(4000)]
    cloud = Blind({f"p/f{number:05d}": Stored(100, 5, "INTELLIGENT_TIERING") for number in range(4000)})
    cloud.objects["p/f03999"] = Stored(100, 5, "GLACIER")
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, said.append))
    assert await _barred(preflight, entries) == {b"/fsx/f03999": Reason.STORAGE_CLASS}
    assert len(said) == 1
    assert "s3:GetObject" in said[0]
    assert len(cloud.heads) < 200
    with pytest.raises(FsxwarmError) as caught:
        await _barred(Preflight(Inspector(atlas(cloud), CheckS3.ALWAYS, said.append)), entries)
    assert caught.value.kind is Kind.CLOUD


async def test_a_guard_of_releases_does_not_ask_about_tiers() -> None:
    cloud = PaperCloud({f"p/f{number}": Stored(100, 5, "INTELLIGENT_TIERING") for number in range(9)})
    guard = ReleaseGuard(atlas(cloud), CheckS3.ALWAYS, pytest.fail, strict=True)
    assert await guard.refused([entry(f"f{number}", number) for number in range(9)]) == {}
    assert cloud.heads == []


@pytest.mark.parametrize("files", [1, 199, 200, 201, 1000, 3999, 10_000])
async def test_auto_never_makes_more_than_one_request_for_200_files(files: int) -> None:
    """Where each file would need a request of its own, and every object is in Intelligent-Tiering on top."""
    entries = [entry(f"f{number:05d}", number) for number in range(files)]
    objects = {f"p/f{number:05d}": Stored(100, 5, "INTELLIGENT_TIERING") for number in range(files)}
    cloud = PaperCloud(objects, page=1)
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, pytest.fail))
    assert await _barred(preflight, entries) == {}
    spent = len(cloud.lists) + len(cloud.heads)
    assert spent == preflight.found.requests <= -(-files // 200)
    assert preflight.found.checked.files + preflight.found.unchecked.files == files


async def test_newer_objects_are_a_warning_and_no_obstacle() -> None:
    cloud = PaperCloud({"p/a": Stored(100, 10 + 7200), "p/b": Stored(100, 10 + 60)})
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, pytest.fail))
    assert await _barred(preflight, [entry("a", 1), entry("b", 2)]) == {}
    assert preflight.found.newer.files == 1


async def test_throttling_that_lasts_ends_the_check_and_not_the_preload() -> None:
    said: list[str] = []
    slow_down = CloudError(Fault.THROTTLED, "s3:ListBucket", "SlowDown", "Please reduce your request rate.")
    cloud = PaperCloud({f"p/f{number}": Stored(100, 5) for number in range(50)}, fails=slow_down)
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, said.append))
    assert await _barred(preflight, [entry(f"f{number}", number) for number in range(50)]) == {}
    assert preflight.found.unchecked.files == 50
    assert len(said) == 1
    assert "run again later" in said[0]


async def test_without_credentials_auto_says_so_once_and_always_fails() -> None:
    said: list[str] = []
    error = CloudError(Fault.NO_CREDENTIALS, "fsx:DescribeFileSystems", "NoCredentialsError", "no credentials")
    entries = [entry(f"{number}", number) for number in range(3000)]
    preflight = Preflight(Inspector(atlas(PaperCloud(fails=error)), CheckS3.AUTO, said.append))
    assert await _barred(preflight, entries) == {}
    assert len(said) == 1
    assert preflight.found.unchecked.files == 3000
    always = Preflight(Inspector(atlas(PaperCloud(fails=error)), CheckS3.ALWAYS, said.append))
    with pytest.raises(FsxwarmError) as caught:
        await _barred(always, entries)
    assert caught.value.kind is Kind.CLOUD


async def test_a_listing_that_fails_in_the_middle_lets_the_rest_go_on() -> None:
    said: list[str] = []
    entries = [entry(f"f{number:05d}", number) for number in range(20_000)]
    denied = CloudError(Fault.DENIED, "s3:ListBucket", "AccessDenied", "Access Denied")
    cloud = PaperCloud({f"p/f{n:05d}": Stored(1, 5) for n in range(20_000)}, fails=denied, fails_after=3)
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, said.append))
    found = await _barred(preflight, entries)
    assert 0 < len(found) < 20_000
    assert set(found.values()) == {Reason.OBJECT_CHANGED}
    assert len(said) == 1
    assert "s3:ListBucket" in said[0]
    assert preflight.found.checked.files + preflight.found.unchecked.files == 20_000


async def test_files_outside_associations_and_names_that_are_no_utf8_pass() -> None:
    cloud = PaperCloud(associations_=[Association("dra-1", "/in", as_prefix("s3://data/p"), "AVAILABLE")])
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.ALWAYS, pytest.fail))
    odd = Entry(b"/fsx/in/\xff", 7, 2, 100, 0, 10, 10, 10, 1, 0, 0o100644)
    assert await _barred(preflight, [entry("elsewhere", 1), odd]) == {}
    assert (preflight.found.outside.files, preflight.found.unchecked.files) == (1, 1)
    assert cloud.lists == []


async def test_a_warm_tree_needs_no_request() -> None:
    async def warm() -> AsyncIterator[Batch]:
        for _ in range(2000):
            yield Batch(b"/fsx", [Resident(1000, 10**6)])

    cloud = PaperCloud()
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.ALWAYS, pytest.fail))
    assert len([batch async for batch in preflight.checked(warm())]) == 2000
    assert cloud.lists == []


@given(
    st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), max_size=40),
    st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), max_size=40),
    st.integers(1, 7),
)
async def test_look_ups_are_true_for_any_keys_and_pages(there: set[str], wanted: set[str], page: int) -> None:
    cloud = PaperCloud({key: Stored(len(key), 0) for key in there}, page=page)
    budget = Budget(frugal=False)
    found = await Objects(cloud, lambda: 0.0).look("data", "", list(wanted), budget)
    assert found == {key: cloud.objects.get(key) for key in wanted}
    assert budget.requests == len(cloud.lists)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_before_is_before(key: str) -> None:
    assert before(key) < key
    before(key).encode()


def test_restore_headers() -> None:
    assert parse_restore('ongoing-request="true"') is Thaw.ONGOING
    live = 'ongoing-request="false", expiry-date="Fri, 21 Dec 2012 00:00:00 GMT"'
    assert parse_restore(live) is Thaw.LIVE
    assert parse_restore("") is Thaw.NONE


_MILLION = 1_000_000


class EndlessCloud(PaperCloud):
    """A bucket of a million objects that are made up as they are listed."""

    async def list_objects(self, bucket: str, prefix: str, after: str) -> Listed:
        self.lists.append(after)
        start = bisect.bisect_right(range(_MILLION), after, key="p/f/{:07d}".format)
        keys = [f"p/f/{number:07d}" for number in range(start, min(start + 1000, _MILLION))]
        return Listed({key: Stored(100, 5) for key in keys}, keys[-1], start + 1000 < _MILLION)


async def test_a_million_keys_take_little_memory() -> None:
    async def walk() -> AsyncIterator[Batch]:
        for start in range(0, 1_000_000, 1000):
            yield Batch(b"/fsx/f", [entry(f"f/{number:07d}", number) for number in range(start, start + 1000)])

    cloud = EndlessCloud()
    preflight = Preflight(Inspector(atlas(cloud), CheckS3.AUTO, pytest.fail))
    peak = 0
    async for batch in preflight.checked(walk()):
        assert not batch.barred
        if preflight.found.checked.files >= 20_000 and not tracemalloc.is_tracing():
            tracemalloc.start()
        if tracemalloc.is_tracing() and preflight.found.checked.files >= 80_000:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            break
    assert 0 < peak < 50_000_000
