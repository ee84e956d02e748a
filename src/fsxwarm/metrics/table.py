"""The table of metrics: name, type, labels, meaning, and where each is read from.

Names and units by Prometheus' conventions (prometheus.io/docs/practices/naming). Labels take few values: configured
paths, mount points, metadata targets, and words of closed sets.
"""

from __future__ import annotations

import platform
from enum import Enum
from typing import Final, NamedTuple

from fsxwarm.metrics import reading
from fsxwarm.metrics.reading import Read
from fsxwarm.model.messages import Word
from fsxwarm.model.outcome import Outcome


class Type(Enum):
    """Prometheus' types of metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One row. `name` as it is queried for (counters with `_total`, histograms without `_bucket`)."""

    name: str
    type: Type
    labels: tuple[str, ...]
    meaning: str
    read: Read


_G, _C, _H = Type.GAUGE, Type.COUNTER, Type.HISTOGRAM
_MOUNT: Final = ("mount",)
_LANE: Final = ("mount", "mdt")
_STOCK: Final = ("mount", "path")

TABLE: Final = (
    Metric(
        "fsxwarm_build_info",
        _G,
        ("version", "python"),
        "1: which fsxwarm, on which Python",
        lambda now: [((now.version, platform.python_version()), 1)],
    ),
    # how much is warm
    Metric(
        "fsxwarm_inventory_files",
        _G,
        (*_STOCK, "state"),
        "Files below a path of the inventory, by state: resident, released",
        reading.stocks_by("files"),
    ),
    Metric("fsxwarm_inventory_bytes", _G, (*_STOCK, "state"), "Their sizes", reading.stocks_by("bytes")),
    Metric(
        "fsxwarm_inventory_archived_files",
        _G,
        _STOCK,
        "Files with a full copy in S3, resident or not",
        reading.stocks("archived_files"),
    ),
    Metric("fsxwarm_inventory_archived_bytes", _G, _STOCK, "Their sizes", reading.stocks("archived_bytes")),
    Metric(
        "fsxwarm_inventory_flagged_files",
        _G,
        (*_STOCK, "flag"),
        "Files by flag: dirty, not_archived, pinned, lost",
        reading.stocks_by("flagged"),
    ),
    Metric(
        "fsxwarm_inventory_unread_files",
        _G,
        _STOCK,
        "Files whose flags may not be read: they count as resident or released alone",
        reading.stocks("unread"),
    ),
    Metric(
        "fsxwarm_inventory_scan_timestamp_seconds",
        _G,
        _STOCK,
        "When the scan that counted all this ended",
        reading.stocks("ended"),
    ),
    Metric(
        "fsxwarm_inventory_scanning",
        _G,
        ("path",),
        "1 while the path is being counted anew",
        reading.service_by("scans"),
    ),
    Metric(
        "fsxwarm_keep_warm_coverage_ratio",
        _G,
        ("path",),
        "Resident bytes of all bytes at the end of the last round of a keep-warm entry",
        reading.rounds("coverage"),
    ),
    Metric(
        "fsxwarm_keep_warm_round_timestamp_seconds", _G, ("path",), "When that round ended", reading.rounds("ended")
    ),
    Metric(
        "fsxwarm_keep_warm_interval_seconds",
        _G,
        ("path",),
        "How long a keep-warm entry rests between rounds",
        reading.rounds("every"),
    ),
    # warming
    Metric(
        "fsxwarm_settled_files_total",
        _C,
        ("outcome",),
        "Wanted files that have settled; resident are those that a stat did not prove to be",
        reading.settled,
    ),
    Metric("fsxwarm_restored_bytes_total", _C, (), "Bytes of the files that became resident", reading.restored_bytes),
    Metric(
        "fsxwarm_failed_files_total",
        _C,
        ("reason",),
        "Files that were asked for and did not become resident",
        reading.failed_because(Outcome.FAILED),
    ),
    Metric(
        "fsxwarm_blocked_files_total",
        _C,
        ("reason",),
        "Files not asked for, for a reason that asking would not change",
        reading.failed_because(Outcome.BLOCKED),
    ),
    Metric(
        "fsxwarm_restore_duration_seconds",
        _H,
        ("size",),
        "Time from asking for a file until it was seen resident, by size (up to)",
        reading.restore_times,
    ),
    Metric(
        "fsxwarm_requests_total",
        _C,
        (),
        "Restore requests, each of up to 50 files",
        lambda now: reading.one(now.meter.requests),
    ),
    Metric(
        "fsxwarm_requested_files_total",
        _C,
        (),
        "Files asked for in them",
        lambda now: reading.one(now.meter.requested_files),
    ),
    Metric(
        "fsxwarm_retries_total",
        _C,
        (),
        "Restores that brought nothing and are tried again",
        reading.of_word(Word.RETRY),
    ),
    Metric(
        "fsxwarm_stalled_files_total",
        _C,
        (),
        "Files whose restore ran and moved no bytes",
        reading.of_word(Word.FILE_STALLED),
    ),
    Metric(
        "fsxwarm_wedged_files_total",
        _C,
        (),
        "Files whose request counted as running and was never started",
        reading.of_word(Word.FILE_WEDGED),
    ),
    Metric(
        "fsxwarm_cured_files_total",
        _C,
        (),
        "Stuck requests that were cancelled, to be asked for again",
        reading.of_word(Word.CURED),
    ),
    Metric("fsxwarm_pauses_total", _C, (), "Times that the coordinator took no requests", reading.of_word(Word.PAUSED)),
    Metric(
        "fsxwarm_stalled", _G, (), "1 while files are in flight and none becomes resident", reading.service("stalled")
    ),
    Metric(
        "fsxwarm_in_flight_files",
        _G,
        _LANE,
        "Files of ours that may be queued or running at FSx",
        reading.lanes("in_flight"),
    ),
    Metric("fsxwarm_window_files", _G, _LANE, "How many of ours may be in flight", reading.lanes("window")),
    Metric(
        "fsxwarm_watched_files",
        _G,
        _LANE,
        "Files that others have in flight, and that are waited for",
        reading.lanes("watched"),
    ),
    Metric("fsxwarm_waiting_files", _G, _LANE, "Files that wait for their turn", reading.lanes("waiting")),
    Metric(
        "fsxwarm_restoring_bytes",
        _G,
        _MOUNT,
        "Bytes asked for, or about to be, and not resident yet",
        lambda now: [((mount,), size) for mount, size in now.restoring.items()],
    ),
    Metric(
        "fsxwarm_scanned_files_total",
        _C,
        (),
        "Files that walks came upon",
        lambda now: reading.one(now.meter.scanned_files),
    ),
    # jobs and promises
    Metric("fsxwarm_jobs", _G, ("kind", "phase"), "Jobs that the daemon knows", reading.jobs),
    Metric(
        "fsxwarm_jobs_ended_total",
        _C,
        ("exit",),
        "Jobs and rounds that have ended, by what their exit status means",
        reading.service_by("ended"),
    ),
    Metric(
        "fsxwarm_jobs_behind_deadline",
        _G,
        (),
        "Running jobs that will not make their deadline at the present rate",
        reading.service("behind"),
    ),
    Metric(
        "fsxwarm_queued_files",
        _G,
        ("priority",),
        "Files found by walks that have not settled, by priority: low, normal (50), high",
        reading.service_pair("queued", 0),
    ),
    Metric("fsxwarm_queued_bytes", _G, ("priority",), "Their sizes", reading.service_pair("queued", 1)),
    Metric("fsxwarm_leases", _G, (), "Leases that hold", reading.service("leases")),
    # space
    Metric("fsxwarm_filesystem_free_bytes", _G, _MOUNT, "Free space of a file system", reading.spaces("free")),
    Metric("fsxwarm_filesystem_size_bytes", _G, _MOUNT, "Its size", reading.spaces("size")),
    Metric("fsxwarm_fullest_ost_free_bytes", _G, _MOUNT, "Free space of its fullest OST", reading.fullest(0)),
    Metric("fsxwarm_fullest_ost_size_bytes", _G, _MOUNT, "That OST's size", reading.fullest(1)),
    Metric(
        "fsxwarm_restore_limit_bytes_per_second",
        _G,
        _MOUNT,
        "What the file system's tier takes in, when AWS could be asked",
        lambda now: [((mount,), rate) for mount, rate in now.limits.items()],
    ),
    Metric(
        "fsxwarm_released_files_total",
        _C,
        ("by",),
        "Files released, by jobs and by make_room",
        reading.service_pair("released", 0),
    ),
    Metric("fsxwarm_released_bytes_total", _C, ("by",), "Their sizes", reading.service_pair("released", 1)),
    Metric(
        "fsxwarm_make_room_short_bytes",
        _G,
        _MOUNT,
        "What making room could not find, below its high mark",
        reading.service_by("short"),
    ),
    # the file system's and AWS's answers
    Metric(
        "fsxwarm_call_duration_seconds",
        _H,
        ("call",),
        "Time that calls to the file system took, by ioctl or lfs",
        reading.calls,
    ),
    Metric(
        "fsxwarm_call_errors_total",
        _C,
        ("call", "error"),
        "Files that they could not do by errno, calls that hung",
        reading.call_errors,
    ),
    Metric(
        "fsxwarm_abandoned_processes",
        _G,
        (),
        "Helpers and children that hang in the kernel",
        lambda now: reading.one(now.abandoned),
    ),
    Metric(
        "fsxwarm_association_usable",
        _G,
        (*_STOCK, "lifecycle"),
        "1 if restores through an association can succeed, when AWS could be asked",
        reading.links,
    ),
    Metric(
        "fsxwarm_aws_calls_total",
        _C,
        ("action", "result"),
        "Calls to AWS by IAM action; result ok, or what was wrong",
        reading.aws_calls,
    ),
    Metric(
        "fsxwarm_aws_throttled_total",
        _C,
        ("action",),
        "Answers of AWS that asked for fewer calls",
        reading.aws_throttled,
    ),
    # the daemon itself
    Metric("fsxwarm_start_timestamp_seconds", _G, (), "When the daemon started", reading.service("started")),
    Metric(
        "fsxwarm_problems",
        _G,
        (),
        "How many problems the daemon has right now; `fsxwarm top` names them",
        reading.service("problems"),
    ),
    Metric(
        "fsxwarm_errand_failing",
        _G,
        ("errand",),
        "1 if what is done again and again failed the last time",
        reading.service_by("errands"),
    ),
    Metric(
        "fsxwarm_loop_lag_seconds",
        _H,
        (),
        "By how much the event loop was late",
        reading.loop_lag,
    ),
    # one run
    Metric(
        "fsxwarm_run_start_timestamp_seconds",
        _G,
        (),
        "When the run began (--metrics-file alone, as the next five)",
        reading.run("started"),
    ),
    Metric("fsxwarm_run_end_timestamp_seconds", _G, (), "When it ended", reading.run("ended")),
    Metric("fsxwarm_run_exit_status", _G, (), "Its exit status", reading.run("exit")),
    Metric("fsxwarm_run_found_files", _G, (), "Files that it found", reading.run("found_files")),
    Metric("fsxwarm_run_found_bytes", _G, (), "Their sizes", reading.run("found_bytes")),
    Metric("fsxwarm_run_coverage_ratio", _G, (), "Resident bytes of all bytes found", reading.run("coverage")),
)
