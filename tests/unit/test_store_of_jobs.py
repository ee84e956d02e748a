"""The store: what it took is there after a crash, what is too new or foreign is refused, nothing grows for ever."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.job import Count, Counters, Failure, Identity, Job, JobOptions, JobRequest, Phase
from fsxwarm.model.job import Kind as JobKind
from fsxwarm.model.lease import Lease
from fsxwarm.model.order import Order
from fsxwarm.ports.store import Changes, Limits
from fsxwarm.store import codec, schema
from fsxwarm.store.sqlite import SqliteStore

Open = Callable[[Path], Awaitable[SqliteStore]]

REQUEST = JobRequest(
    JobKind.PRELOAD,
    Identity(1000, (1000, 50)),
    (b"/fsx/a", b"/fsx/\xff b"),
    (b"/fsx/list/1", b"/fsx/list/\xfe"),
    ("*.bin",),
    ("tmp/**",),
    JobOptions(ready=0.2, deadline=60.0, fit=True, order=Order.LARGEST),
    70,
    "épreuve",
    "4711",
)


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def make(path: Path) -> SqliteStore:
            store = await SqliteStore.open(str(path))
            stack.push_async_callback(store.close)
            return store

        yield make


def failure(at: float, path: bytes = b"/fsx/x") -> Failure:
    return Failure(0, at, path, "failed", "restore_failed", 5, 0x0D, 3, "why", 4096)


async def test_a_job_comes_back_as_it_was_after_the_power_went(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    job = await store.add_job(REQUEST, 100.0)
    counters = Counters(found=Count(5, 50), restored=Count(2, 20), scanned=True, reasons={"lost": 1})
    later = replace(job, phase=Phase.DONE, ended=200.0, exit=Exit.INCOMPLETE, counters=counters, walk="w", resumed=2)
    await store.save(Changes(jobs=[later], failures=[("w", failure(150.0))], totals={"restored": 2}, at=150.0))
    for name in ("state.db", "state.db-wal"):  # as they lie on the disk, without a farewell
        shutil.copy(tmp_path / name, tmp_path / name.replace("state", "copy"))
    found = await opened(tmp_path / "copy.db")
    saved = await found.load()
    assert saved.jobs == [later]
    assert saved.jobs[0].request == replace(REQUEST, files=())
    assert await found.files(job.id) == REQUEST.files
    assert saved.totals == {"restored": 2}
    assert await found.failures("w", 0, 10) == [failure(150.0)._replace(number=1)]
    assert await found.failures("w", 1, 10) == []


async def test_ids_are_never_given_twice(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    first = await store.add_job(REQUEST, 1.0)
    await store.save(Changes(jobs=[replace(first, phase=Phase.CANCELLED, ended=2.0)]))
    assert await store.expire(10.0**9, Limits()) == [first.id]
    assert (await store.load()).jobs == []
    assert await store.files(first.id) == ()
    assert (await store.add_job(REQUEST, 1.0)).id != first.id


async def test_many_submissions_at_once_are_all_kept(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    jobs = await asyncio.gather(*(store.add_job(REQUEST, float(n)) for n in range(300)))
    assert len({job.id for job in jobs}) == 300
    assert [job.created for job in (await store.load()).jobs] == [float(n) for n in range(300)]


async def test_a_newer_database_is_refused_with_its_version(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "state.db"
    await (await opened(path)).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 3}")
    db.close()
    with pytest.raises(FsxwarmError, match=f"newer fsxwarm: its version is {schema.VERSION + 3}") as caught:
        await opened(path)
    assert caught.value.kind is Kind.STORE


async def test_another_programs_database_is_refused(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "browser.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE cookies (name)")
    db.close()
    with pytest.raises(FsxwarmError, match="another program's"):
        await opened(path)


async def test_rubbish_is_refused(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"no database at all, " * 100)
    with pytest.raises(FsxwarmError, match="not a database"):
        await opened(path)


async def test_a_second_daemon_finds_the_store_in_use(tmp_path: Path, opened: Open) -> None:
    await opened(tmp_path / "state.db")
    with pytest.raises(FsxwarmError, match="in use"):
        await opened(tmp_path / "state.db")


async def test_a_full_disk_loses_nothing_and_is_told(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    await store.add_job(REQUEST, 1.0)
    assert store._db is not None
    store._db.execute(f"PRAGMA max_page_count = {store._db.execute('PRAGMA page_count').fetchone()[0] + 1}")
    big = replace(REQUEST, files=tuple(b"/fsx/%d-%d" % (n, n * 7919) for n in range(100_000)))
    with pytest.raises(FsxwarmError, match="full"):
        await store.add_job(big, 2.0)
    assert len((await store.load()).jobs) == 1


async def test_what_is_old_or_too_much_goes_and_the_rest_stays(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    jobs = [await store.add_job(REQUEST, float(n)) for n in range(10)]
    ended = [replace(j, phase=Phase.DONE, ended=1000.0 + int(j.id), walk=j.id) for j in jobs[:8]]
    await store.save(
        Changes(
            jobs=ended,
            failures=[(job.id, failure(1.0)) for job in ended],
            restored=[1],
            wanted={b"/%d" % n: float(n) for n in range(5)},
            at=1000.0,
        )
    )
    await store.save(Changes(restored=[2**63, 2], at=90_000.0))
    gone = await store.expire(90_000.0, Limits(finished_jobs=3, wanted_paths=2))
    assert gone == ["1", "2", "3", "4", "5"]
    saved = await store.load()
    assert [job.id for job in saved.jobs] == ["6", "7", "8", "9", "10"]
    assert saved.wanted == {b"/3": 3.0, b"/4": 4.0}
    assert await store.failures("5", 0, 10) == []
    assert len(await store.failures("6", 0, 10)) == 1
    assert list(await store.restored_since(0.0)) == [2, 2**63]


async def test_leases_are_kept_renewed_and_dropped(tmp_path: Path, opened: Open) -> None:
    store = await opened(tmp_path / "state.db")
    one = await store.add_lease(Lease("", 1000, b"/fsx/\xff", 1.0, 100.0, "train", "7"))
    two = await store.add_lease(Lease("", 1001, b"/fsx/b", 1.0, 100.0))
    await store.save_lease(replace(one, expires=500.0))
    await store.drop_leases([two.id])
    assert (await store.load()).leases == [replace(one, expires=500.0)]


def _as_it_was(released: Path, path: Path) -> Path:
    db = sqlite3.connect(path)
    db.executescript(released.read_text())
    assert db.execute("PRAGMA user_version").fetchone()[0] == int(released.stem[1:])
    db.close()
    return path


@pytest.mark.parametrize("released", sorted((Path(__file__).parent / "stores").glob("v*.sql")), ids=lambda p: p.stem)
async def test_every_released_version_is_brought_up_to_date(released: Path, tmp_path: Path, opened: Open) -> None:
    store = await opened(_as_it_was(released, tmp_path / "state.db"))
    saved = await store.load()
    assert [job.request.label for job in saved.jobs] == ["épreuve", "épreuve"]
    assert [job.phase for job in saved.jobs] == [Phase.DONE, Phase.RUNNING]
    assert saved.jobs[1].request == replace(REQUEST, files=())
    assert await store.files("2") == REQUEST.files
    assert [f.reason for f in await store.failures("1", 0, 10)] == ["restore_failed"]
    assert saved.leases[0].path == b"/fsx/\xff"
    assert list(await store.restored_since(0.0)) == [12]


def test_what_is_written_of_a_job_is_what_the_newest_version_wrote(tmp_path: Path) -> None:
    """Whoever adds a field adds a step, and a `stores/vN.sql`: a version before could not read such a job."""
    newest = Path(__file__).parent / "stores" / f"v{schema.VERSION}.sql"
    with closing(sqlite3.connect(_as_it_was(newest, tmp_path / "state.db"))) as db:
        written = json.loads(db.execute("SELECT body FROM jobs").fetchone()[0])
    now = json.loads(codec.write_job(Job("1", REQUEST, 1.0)))
    assert written.keys() == now.keys()
    assert written["options"].keys() == now["options"].keys()
    assert written["counters"].keys() == now["counters"].keys()


counts = st.builds(Count, st.integers(0, 2**40), st.integers(0, 2**60))
paths = st.lists(st.binary(min_size=1).filter(lambda b: b"\0" not in b), max_size=5).map(tuple)


@given(
    st.builds(
        Job,
        id=st.integers(1, 2**40).map(str),
        request=st.builds(JobRequest, identity=st.builds(Identity, st.integers(0, 2**32), st.just((1, 2))), paths=paths,
                          files=st.just(()), include=st.lists(st.text()).map(tuple), label=st.text()),
        created=st.floats(0, 1e10),
        exit=st.none() | st.sampled_from(Exit),
        counters=st.builds(Counters, found=counts, restored=counts, left_in_flight=counts,
                           reasons=st.dictionaries(st.text(), st.integers(0, 9))),
        error=st.text(),
        next_round=st.none() | st.floats(0, 1e10),
    )
)  # fmt: skip
def test_any_job_survives_the_codec(job: Job) -> None:
    assert codec.read_job(int(job.id), codec.write_job(job)) == job


@given(paths, st.lists(st.integers(0, 2**64 - 1)))
def test_lists_and_numbers_survive_the_codec(files: tuple[bytes, ...], numbers: list[int]) -> None:
    assert codec.read_list(codec.write_list(files)) == files
    assert list(codec.read_numbers(codec.write_numbers(numbers))) == sorted(numbers)
