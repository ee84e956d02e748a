"""The smaller parts of the daemon's core: errands, the journal, watchers, protected paths."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.journal import Journal
from fsxwarm.engine.periodic import Periodic
from fsxwarm.engine.protection import Protection, Restored, folders_of
from fsxwarm.engine.watchers import News, Waiters
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Entry
from fsxwarm.model.job import Event, Failure
from fsxwarm.model.release import Reason
from fsxwarm.store.sqlite import SqliteStore
from service_stage import play, request


def test_errands_are_run_again_and_again_and_a_failure_is_told_until_it_is_over() -> None:
    async def go() -> None:
        ran: list[float] = []

        async def work() -> None:
            ran.append(asyncio.get_running_loop().time())
            if len(ran) == 2:
                raise FsxwarmError(Kind.HUNG, "no answer")

        periodic = Periodic()
        periodic.add("looking", 10.0, work)
        running = asyncio.ensure_future(periodic.run())
        await asyncio.sleep(25.0)
        assert ran == [10.0, 20.0]
        assert periodic.troubles == ["looking: no answer"]
        periodic.hurry("looking")
        await asyncio.sleep(1.0)
        assert ran == [10.0, 20.0, 25.0]
        assert periodic.troubles == []
        await asyncio.sleep(10.0)
        assert ran[-1] == 35.0
        running.cancel()

    play(go)


def test_a_defect_in_an_errand_is_not_kept_quiet() -> None:
    async def go() -> None:
        async def broken() -> None:
            raise ZeroDivisionError

        periodic = Periodic()
        periodic.add("broken", 1.0, broken)
        with pytest.raises(ExceptionGroup) as caught:
            await periodic.run()
        assert isinstance(caught.value.exceptions[0], ZeroDivisionError)

    play(go)


async def test_what_the_store_could_not_take_is_written_later(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "state.db"))
    job = await store.add_job(request(), 1.0)
    journal = Journal(store, {}, lambda: 5.0)
    database, store._db = store._db, None  # the disk is gone
    journal.job(job)
    journal.count("restored_files", 3)
    journal.restored(77)
    journal.failure("w", Failure(0, 1.0, b"/fsx/a", "failed", "lost"))
    with pytest.raises(FsxwarmError):
        await journal.flush()
    journal.count("restored_files", 4)
    journal.restored(78)
    store._db = database
    await journal.flush()
    assert (await store.load()).totals == {"restored_files": 7}
    assert list(await store.restored_since(0.0)) == [77, 78]
    assert len(await store.failures("w", 0, 10)) == 1
    await store.close()


def test_a_slow_reader_misses_events_and_is_told_how_many() -> None:
    async def go() -> None:
        news = News()
        reader = news.read()
        for number in range(1500):
            news.tell(Event(float(number), "retry"))
        assert (await anext(reader)).at == 0.0
        news.tell(Event(2000.0, "retry"))
        news.close()
        rest = [event async for event in reader]
        assert [(e.kind, e.data) for e in rest if e.kind == "missed"] == [("missed", {"events": 500})]
        assert rest[-1].at == 2000.0
        assert [event async for event in news.read()] == []

    play(go)


def test_waiters_leave_nothing_behind() -> None:
    async def go() -> None:
        waiters = Waiters()
        waiting = [asyncio.ensure_future(waiters.wait("7", 100.0)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        waiters.wake("7")
        await asyncio.gather(*waiting[1:])
        await waiters.wait("7", 1.0)
        assert waiters._futures == {}

    play(go)


def entry(path: bytes, used: int = 0) -> Entry:
    return Entry(path, 7, 1, 10, 2, used, 0, 0, 1, 0, 0o644)


def test_protection_holds_as_long_as_anybody_holds() -> None:
    protection = Protection({b"/fsx/a": 500.0})
    protection.hold("job 1", [b"/fsx/a/b"])
    protection.hold("job 2", [b"/fsx/a/b", b"/fsx/file"])
    protection.hold("lease 1", [b"/fsx/a"], lease=True)
    assert protection.reason(b"/fsx/a/b/c/d") is Reason.WANTED
    assert protection.reason(b"/fsx/a/x") is Reason.LEASED
    assert protection.reason(b"/fsx/ab") is None
    assert protection.reason(b"/fsx/file") is Reason.WANTED
    protection.drop("job 1")
    assert protection.reason(b"/fsx/a/b/c") is Reason.WANTED
    protection.drop("job 2")
    protection.drop("lease 1")
    protection.drop("lease 1")
    assert protection.reason(b"/fsx/a/b/c") is None
    assert protection.used(entry(b"/fsx/a/b", 400)) == 500.0
    assert protection.used(entry(b"/fsx/a/b", 600)) == 600.0
    assert protection.used(entry(b"/fsx/b", 400)) == 400.0
    protection.wanted[b"/fsx/b"] = 700.0
    protection.forget(1)
    assert protection.wanted == {b"/fsx/b": 700.0}


names = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=1, max_size=5)


@given(st.lists(names.map(lambda parts: b"/" + b"/".join(parts)), max_size=40), st.integers(1, 10))
def test_however_few_folders_are_kept_no_listed_file_is_left_out(files: list[bytes], most: int) -> None:
    folders = folders_of(files, most)
    assert len(folders) <= most
    protection = Protection({})
    protection.hold("job", folders)
    assert all(protection.reason(path) is Reason.WANTED for path in files)


async def test_what_is_restored_while_room_is_made_is_heard_of(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "state.db"))
    journal = Journal(store, {}, lambda: 5.0)
    journal.restored(1)
    await journal.flush()
    journal.restored(2)
    restored = await journal.restored_since(0.0)
    journal.restored(3)
    assert [ino in restored for ino in range(5)] == [False, True, True, True, False]
    await store.close()


@given(st.lists(st.integers(0, 50)), st.sets(st.integers(0, 50)), st.integers(0, 50))
def test_what_was_restored_lately_is_found(earlier: list[int], lately: set[int], ino: int) -> None:
    assert (ino in Restored(sorted(earlier), lately)) is (ino in earlier or ino in lately)
