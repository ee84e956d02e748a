"""The table of routes: what there is, who may call it, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from fsxwarm.client import wire
from fsxwarm.daemon import requests
from fsxwarm.daemon.access import Caller, Rule
from fsxwarm.daemon.api import Api, Call
from fsxwarm.daemon.slurm_requests import SlurmBegin, SlurmEnd

Handler = Callable[[Api, Call], Awaitable[object]]
Stream = Callable[[Api, Call], AsyncIterator[object]]


class Route(NamedTuple):
    """One row. `owner` looks up whose the thing is that the path names; needed where the rule is OWNER.

    `answer` is the type of the answer, None for an empty one. `status` is that of success.
    """

    method: str
    path: str
    rule: Rule
    handler: Handler | Stream
    answer: Any
    status: int = 200
    query: type[BaseModel] = requests.Nothing
    body: type[BaseModel] | None = None
    owner: Callable[[Api, Caller, str], None] | None = None
    stream: bool = False


_JOB: Final = Api.must_own_job
_LEASE: Final = Api.must_own_lease

ROUTES: Final = (
    Route("POST", "/v1/jobs", Rule.MEMBER, Api.submit, wire.Job, 202, body=requests.JobWish),
    Route("GET", "/v1/jobs", Rule.MEMBER, Api.jobs, wire.Jobs, query=requests.JobsQuery),
    Route("GET", "/v1/jobs/{id}", Rule.OWNER, Api.job, wire.Job, owner=_JOB),
    Route("GET", "/v1/jobs/{id}/wait", Rule.OWNER, Api.wait, wire.Job, query=requests.WaitQuery, owner=_JOB),
    Route(
        "GET", "/v1/jobs/{id}/failures", Rule.OWNER, Api.failures, wire.Failures, query=requests.FailuresQuery,
        owner=_JOB,
    ),
    Route("DELETE", "/v1/jobs/{id}", Rule.OWNER, Api.cancel, wire.Job, owner=_JOB),
    Route("PATCH", "/v1/jobs/{id}", Rule.OWNER, Api.change, wire.Job, body=requests.JobChange, owner=_JOB),
    Route("POST", "/v1/leases", Rule.MEMBER, Api.lease, wire.Lease, 201, body=requests.LeaseWish),
    Route("GET", "/v1/leases", Rule.MEMBER, Api.leases, wire.Leases),
    Route("PATCH", "/v1/leases/{id}", Rule.OWNER, Api.renew, wire.Lease, body=requests.LeaseChange, owner=_LEASE),
    Route("DELETE", "/v1/leases/{id}", Rule.OWNER, Api.end_lease, None, 204, owner=_LEASE),
    Route("POST", "/v1/slurm/begin", Rule.MEMBER, Api.slurm_begin, wire.SlurmJob, body=SlurmBegin),
    Route("POST", "/v1/slurm/end", Rule.MEMBER, Api.slurm_end, wire.SlurmEnded, body=SlurmEnd),
    Route("GET", "/v1/coverage", Rule.MEMBER, Api.coverage, wire.Coverage, query=requests.CoverageQuery),
    Route("POST", "/v1/coverage", Rule.MEMBER, Api.count, wire.Counted, body=requests.CountWish),
    Route("GET", "/v1/health", Rule.MEMBER, Api.health, wire.Health),
    Route("GET", "/v1/overview", Rule.MEMBER, Api.overview, wire.Overview),
    Route("POST", "/v1/page", Rule.MEMBER, Api.page, wire.PageAddress, 201),
    Route("GET", "/v1/events", Rule.MEMBER, Api.events, wire.Event, stream=True),
)  # fmt: skip
