"""A client of the daemon's API: blocking calls over its unix socket, with nothing but the standard library.

Blocking, because those who use it (commands, Slurm hooks) do one thing at a time, and start in a few milliseconds.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self, cast
from urllib.parse import quote, urlencode

from fsxwarm.client import wire
from fsxwarm.errors import CONSEQUENCES, FsxwarmError, Kind, reason

_UCRED: Final = struct.Struct("3i")
_LONGEST_WAIT: Final = 60.0
SPARE: Final = 15.0
"""Seconds beyond a long poll's own that its answer may take."""


class Client:
    """Talks to the daemon whose socket is at `path`. `timeout`: seconds that an answer may take.

    Errors are FsxwarmError: those that the daemon answers with, and NO_DAEMON where there is none. A socket that
    belongs neither to root nor to this user is not talked to: anybody might have put it there.
    """

    def __init__(self, path: str = wire.SOCKET, *, timeout: float = 30.0) -> None:
        self.path = path
        self._timeout = timeout
        self._connection: _Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ---- jobs --------------------------------------------------------------------------------------------------

    def submit(self, wish: wire.JobWish) -> wire.Job:
        """Ask for a job; returns once it is durable."""
        return cast("wire.Job", self._call("POST", "jobs", wish))

    def jobs(self) -> list[wire.Job]:
        """The caller's jobs, all of them for an administrator, the newest first."""
        return cast("wire.Jobs", self._call("GET", "jobs"))["jobs"]

    def job(self, job: str) -> wire.Job:
        """One job."""
        return cast("wire.Job", self._call("GET", f"jobs/{quote(job, safe='')}"))

    def wait(self, job: str, timeout: float = _LONGEST_WAIT) -> wire.Job:
        """Wait up to `timeout` seconds (at most 60) until a job becomes ready or ends; how it stands then."""
        seconds = min(timeout, _LONGEST_WAIT)
        answer = self._call("GET", f"jobs/{quote(job, safe='')}/wait", query={"timeout": seconds}, spare=seconds)
        return cast("wire.Job", answer)

    def cancel(self, job: str) -> wire.Job:
        """Let go of a job."""
        return cast("wire.Job", self._call("DELETE", f"jobs/{quote(job, safe='')}"))

    def set_priority(self, job: str, priority: int) -> wire.Job:
        """Change a job's priority (0 to 100)."""
        return cast("wire.Job", self._call("PATCH", f"jobs/{quote(job, safe='')}", {"priority": priority}))

    def failures(self, job: str) -> Iterator[wire.Failure]:
        """A job's files that did not become resident, asked for page by page."""
        after: int | None = 0
        while after is not None:
            answer = self._call("GET", f"jobs/{quote(job, safe='')}/failures", query={"after": after})
            page = cast("wire.Failures", answer)
            yield from page["failures"]
            after = page["next"]

    # ---- leases, and what there is to see ----------------------------------------------------------------------

    def lease(self, wish: wire.LeaseWish) -> wire.Lease:
        """Ask that a path is not released for some time."""
        return cast("wire.Lease", self._call("POST", "leases", wish))

    def renew(self, job: str, seconds: float) -> wire.Lease:
        """Let a lease run out so many seconds from now instead."""
        return cast("wire.Lease", self._call("PATCH", f"leases/{quote(job, safe='')}", {"seconds": seconds}))

    def release_lease(self, job: str) -> None:
        """End a lease before its time."""
        self._call("DELETE", f"leases/{quote(job, safe='')}")

    def leases(self) -> list[wire.Lease]:
        """The caller's leases, all of them for an administrator."""
        return cast("wire.Leases", self._call("GET", "leases"))["leases"]

    def coverage(self, path: bytes, *, timeout: float = 3600.0) -> wire.Coverage:
        """How much under a path is resident; takes as long as the walk does."""
        answer = self._call("GET", "coverage", query={"path": path}, spare=timeout)
        return cast("wire.Coverage", answer)

    def count(self, wish: wire.CountWish, *, timeout: float = 3600.0) -> wire.Counted:
        """How much of paths or of a list is resident, in detail; takes as long as the walk does."""
        return cast("wire.Counted", self._call("POST", "coverage", wish, spare=timeout))

    def health(self) -> wire.Health:
        """How the daemon fares."""
        return cast("wire.Health", self._call("GET", "health"))

    def overview(self) -> wire.Overview:
        """The whole at a glance."""
        return cast("wire.Overview", self._call("GET", "overview"))

    def page(self) -> wire.PageAddress:
        """A one-time address of the page, with the caller's rights."""
        return cast("wire.PageAddress", self._call("POST", "page"))

    def events(self) -> Iterator[wire.Event]:
        """What happens from now on, until the daemon stops or the iterator is closed."""
        connection = self._connect(None)
        try:
            response = self._send(connection, "GET", "events", None)
            if response.status != http.client.OK:
                raise refused(response.status, response.read())
            for line in response:
                if line.strip():
                    yield cast("wire.Event", json.loads(line))
        except (OSError, http.client.HTTPException):
            return  # the daemon has gone: whoever listens asks again
        finally:
            connection.close()

    # ---- calls -------------------------------------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        spare: float = 0.0,
    ) -> object:
        """Make one call. A connection that the daemon has closed meanwhile is opened anew, where nothing was asked."""
        target = f"{path}?{urlencode(query)}" if query else path
        kept = self._connection is not None
        connection = self._connection or self._connect(self._timeout)
        self._connection = connection
        connection.settimeout(self._timeout if not spare else spare + SPARE)
        try:
            response = self._send(connection, method, target, body)
            data = response.read()
        except TimeoutError:
            self.close()
            raise FsxwarmError(Kind.NO_DAEMON, f"the daemon at {self.path} does not answer") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if kept and method == "GET":
                return self._call(method, path, body, query=query, spare=spare)
            raise FsxwarmError(Kind.NO_DAEMON, f"the daemon at {self.path} hung up: {reason(error)}") from None
        if response.will_close:
            self.close()
        if response.status >= http.client.BAD_REQUEST:
            raise refused(response.status, data)
        return json.loads(data) if data else None

    def _connect(self, timeout: float | None) -> _Connection:
        connection = _Connection(self.path, timeout)
        try:
            connection.connect()
        except PermissionError:
            raise FsxwarmError(
                Kind.NO_PERMISSION, f"the daemon at {self.path} is not for this user", hint="ask to join its group"
            ) from None
        except OSError as error:
            raise FsxwarmError(Kind.NO_DAEMON, f"there is no daemon at {self.path}: {reason(error)}") from None
        if connection.server_uid not in (0, os.geteuid()):
            connection.close()
            raise FsxwarmError(
                Kind.NO_DAEMON,
                f"{self.path} is not the daemon's: it belongs to uid {connection.server_uid}",
                hint="tell the administrator; nothing was sent",
            )
        return connection

    @staticmethod
    def _send(
        connection: _Connection, method: str, target: str, body: Mapping[str, Any] | None
    ) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        connection.request(method, f"/{wire.VERSION}/{target}", data, headers)
        return connection.getresponse()


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path
        self.server_uid = -1

    def connect(self) -> None:
        """Connect, and find out who listens."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self._path)
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        except OSError:
            sock.close()
            raise
        self.server_uid = _UCRED.unpack(credentials)[1]
        self.sock = sock

    def settimeout(self, seconds: float | None) -> None:
        """How long each part of an answer may take."""
        if self.sock is not None:
            self.sock.settimeout(seconds)


def refused(status: int, data: bytes) -> FsxwarmError:
    """The error that the daemon answered with."""
    try:
        error = json.loads(data)["error"]
        kind, message, hint = Kind(error["kind"]), str(error["message"]), str(error["hint"])
    except (ValueError, KeyError, TypeError):
        return FsxwarmError(Kind.UNFORESEEN, f"the daemon answered {status} without saying why")
    return FsxwarmError(kind, message, hint=hint or CONSEQUENCES[kind].hint)
