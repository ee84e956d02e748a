"""What a request may say: checked strictly, unknown fields refused."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from fsxwarm.client import naming
from fsxwarm.engine.addresses import is_address
from fsxwarm.engine.counting import CountRequest
from fsxwarm.model.job import DEFAULT_PRIORITY, TOP_PRIORITY, Identity, JobOptions, JobRequest, Kind
from fsxwarm.model.lease import MOST_SECONDS, LeaseRequest
from fsxwarm.model.order import Order
from fsxwarm.model.patterns import compile_globs
from fsxwarm.model.s3 import CheckS3

_LONGEST_PATH: Final = 4096
"""Of characters: PATH_MAX is as many bytes."""
_LONGEST_LISTED: Final = 2**17
"""Of characters in a job's names: what no file system takes fails by itself, as `name too long`, not the whole list."""
_LONGEST_GLOB: Final = 1000
_MOST_PATHS: Final = 10_000
_MOST_GLOBS: Final = 100
_LATEST: Final = 2**40
"""A time in seconds since the epoch that nobody will see."""
_YEAR: Final = 365 * 86400.0
_EACH_ROUND: Final = 60.0
LONGEST_WAIT: Final = 60.0
"""Seconds of one long poll."""
MOST_FAILURES: Final = 10_000
MOST_JOBS: Final = 10_000


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _path(named: str | Exact) -> str | Exact:
    if not _bytes(named).startswith(b"/"):
        raise ValueError("must be an absolute path")
    return _place(named)


def _place(named: str | Exact) -> str | Exact:
    path = _bytes(named)
    if not (path.startswith(b"/") or is_address(path)):
        raise ValueError("must be an absolute path or an S3 address")
    if b"\0" in path:
        raise ValueError("no path has a NUL in it")
    return named


def _glob(glob: str) -> str:
    compile_globs([glob])
    return glob


class Exact(_Body):
    """A path byte by byte, in base64."""

    path_b64: Annotated[str, Field(max_length=2 * _LONGEST_LISTED)]

    @property
    def exact(self) -> bytes:
        """The path."""
        return naming.exact({"path_b64": self.path_b64})


_Text = Annotated[str, Field(max_length=_LONGEST_PATH, json_schema_extra={"pattern": "^/[^\u0000]*$"})]
_Path = Annotated[_Text | Exact, AfterValidator(_path)]
_PlaceText = Annotated[
    str, Field(max_length=_LONGEST_LISTED, json_schema_extra={"pattern": "^(/|[sS]3://)[^\u0000]*$"})
]
_Place = Annotated[_PlaceText | Exact, AfterValidator(_place)]
_Glob = Annotated[str, Field(min_length=1, max_length=_LONGEST_GLOB), AfterValidator(_glob)]
_Word = Annotated[str, Field(max_length=200)]
_Priority = Annotated[int, Field(ge=0, le=TOP_PRIORITY)]


def _bytes(named: str | Exact) -> bytes:
    return named.exact if isinstance(named, Exact) else naming.exact(named)


class WishOptions(_Body):
    """What a job wants beyond its files. Times in seconds."""

    ready: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    deadline: Annotated[float, Field(gt=0, le=_YEAR, allow_inf_nan=False)] | None = None
    fit: bool = False
    order: Literal["listed", "path", "largest", "smallest", "newest"] = "listed"
    used_before: Annotated[int, Field(ge=0, le=_LATEST)] | None = None
    dry_run: bool = False
    every: Annotated[float, Field(ge=_EACH_ROUND, le=_YEAR, allow_inf_nan=False)] = 3600.0
    check_s3: Literal["auto", "always", "never"] = "auto"

    def to_model(self) -> JobOptions:
        """As the engine has them."""
        return JobOptions(
            ready=self.ready, deadline=self.deadline, fit=self.fit, order=Order(self.order),
            used_before=self.used_before, dry_run=self.dry_run, every=self.every,
            check_s3=CheckS3(self.check_s3),
        )  # fmt: skip


class JobWish(_Body):
    """A job to be taken on: absolute `paths` (folders or files), and `files`, a list that keeps its order.

    S3 addresses stand for the paths at which they show.
    """

    kind: Literal["preload", "release", "keep_warm"]
    paths: Annotated[list[_Place], Field(max_length=_MOST_PATHS)] = []
    files: list[_Place] = []
    include: Annotated[list[_Glob], Field(max_length=_MOST_GLOBS)] = []
    exclude: Annotated[list[_Glob], Field(max_length=_MOST_GLOBS)] = []
    options: WishOptions = WishOptions()
    priority: _Priority = DEFAULT_PRIORITY
    label: _Word = ""
    slurm_job_id: _Word = ""

    def to_model(self, identity: Identity, *, admin: bool) -> JobRequest:
        """As the engine has it, for whom the kernel named."""
        return JobRequest(
            kind=Kind(self.kind),
            identity=identity,
            admin=admin,
            paths=tuple(map(_bytes, self.paths)),
            files=tuple(map(_bytes, self.files)),
            include=tuple(self.include),
            exclude=tuple(self.exclude),
            options=self.options.to_model(),
            priority=self.priority,
            label=self.label,
            slurm_job_id=self.slurm_job_id,
        )


class CountWish(_Body):
    """What to count: under absolute `paths`, and in `files`, a list.

    With `depth` also by folders, so many levels below each path; with `flags` by the files' flags, which opens each.
    """

    paths: Annotated[list[_Place], Field(max_length=_MOST_PATHS)] = []
    files: list[_Place] = []
    include: Annotated[list[_Glob], Field(max_length=_MOST_GLOBS)] = []
    exclude: Annotated[list[_Glob], Field(max_length=_MOST_GLOBS)] = []
    depth: Annotated[int, Field(ge=0, le=_LONGEST_PATH)] | None = None
    flags: bool = False

    def to_model(self) -> CountRequest:
        """As the engine has it."""
        return CountRequest(
            paths=tuple(map(_bytes, self.paths)),
            files=tuple(map(_bytes, self.files)),
            include=tuple(self.include),
            exclude=tuple(self.exclude),
            depth=self.depth,
            flags=self.flags,
        )


class JobChange(_Body):
    """What may be changed of a job."""

    priority: _Priority


_LeaseTime = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)]


class LeaseWish(_Body):
    """Nothing below `path` is to be released for so many seconds."""

    path: _Path
    seconds: _LeaseTime
    label: _Word = ""
    slurm_job_id: _Word = ""

    @property
    def exact(self) -> bytes:
        """The path."""
        return _bytes(self.path)

    def to_model(self, uid: int, path: bytes) -> LeaseRequest:
        """As the engine has it, for the place that the path turned out to be."""
        return LeaseRequest(uid, path, self.seconds, self.label, self.slurm_job_id)


class LeaseChange(_Body):
    """How long a lease lasts from now on, in seconds."""

    seconds: _LeaseTime


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(_Query):
    """A request without parameters."""


class JobsQuery(_Query):
    """How many jobs to show."""

    limit: Annotated[int, Field(ge=1, le=MOST_JOBS)] = 1000


class WaitQuery(_Query):
    """How many seconds to wait at most."""

    timeout: Annotated[float, Field(ge=0, le=LONGEST_WAIT, allow_inf_nan=False)] = 30.0


class FailuresQuery(_Query):
    """Failures behind the number `after`, and how many of them."""

    after: Annotated[int, Field(ge=0, lt=2**63)] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_FAILURES)] = 1000


def _query_path(text: object) -> object:
    """Keep bytes that are no UTF-8, which the query holds as surrogates, for validation as a path."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            return naming.wish(text.encode("utf-8", "surrogateescape"))
    return text


class CoverageQuery(_Query):
    """The path to look at."""

    path: Annotated[_Text | Exact, AfterValidator(_path), BeforeValidator(_query_path, json_schema_input_type=_Text)]

    @property
    def exact(self) -> bytes:
        """The path."""
        return _bytes(self.path)
