"""MUNGE: who made a credential, as munged knows it. Nothing else counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from fsxwarm.errors import FsxwarmError, Kind

_WITHIN: Final = 10.0
_AT_A_TIME: Final = 16
_KEYS: Final = "ENCODE_TIME,DECODE_TIME,UID,GID"
_WHY: Final = {
    8: "it is no credential",
    14: "it was altered, or made with another key",
    15: "it is stale: look at the clocks of both machines",
    16: "it comes from the future: look at the clocks of both machines",
    17: "it was used before",
    18: "it is for somebody else",
}
"""What unmunge's exit status says (munge.h, EMUNGE_…)."""


class Unsealed(NamedTuple):
    """What a credential held, who made it, and when by its maker's clock (seconds since the epoch)."""

    uid: int
    gid: int
    made: int
    age: int
    """Seconds, by the two machines' clocks."""
    payload: bytes


class Munge:
    """Asks munged, at `socket` or in its usual place. FsxwarmError NO_PERMISSION for what it refuses."""

    def __init__(self, socket: str, environ: Mapping[str, str]) -> None:
        self._options = (f"--socket={socket}",) if socket else ()
        self._environ = {"PATH": environ.get("PATH", os.defpath), "LC_ALL": "C"}
        self._places = asyncio.Semaphore(_AT_A_TIME)

    async def unseal(self, credential: bytes) -> Unsealed:
        """Decode a credential: it was made by a munged with our key, is not stale, and was never decoded here."""
        status, out, _ = await self._run("unmunge", "--numeric", f"--keys={_KEYS}", stdin=credential)
        if status:
            why = _WHY.get(status, f"unmunge ended with {status}")
            raise FsxwarmError(Kind.NO_PERMISSION, f"the credential is refused: {why}", hint="")
        told, _, payload = out.partition(b"\n\n")
        fields = {key.strip(): int(value) for key, _, value in (line.partition(b":") for line in told.split(b"\n"))}
        made = fields[b"ENCODE_TIME"]
        return Unsealed(fields[b"UID"], fields[b"GID"], made, fields[b"DECODE_TIME"] - made, payload)

    async def seal(self, payload: bytes, uid: int) -> bytes:
        """Make a credential that this user alone may decode."""
        status, out, said = await self._run("munge", f"--restrict-uid={uid}", stdin=payload)
        if status:
            raise FsxwarmError(Kind.UNFORESEEN, f"munge: {said.decode(errors='backslashreplace').strip()}")
        return out.strip()

    async def _run(self, program: str, *options: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        pipe = asyncio.subprocess.PIPE
        async with self._places:
            try:
                process = await asyncio.create_subprocess_exec(
                    program, *self._options, *options, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environ
                )
            except OSError as error:
                raise FsxwarmError(Kind.UNFORESEEN, f"cannot run {program}: {error.strerror}") from None
            try:
                async with asyncio.timeout(_WITHIN):
                    out, said = await process.communicate(stdin)
            except TimeoutError:
                raise FsxwarmError(
                    Kind.RESTARTING, "munged does not answer", hint="see `systemctl status munge`"
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        return process.returncode or 0, out, said
