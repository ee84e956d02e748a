"""The Store port over SQLite: one thread, one connection, all that waits in one transaction."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from fsxwarm.errors import FsxwarmError, Kind, reason
from fsxwarm.model.job import Failure, Job, JobRequest, Phase
from fsxwarm.model.lease import Lease
from fsxwarm.ports.store import Changes, Limits, Saved
from fsxwarm.store import codec, schema

T = TypeVar("T")

_FINAL: Final = tuple(phase.value for phase in Phase if phase.final)
_WAL_LIMIT: Final = 64 << 20


class _Work(NamedTuple):
    do: Callable[[sqlite3.Connection], object]
    done: asyncio.Future[object]


class SqliteStore:
    """See the port. `path` must be on a local disk, never on the file system that it helps to keep warm.

    A transaction is on disk (fsync) before its calls return, so that not even a power cut loses a job. Calls that come
    in while one is being written share the next. The file is locked for as long as it is open: one daemon, one store.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fsxwarm-store")
        self._db: sqlite3.Connection | None = None
        self._queue: list[_Work] = []
        self._writing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str) -> SqliteStore:
        """Open a store, making or updating its tables. FsxwarmError STORE says why it cannot be used."""
        store = cls(path)
        try:
            await asyncio.get_running_loop().run_in_executor(store._thread, store._connect)
        except BaseException:
            store._thread.shutdown(wait=False)
            raise
        return store

    # ---- jobs --------------------------------------------------------------------------------------------------

    async def load(self) -> Saved:
        """See the port."""
        return await self._run(_load)

    async def add_job(self, request: JobRequest, created: float) -> Job:
        """See the port."""
        return await self._run(lambda db: _add_job(db, request, created))

    async def files(self, job: str) -> tuple[bytes, ...]:
        """See the port."""

        def read(db: sqlite3.Connection) -> tuple[bytes, ...]:
            row = db.execute("SELECT files FROM lists WHERE job = ?", (int(job),)).fetchone()
            return codec.read_list(row[0]) if row else ()

        return await self._run(read)

    async def save(self, changes: Changes) -> None:
        """See the port."""
        await self._run(lambda db: _save(db, changes))

    async def failures(self, walk: str, after: int, limit: int) -> list[Failure]:
        """See the port."""

        def read(db: sqlite3.Connection) -> list[Failure]:
            rows = db.execute(
                "SELECT number, at, path, outcome, reason, errno, flags, attempts, detail, size, in_flight"
                " FROM failures"
                " WHERE walk = ? AND number > ? ORDER BY number LIMIT ?",
                (walk, after, limit),
            )
            return [Failure(*row)._replace(in_flight=bool(row[-1])) for row in rows]

        return await self._run(read)

    async def expire(self, now: float, limits: Limits) -> list[str]:
        """See the port."""
        return await self._run(lambda db: _expire(db, now, limits))

    async def restored_since(self, since: float) -> Sequence[int]:
        """See the port."""

        def read(db: sqlite3.Connection) -> Sequence[int]:
            rows = db.execute("SELECT files FROM restored WHERE at > ?", (since,))
            return codec.read_numbers(b"".join(data for (data,) in rows))

        return await self._run(read)

    # ---- leases ------------------------------------------------------------------------------------------------

    async def add_lease(self, lease: Lease) -> Lease:
        """See the port."""

        def add(db: sqlite3.Connection) -> Lease:
            row = (lease.owner, lease.path, lease.created, lease.expires, lease.label, lease.slurm_job_id)
            added = db.execute(
                "INSERT INTO leases (owner, path, created, expires, label, slurm_job_id) VALUES (?, ?, ?, ?, ?, ?)", row
            )
            return replace(lease, id=str(added.lastrowid))

        return await self._run(add)

    async def save_lease(self, lease: Lease) -> None:
        """See the port."""
        await self._run(
            lambda db: db.execute("UPDATE leases SET expires = ? WHERE id = ?", (lease.expires, int(lease.id)))
        )

    async def drop_leases(self, ids: Sequence[str]) -> None:
        """See the port."""
        await self._run(lambda db: db.executemany("DELETE FROM leases WHERE id = ?", [(int(id_),) for id_ in ids]))

    # ---- the thread --------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """See the port."""
        while self._writing is not None:
            await asyncio.wait({self._writing})
        db, self._db = self._db, None
        if db is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, db.close)
        self._thread.shutdown(wait=False)

    async def _run(self, do: Callable[[sqlite3.Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        self._queue.append(_Work(do, done))
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        return await done  # type: ignore[return-value]  # what `do` returned

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                works, self._queue = self._queue, []
                for work, answer in zip(
                    works, await loop.run_in_executor(self._thread, self._write, works), strict=True
                ):
                    if work.done.cancelled():
                        continue
                    if isinstance(answer, FsxwarmError):
                        work.done.set_exception(answer)
                    else:
                        work.done.set_result(answer)
        finally:
            self._writing = None

    def _write(self, works: Sequence[_Work]) -> list[object]:
        """Do it all in one transaction; what fails takes nothing else with it."""
        db = self._db
        if db is None:
            return [FsxwarmError(Kind.STORE, f"{self._path} is closed")] * len(works)
        try:
            db.execute("BEGIN IMMEDIATE")
            answers = [self._attempt(db, work) for work in works]
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            return [self._failed(error)] * len(works)
        return answers

    def _attempt(self, db: sqlite3.Connection, work: _Work) -> object:
        db.execute("SAVEPOINT one")
        try:
            answer = work.do(db)
        except sqlite3.Error as error:
            if not db.in_transaction:  # a full disk, for one, ends the whole transaction
                raise
            db.execute("ROLLBACK TO one")
            answer = self._failed(error)
        db.execute("RELEASE one")
        return answer

    def _connect(self) -> None:
        try:
            db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=1.0)
        except sqlite3.Error as error:
            raise self._failed(error) from None
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
            schema.prepare(db, self._path)
            os.chmod(self._path, 0o600)  # noqa: PTH101 - no other path arithmetic here
        except (sqlite3.Error, OSError) as error:
            db.close()
            raise self._failed(error) from None
        except FsxwarmError:
            db.close()
            raise
        self._db = db

    def _failed(self, error: Exception) -> FsxwarmError:
        if "locked" in str(error):
            return FsxwarmError(
                Kind.STORE, f"{self._path} is in use", hint="another daemon runs: there can be one only"
            )
        return FsxwarmError(Kind.STORE, f"{self._path}: {reason(error)}")


def _load(db: sqlite3.Connection) -> Saved:
    leases = db.execute("SELECT id, owner, path, created, expires, label, slurm_job_id FROM leases ORDER BY id")
    return Saved(
        [codec.read_job(*row) for row in db.execute("SELECT id, body FROM jobs ORDER BY id")],
        [Lease(str(number), *rest) for number, *rest in leases],
        dict(db.execute("SELECT name, value FROM totals")),
        dict(db.execute("SELECT path, at FROM wanted")),
        dict(db.execute("SELECT path, state FROM scans")),
    )


def _add_job(db: sqlite3.Connection, request: JobRequest, created: float) -> Job:
    data = codec.write_list(request.files)
    digest = codec.digest(data) if request.files else ""
    job = Job("", replace(request, files=()), created, listed=len(request.files), digest=digest)
    number = db.execute(
        "INSERT INTO jobs (phase, ended, walk, body) VALUES (?, NULL, '', ?)", (job.phase.value, codec.write_job(job))
    ).lastrowid
    if request.files:
        db.execute("INSERT INTO lists (job, files) VALUES (?, ?)", (number, data))
    return replace(job, id=str(number))


def _save(db: sqlite3.Connection, changes: Changes) -> None:
    known: dict[int, str] = {}
    db.executemany(
        "UPDATE jobs SET phase = ?, ended = ?, walk = ?, body = ? WHERE id = ?",
        [(job.phase.value, job.ended, job.walk, codec.write_job(job, known), int(job.id)) for job in changes.jobs],
    )
    db.executemany(
        "INSERT INTO failures (walk, at, path, outcome, reason, errno, flags, attempts, detail, size, in_flight)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(walk, *failure[1:]) for walk, failure in changes.failures],
    )
    db.executemany("INSERT OR REPLACE INTO totals (name, value) VALUES (?, ?)", list(changes.totals.items()))
    if changes.restored:
        db.execute(
            "INSERT INTO restored (at, files) VALUES (?, ?)", (changes.at, codec.write_numbers(changes.restored))
        )
    db.executemany("INSERT OR REPLACE INTO wanted (path, at) VALUES (?, ?)", list(changes.wanted.items()))
    db.executemany("INSERT OR REPLACE INTO scans (path, state) VALUES (?, ?)", list(changes.scans.items()))


def _expire(db: sqlite3.Connection, now: float, limits: Limits) -> list[str]:
    marks = ", ".join("?" * len(_FINAL))
    old = db.execute(
        f"SELECT id FROM jobs WHERE phase IN ({marks}) AND (ended < ? OR id NOT IN"  # noqa: S608 - only ?s are put in
        f" (SELECT id FROM jobs WHERE phase IN ({marks}) ORDER BY ended DESC, id DESC LIMIT ?))",
        (*_FINAL, now - limits.finished_age, *_FINAL, limits.finished_jobs),
    ).fetchall()
    db.executemany("DELETE FROM jobs WHERE id = ?", old)
    db.execute("DELETE FROM failures WHERE walk NOT IN (SELECT walk FROM jobs)")
    db.execute("DELETE FROM restored WHERE at < ?", (now - limits.restored_age,))
    db.execute("DELETE FROM leases WHERE expires < ?", (now,))
    db.execute(
        "DELETE FROM wanted WHERE path IN (SELECT path FROM wanted ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (limits.wanted_paths,),
    )
    db.execute("PRAGMA incremental_vacuum")
    return [str(number) for (number,) in old]
