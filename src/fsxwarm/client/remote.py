"""A client of the daemon on another machine: the same calls, sealed with MUNGE, over TCP."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from fsxwarm.client import sealed, wire
from fsxwarm.client.client import SPARE, Client, refused
from fsxwarm.errors import FsxwarmError, Kind, reason
from fsxwarm.model.address import Address

_MUNGED_WITHIN: Final = 20.0
_DAEMONS: Final = 0
"""Who may read requests, and makes answers: the daemon is root, it could not act for its callers otherwise."""


class RemoteClient(Client):
    """Talks to the daemon at `address`, as the user that this process runs as: munged vouches for it.

    `munge_socket` is where munged listens, if not in the usual place; `timeout` as for `Client`. Errors are those of
    `Client`; an answer that was not made by root, or not for this request, is NO_DAEMON.
    """

    def __init__(self, address: Address, *, munge_socket: str = "", timeout: float = 30.0) -> None:
        super().__init__(str(address), timeout=timeout)
        self._address = address
        self._options = (f"--socket={munge_socket}",) if munge_socket else ()

    def events(self) -> Iterator[wire.Event]:
        """There are none over the network."""
        raise FsxwarmError(
            Kind.USAGE, "events are told on the daemon's own machine only", hint="`fsxwarm jobs wait JOB` works here"
        )

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        spare: float = 0.0,
    ) -> object:
        """Make one call."""
        target = f"/{wire.VERSION}/{path}" + (f"?{urlencode(query)}" if query else "")
        nonce = secrets.token_hex(16)
        head = {"nonce": nonce, "method": method, "path": target}
        data = b"" if body is None else json.dumps(body).encode()
        payloads = list(sealed.cut(head, data))
        credentials = [self._run("munge", f"--restrict-uid={_DAEMONS}", stdin=payload) for payload in payloads]
        status, answer = self._post(b"\n".join(one.strip() for one in credentials), spare + SPARE if spare else None)
        if answer.startswith(b"MUNGE:"):
            status, answer = self._opened(answer.split(b"\n"), nonce)
        elif status < http.client.BAD_REQUEST:
            raise FsxwarmError(Kind.NO_DAEMON, f"what answers at {self.path} is no daemon of fsxwarm")
        if status >= http.client.BAD_REQUEST:
            raise refused(status, answer)
        return json.loads(answer) if answer else None

    def _post(self, data: bytes, timeout: float | None) -> tuple[int, bytes]:
        host, port = self._address
        connection = http.client.HTTPConnection(host, port, timeout=timeout or self._timeout)
        try:
            connection.request("POST", sealed.ROUTE, data, {"Content-Type": "application/x-munge"})
            response = connection.getresponse()
            return response.status, response.read()
        except TimeoutError:
            raise FsxwarmError(Kind.NO_DAEMON, f"the daemon at {self.path} does not answer") from None
        except (OSError, http.client.HTTPException) as error:
            raise FsxwarmError(Kind.NO_DAEMON, f"the daemon at {self.path} cannot be asked: {reason(error)}") from None
        finally:
            connection.close()

    def _opened(self, credentials: Sequence[bytes], nonce: str) -> tuple[int, bytes]:
        """Read an answer, if the daemon made it, and for this request."""
        parts = []
        for credential in credentials:
            if credential:
                uid, _, payload = self._run("unmunge", "--numeric", "--keys=UID", stdin=credential).partition(b"\n\n")
                parts.append(self._part(uid, payload, nonce))
        try:
            return int(parts[0].head["status"]), sealed.join(parts)
        except (sealed.SealError, KeyError, ValueError) as error:
            raise self._forged(str(error)) from None

    def _part(self, uid: bytes, payload: bytes, nonce: str) -> sealed.Part:
        if uid.split() != [b"UID:", str(_DAEMONS).encode()]:
            raise self._forged(f"it says {uid.decode(errors='backslashreplace').strip()}, not root")
        try:
            part = sealed.read(payload)
        except sealed.SealError as error:
            raise self._forged(str(error)) from None
        if part.nonce != nonce or "method" in part.head:
            raise self._forged("it answers another request")
        return part

    def _forged(self, why: str) -> FsxwarmError:
        return FsxwarmError(
            Kind.NO_DAEMON, f"the answer from {self.path} is not the daemon's: {why}", hint="tell the administrator"
        )

    def _run(self, program: str, *options: str, stdin: bytes) -> bytes:
        """Run munge or unmunge."""
        command = [program, *self._options, *options]
        environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, input=stdin, capture_output=True, check=False, timeout=_MUNGED_WITHIN, env=environ
            )
        except subprocess.TimeoutExpired:
            raise FsxwarmError(Kind.NO_DAEMON, "munged does not answer", hint="see `systemctl status munge`") from None
        except OSError as error:
            raise FsxwarmError(
                Kind.NO_DAEMON, f"cannot run {program}: {error.strerror}", hint="install MUNGE, as Slurm needs it"
            ) from None
        if done.returncode:
            said = done.stderr.decode(errors="backslashreplace").strip() or f"{program} ended with {done.returncode}"
            raise FsxwarmError(Kind.NO_DAEMON, said, hint="see `systemctl status munge`, here and there")
        return done.stdout
