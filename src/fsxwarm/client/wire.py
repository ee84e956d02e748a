"""What goes over the daemon's socket, as JSON objects.

Names are stable: fields may be added, none is renamed or removed within a version of the API. Sizes are bytes, times
seconds since the epoch, durations seconds. How files are named is in `naming`.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict  # typing's own tells too little of itself before Python 3.12

from fsxwarm.client.naming import Exact, Name

VERSION = "v1"
SOCKET = "/run/fsxwarm/fsxwarm.sock"
COUNTS = (
    "found", "resident", "restored", "failed", "blocked", "vanished", "cancelled", "released", "already", "left",
    "left_in_flight",
)  # fmt: skip
"""Those of `Counters` that count files and bytes."""


class Count(TypedDict):
    """Files, and the sum of their sizes."""

    files: int
    bytes: int


class Options(TypedDict, total=False):
    """What a job wants beyond its files; see `fsxwarm.model.job.JobOptions`."""

    ready: float | None
    deadline: float | None
    fit: bool
    order: Literal["listed", "path", "largest", "smallest", "newest"]
    used_before: int | None
    dry_run: bool
    every: float
    check_s3: Literal["auto", "always", "never"]


class JobWish(TypedDict):
    """`POST /v1/jobs`: absolute `paths` (folders or files) and `files` (a list that keeps its order)."""

    kind: Literal["preload", "release", "keep_warm"]
    paths: NotRequired[list[str | Exact]]
    files: NotRequired[list[str | Exact]]
    include: NotRequired[list[str]]
    exclude: NotRequired[list[str]]
    options: NotRequired[Options]
    priority: NotRequired[int]
    label: NotRequired[str]
    slurm_job_id: NotRequired[str]


class CountWish(TypedDict):
    """`POST /v1/coverage`: absolute `paths` and `files` (a list) to count, by folders `depth` levels deep."""

    paths: NotRequired[list[str | Exact]]
    files: NotRequired[list[str | Exact]]
    include: NotRequired[list[str]]
    exclude: NotRequired[list[str]]
    depth: NotRequired[int | None]
    flags: NotRequired[bool]


class LeaseWish(TypedDict):
    """`POST /v1/leases`: nothing below `path` is to be released for so many seconds."""

    path: str | Exact
    seconds: float
    label: NotRequired[str]
    slurm_job_id: NotRequired[str]


class Counters(TypedDict):
    """How far a job has come; see `fsxwarm.model.job.Counters`."""

    found: Count
    resident: Count
    restored: Count
    failed: Count
    blocked: Count
    vanished: Count
    cancelled: Count
    released: Count
    already: Count
    left: Count
    left_in_flight: Count
    unreadable: int
    skipped: int
    scanned: bool
    reasons: dict[str, int]


class Job(TypedDict):
    """A job at one moment. `owner` is a uid, `exit` the status that a command for it ends with, once it has ended.

    `listed` files are those of its list, `digest` tells equal lists; empty where there is none.
    """

    id: str
    kind: Literal["preload", "release", "keep_warm"]
    phase: Literal["queued", "running", "resting", "done", "failed", "cancelled"]
    final: bool
    owner: int
    paths: list[Name]
    listed: int
    digest: str
    include: list[str]
    exclude: list[str]
    options: Options
    priority: int
    label: str
    slurm_job_id: str
    created: float
    started: float | None
    ended: float | None
    ready: bool
    exit: int | None
    error: str
    rounds: int
    resumed: int
    next_round: float | None
    counters: Counters
    coverage: float
    files_per_second: float
    bytes_per_second: float
    eta: float | None


class Jobs(TypedDict):
    """Jobs, the newest first."""

    jobs: list[Job]


class Failure(Name):
    """A file that did not become resident, or was left alone."""

    number: int
    at: float
    outcome: str
    reason: str
    errno: int
    flags: int | None
    attempts: int
    detail: str
    size: int
    in_flight: bool


class Failures(TypedDict):
    """Some failures of a job; `next` is what to ask for `after`, None at the end."""

    failures: list[Failure]
    next: int | None


class Lease(Name):
    """A promise that holds until `expires`."""

    id: str
    owner: int
    created: float
    expires: float
    label: str
    slurm_job_id: str


class Leases(TypedDict):
    """The leases that hold now."""

    leases: list[Lease]


class Trouble(Name):
    """A path at which something failed: `errno` as the system gives it, `text` in words."""

    errno: int
    text: str


class Share(TypedDict):
    """How much is resident, and how much only in S3."""

    resident: Count
    released: Count
    coverage: float


class Found(Share):
    """What was found, as far as the caller may look; of the `troubles` the first are named."""

    unknown: Count
    vanished: int
    skipped: int
    troubles: int
    first_troubles: list[Trouble]


class Coverage(Name, Found):
    """How much under a path is resident."""


class Folder(Name, Share):
    """How much below a folder is resident."""


class Flagged(TypedDict):
    """Files by flag; one may count several times, or never. `unread` could not be opened."""

    dirty: Count
    never_archived: Count
    pinned: Count
    lost: Count
    restoring: Count
    unread: Count


class Unusable(TypedDict):
    """Entries of a list that cannot be taken: how many, and the first of them."""

    count: int
    first: list[Name]


class Counted(Found):
    """The answer to `POST /v1/coverage`. `flags` and `folders` are there if they were asked for."""

    missing: Unusable
    outside: Unusable
    flags: NotRequired[Flagged]
    folders: NotRequired[list[Folder]]


class Lane(TypedDict):
    """A file system's metadata target: files in flight of all jobs together, and how many may be.

    `stalled` are those in flight whose restores do not move.
    """

    dev: int
    mdt: int
    window: int
    in_flight: int
    stalled: int
    watched: int
    waiting: int


class Space(Name):
    """Room on a file system, in bytes."""

    free: int
    total: int


class Room(Space):
    """Room on a file system, and the free space at which more is made (`low`) and up to which (`high`); 0: none is."""

    low: int
    high: int
    dry_run: bool


class Stock(Name):
    """What the inventory counted below a configured path; it had done so `at`."""

    resident: Count
    released: Count
    at: float


class Slow(Name):
    """A file that has been at FSx for long: `moved` bytes so far, None where that is not known."""

    size: int
    jobs: list[str]
    phase: str
    seconds: float
    moved: int | None
    attempts: int


class Sample(TypedDict):
    """One moment of the last hour; `restored_*` count over the daemon's life."""

    at: float
    window: int
    in_flight: int
    restored_files: int
    restored_bytes: int


class Health(TypedDict):
    """How the daemon fares. `problems` and `inventory` may name paths: they are there for administrators only."""

    ok: bool
    version: str
    draining: bool
    started: float
    stalled: bool
    abandoned: int
    jobs: dict[str, int]
    lanes: list[Lane]
    totals: dict[str, int]
    space: list[Space]
    problems: NotRequired[list[str]]
    inventory: NotRequired[list[dict[str, object]]]


class Overview(TypedDict):
    """The whole at a glance: the caller's jobs (those that have not ended first), everybody's window and space."""

    at: float
    limit: str
    health: Health
    jobs: list[Job]
    slowest: list[Slow]
    rooms: list[Room]
    stocks: list[Stock]
    past: list[Sample]


class PageAddress(TypedDict):
    """Where a browser finds the page: once, and until `expires`."""

    address: str
    expires: float


class Event(TypedDict):
    """One line of `GET /v1/events`. Files in `data` are named for administrators and the owner of `job` only."""

    at: float
    kind: str
    job: str
    data: dict[str, object]


SlurmState = Literal["none", "warming", "ready", "late", "failed"]
"""Where what a job of Slurm needs stands; `late`: its deadline has passed, it may begin with what is there."""


class SlurmJob(TypedDict):
    """The answer to `POST /v1/slurm/begin`: `message` is one line for a log; `job` that of the daemon, or empty."""

    state: SlurmState
    message: str
    job: str
    exit: int | None
    coverage: float


class SlurmEnded(TypedDict):
    """The answer to `POST /v1/slurm/end`: jobs cancelled, leases ended, the job that gives the space back, or empty."""

    message: str
    cancelled: list[str]
    leases: int
    release: str


class Error(TypedDict):
    """What was wrong: `kind` is a stable word of `fsxwarm.errors.Kind`."""

    kind: str
    message: str
    hint: str


class Failed(TypedDict):
    """Every answer that is no result."""

    error: Error
