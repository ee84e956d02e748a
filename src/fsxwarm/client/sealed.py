r"""Requests and answers over the network: what goes into MUNGE credentials, and in what form.

A message is a head (JSON, one line) and a body. It is cut into parts, each of which repeats the head with its number,
and each part becomes the payload of one credential: encrypted, signed with the uid and gid of who made it, good for a
few minutes, and once. A request goes to `POST /v1/munge`, one credential a line, and may be decoded by root alone; the
answer comes back the same way, and may be decoded by whoever asked. A shell can do it, with one part:

    printf '%s\n%s' '{"to":"fsxwarm","nonce":"…","method":"POST","path":"/v1/slurm/begin"}' '{…}' |
        munge --restrict-uid=0 | curl --data-binary @- http://host:port/v1/munge | unmunge --metadata=/dev/null
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ROUTE: Final = "/v1/munge"
PART: Final = 512 << 10
"""Bytes of a body in one credential; munged takes a little less than 1 MiB (measured: 900 kB)."""
MOST_PARTS: Final = 1000
_TO: Final = "fsxwarm"
_NONCE: Final = range(16, 129)
"""How many characters a nonce may have."""


class SealError(ValueError):
    """A payload that is none of ours."""


@dataclass(frozen=True, slots=True)
class Part:
    """One credential's payload, read. `head` holds `nonce`, and `method` and `path`, or `status`."""

    head: Mapping[str, Any]
    body: bytes

    @property
    def nonce(self) -> str:
        """What makes this request another one than all others; its answer repeats it."""
        return str(self.head["nonce"])

    @property
    def number(self) -> int:
        """The part's, from 1."""
        return int(self.head.get("part", 1))

    @property
    def parts(self) -> int:
        """How many there are."""
        return int(self.head.get("parts", 1))


def cut(head: Mapping[str, Any], body: bytes) -> Iterator[bytes]:
    """The payloads of a message."""
    pieces = [body[start : start + PART] for start in range(0, len(body), PART)] or [b""]
    for number, piece in enumerate(pieces, start=1):
        line = {"to": _TO, **head, "part": number, "parts": len(pieces)}
        yield json.dumps(line).encode() + b"\n" + piece


def read(payload: bytes) -> Part:
    """Read a payload. SealError if it was not made for us."""
    line, _, body = payload.partition(b"\n")
    try:
        head = json.loads(line)
    except ValueError:  # UnicodeDecodeError is one
        raise SealError("the credential was not made for fsxwarm") from None
    if not isinstance(head, dict) or head.get("to") != _TO:
        raise SealError("the credential was not made for fsxwarm")
    nonce, numbers = head.get("nonce"), [head.get("part", 1), head.get("parts", 1)]
    if not isinstance(nonce, str) or len(nonce) not in _NONCE:
        raise SealError(f"a nonce has {_NONCE.start} to {_NONCE.stop - 1} characters")
    if any(type(number) is not int for number in numbers) or not 1 <= numbers[0] <= numbers[1] <= MOST_PARTS:
        raise SealError("the parts are numbered wrongly")
    return Part(head, body)


def join(parts: Sequence[Part]) -> bytes:
    """The body of a whole message. SealError unless these are just its parts, in order."""
    first = parts[0]
    wanted = [({**first.head, "part": number, "parts": first.parts}) for number in range(1, first.parts + 1)]
    found = [{**part.head, "part": part.number, "parts": part.parts} for part in parts]
    if found != wanted:
        raise SealError("these parts do not belong together")
    return b"".join(part.body for part in parts)
