"""What a simulated FSx must remember when its server ends: one SQLite file in its folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_FORMAT: Final = 1


class Record(NamedTuple):
    """One file: what tells it from others on the disk, and what the metadata servers know of it.

    `size` (bytes) and `mtime_ns` are those that the servers saw last; `verb` is the action in its queue, if any.
    """

    identity: bytes
    path: bytes
    seq: int
    oid: int
    flags: int
    archive_id: int
    size: int
    mtime_ns: int
    verb: str


class Records:
    """The file. Every change is there at once for the next server, if not for the next boot."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        (made_by,) = self._db.execute("PRAGMA user_version").fetchone()
        if made_by not in (0, _FORMAT):
            raise ValueError(f"{path} was made by another version of the simulator")
        self._db.execute(f"PRAGMA user_version = {_FORMAT}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS files (identity BLOB PRIMARY KEY, path BLOB, seq INT, oid INT, flags INT,"
            " archive_id INT, size INT, mtime_ns INT, verb TEXT) WITHOUT ROWID"
        )

    def __iter__(self) -> Iterator[Record]:
        """All records."""
        return map(Record._make, self._db.execute("SELECT * FROM files"))

    def keep(self, *records: Record) -> None:
        """Write records, new ones and changed ones."""
        self._db.executemany("REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", records)

    def forget(self, identity: bytes) -> None:
        """Remove the record of a file that is gone."""
        self._db.execute("DELETE FROM files WHERE identity = ?", (identity,))

    def close(self) -> None:
        """Close the file."""
        self._db.close()
