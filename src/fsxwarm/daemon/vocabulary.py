"""What the daemon's log may say: every event by name, with its level, its fields and what it means.

Names and fields are stable, for those who search logs by program. The README's table is made of this one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

Level = Literal["debug", "info", "warning", "error"]


class Line(StrEnum):
    """The events by name. Those of jobs and files are the engine's too, see `fsxwarm.model.job.Event`."""

    READY = "ready"
    STOPPING = "stopping"
    NOT_STORED = "not_stored"
    CONFIGURATION_READ = "configuration_read"
    CONFIGURATION_BAD = "configuration_bad"
    REQUEST_FAILED = "request_failed"
    PAGE_OPENED = "page_opened"
    PROBLEM = "problem"
    PROBLEM_OVER = "problem_over"
    NOTICE = "notice"
    LIBRARY = "library"

    JOB_QUEUED = "job_queued"
    JOB_RUNNING = "job_running"
    JOB_READY = "job_ready"
    JOB_RESTING = "job_resting"
    JOB_DONE = "job_done"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"

    FILE_RESIDENT = "file_resident"
    FILE_RESTORED = "file_restored"
    FILE_VANISHED = "file_vanished"
    FILE_CANCELLED = "file_cancelled"
    FILE_FAILED = "file_failed"
    FILE_BLOCKED = "file_blocked"
    FILE_UNREADABLE = "file_unreadable"
    FILE_STALLED = "file_stalled"
    FILE_WEDGED = "file_wedged"
    CURED = "cured"
    RETRY = "retry"
    CALL_HUNG = "call_hung"
    REPEATED = "repeated"

    SYSTEM_STALLED = "system_stalled"
    SYSTEM_MOVES = "system_moves"
    PAUSED = "paused"
    NO_ROOM = "no_room"
    ROOM_UNKNOWN = "room_unknown"
    NOT_ALLOWED = "not_allowed"
    SERVERS_CHANGED = "servers_changed"
    MADE_ROOM = "made_room"
    WOULD_MAKE_ROOM = "would_make_room"
    ROOM_SHORT = "room_short"
    TROUBLE = "trouble"


class About(NamedTuple):
    """What a line is about. `limited`: repeats are left out beyond a few, and counted."""

    level: Level
    fields: tuple[str, ...]
    meaning: str
    limited: bool = False


_ENDED: Final = ("job", "exit", "seconds", "found", "resident", "restored", "released", "failed", "blocked",
                 "vanished", "cancelled", "unreadable", "bytes", "reasons", "error")  # fmt: skip
_FILE: Final = ("job", "path", "size")
_MISSED: Final = (*_FILE, "reason", "errno", "attempts", "detail")

LINES: Final[dict[Line, About]] = {
    Line.READY: About("info", ("version", "socket", "uid"), "the daemon takes requests"),
    Line.STOPPING: About("info", (), "it was told to stop"),
    Line.NOT_STORED: About("warning", (), "what was under way could not be stored in time: the next start walks again"),
    Line.CONFIGURATION_READ: About(
        "info", ("after_restart",), "a new configuration holds, but for the tables that need a restart"
    ),
    Line.CONFIGURATION_BAD: About("error", ("error",), "the new configuration is bad: the old one still holds"),
    Line.REQUEST_FAILED: About(
        "error", ("method", "path", "error", "exception"), "a defect in answering a request; please report it", True
    ),
    Line.PAGE_OPENED: About("info", ("uid",), "a browser was let in, with this user's rights"),
    Line.PROBLEM: About("warning", ("message",), "something is wrong with the whole, see `fsxwarm top`"),
    Line.PROBLEM_OVER: About("info", ("message",), "it is not any more"),
    Line.NOTICE: About("warning", ("message",), "worth knowing: AWS credentials have expired, or are renewed"),
    Line.LIBRARY: About("warning", ("logger", "message", "error"), "a library warns", True),
    Line.JOB_QUEUED: About(
        "info",
        ("job", "owner", "kind", "paths", "listed", "priority", "label", "slurm_job_id"),
        "a job was taken on, and is durable",
    ),
    Line.JOB_RUNNING: About("info", ("job", "walk", "resumed"), "its walk has begun, for the first time or again"),
    Line.JOB_READY: About("info", ("job", "coverage", "seconds"), "the share asked for is resident"),
    Line.JOB_RESTING: About("info", (*_ENDED, "next_round"), "a keep-warm job has ended a round"),
    Line.JOB_DONE: About("info", _ENDED, "all of its files have settled"),
    Line.JOB_FAILED: About("error", _ENDED, "it could not be carried out"),
    Line.JOB_CANCELLED: About("info", _ENDED, "somebody let go of it"),
    Line.FILE_RESIDENT: About("debug", _FILE, "a file needed nothing"),
    Line.FILE_RESTORED: About("debug", (*_FILE, "attempts", "seconds"), "a file became resident"),
    Line.FILE_VANISHED: About("debug", _FILE, "a file was deleted or replaced meanwhile"),
    Line.FILE_CANCELLED: About("debug", (*_FILE, "reason"), "a file was let go of"),
    Line.FILE_FAILED: About("warning", _MISSED, "a file could not be restored", True),
    Line.FILE_BLOCKED: About("warning", _MISSED, "a file was not asked for: that would not help", True),
    Line.FILE_UNREADABLE: About(
        "warning", ("job", "path", "reason", "errno", "detail"), "a folder or list entry could not be looked at", True
    ),
    Line.FILE_STALLED: About("warning", ("job", "path", "seconds"), "its restore runs, but no bytes move", True),
    Line.FILE_WEDGED: About("warning", ("job", "path", "seconds"), "its request counts as running, unstarted", True),
    Line.CURED: About("info", ("job", "path"), "its stuck request was cancelled, and it is asked for again", True),
    Line.RETRY: About("info", ("job", "path", "seconds"), "it was asked for in vain, and will be again", True),
    Line.CALL_HUNG: About("warning", ("job", "path", "files"), "the request for it hangs in the kernel", True),
    Line.REPEATED: About("info", ("of", "job", "reason", "times"), "how many more lines like that were left out"),
    Line.SYSTEM_STALLED: About("warning", ("seconds",), "files are in flight and none becomes resident"),
    Line.SYSTEM_MOVES: About("info", (), "one has"),
    Line.PAUSED: About("warning", ("seconds",), "the coordinator takes no requests: asking pauses", True),
    Line.NO_ROOM: About("warning", (), "a file system has no room for more: its files are blocked", True),
    Line.ROOM_UNKNOWN: About("warning", (), "free space could not be measured", True),
    Line.NOT_ALLOWED: About("error", (), "the metadata server refuses every restore", True),
    Line.SERVERS_CHANGED: About(
        "info",
        ("file_systems",),
        "of how many file systems files need no look before they are asked for; what is under way begins anew",
    ),
    Line.MADE_ROOM: About("info", ("mount", "files", "bytes", "free", "wanted"), "files were released to make room"),
    Line.WOULD_MAKE_ROOM: About("info", ("mount", "files", "bytes", "free", "wanted"), "the same, were it no dry run"),
    Line.ROOM_SHORT: About(
        "warning", ("mount", "files", "bytes", "free", "wanted"), "not enough could be released to make room", True
    ),
    Line.TROUBLE: About("warning", ("what", "path", "message"), "something done by itself failed", True),
}


def table() -> str:
    """All of it as a table in Markdown."""
    rows = [
        f"| `{line}` | {about.level} | {', '.join(f'`{field}`' for field in about.fields)} | {about.meaning} |"
        for line, about in LINES.items()
    ]
    return "\n".join(["| event | level | fields | meaning |", "|---|---|---|---|", *rows]) + "\n"
