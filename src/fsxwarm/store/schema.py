"""The tables, and the steps from each version of them to the next."""

from __future__ import annotations

import sqlite3
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind

APPLICATION: Final = 0x46735877
"""`application_id` of our files ("FsXw"), so that no other program's is ever taken for one."""

STEPS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, phase TEXT NOT NULL, ended REAL, walk TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE TABLE lists (
        job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, files BLOB NOT NULL
    );
    CREATE TABLE failures (
        number INTEGER PRIMARY KEY AUTOINCREMENT, walk TEXT NOT NULL, at REAL NOT NULL, path BLOB NOT NULL,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, errno INTEGER NOT NULL, flags INTEGER, attempts INTEGER NOT NULL,
        detail TEXT NOT NULL
    );
    CREATE INDEX failures_by_walk ON failures (walk, number);
    CREATE TABLE leases (
        id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, path BLOB NOT NULL, created REAL NOT NULL,
        expires REAL NOT NULL, label TEXT NOT NULL, slurm_job_id TEXT NOT NULL
    );
    CREATE TABLE totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE restored (at REAL NOT NULL, files BLOB NOT NULL);
    CREATE INDEX restored_by_time ON restored (at);
    CREATE TABLE wanted (path BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE scans (path BLOB PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
    """,
    """
    UPDATE jobs SET body = json_set(body, '$.options.check_s3', 'auto');
    """,
    """
    ALTER TABLE failures ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE failures ADD COLUMN in_flight INTEGER NOT NULL DEFAULT 0;
    """,
)
"""Step n leads from version n to n + 1. A step that was released is never changed.

A field more or less in what `codec` writes of a job is a step too: a version before it could not read the job.
"""

VERSION: Final = len(STEPS)


def prepare(db: sqlite3.Connection, name: str) -> None:
    """Make a new file's tables, or bring an older file's up to date; FsxwarmError STORE for what is not ours."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    empty = not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if application != APPLICATION and not (empty and version == 0 and application == 0):
        raise FsxwarmError(Kind.STORE, f"{name} is another program's database", hint="name another state directory")
    if version > VERSION:
        raise FsxwarmError(
            Kind.STORE,
            f"{name} was written by a newer fsxwarm: its version is {version}, this one knows {VERSION}",
            hint="install the newer version again, or move the file away to begin without its jobs",
        )
    for step in range(version, VERSION):
        pragmas = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {step + 1}"
        db.executescript(f"BEGIN IMMEDIATE; {STEPS[step]}; {pragmas}; COMMIT")
