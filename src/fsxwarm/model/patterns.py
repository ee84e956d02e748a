"""Globs over names, as rsync and ripgrep have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

_SPECIAL: Final = re.compile(rb"\*\*/|/\*\*$|\*\*|\*|\?|\[(?:[!^]?\]?[^\]/]*)\]|\[", re.DOTALL)


def compile_globs(globs: Sequence[str]) -> bytes | None:
    """Turn globs into the source of one regular expression for whole relative paths (bytes); None for no glob.

    A glob without `/` matches the last part of a path, one with `/` the whole path below the starting folder. `*` and
    `?` do not match `/`, `**` does; `[a-z]`, `[!a-z]` are sets. Raises ValueError for a set that is not closed.
    """
    sources = [_source(glob) for glob in globs]
    return b"(?:" + b"|".join(sources) + rb")\Z" if sources else None


def matcher(include: Sequence[str], exclude: Sequence[str]) -> Callable[[bytes, bool], bool]:
    """Make the question "is this wanted?" of a relative path (bytes, no leading slash) and whether it is a folder.

    Exclusion wins, and a folder that is excluded is not entered; inclusion asks of files only. No `include`: all.
    """
    wanted, unwanted = compile_globs(include), compile_globs(exclude)
    takes = re.compile(wanted, re.DOTALL).match if wanted else None
    drops = re.compile(unwanted, re.DOTALL).match if unwanted else None

    def matches(path: bytes, is_dir: bool) -> bool:  # noqa: FBT001 - a plain predicate, called for each name
        if drops is not None and drops(path):
            return False
        return is_dir or takes is None or takes(path) is not None

    return matches


def _source(glob: str) -> bytes:
    if not glob.strip("/"):
        raise ValueError(f"{glob!r} is no pattern: write '*.tar' or 'train/**'")
    text = glob.strip("/").encode("utf-8", "surrogateescape")
    parts: list[bytes] = [b"" if b"/" in text else b"(?:.*/)?"]
    at = 0
    for found in _SPECIAL.finditer(text):
        parts.append(re.escape(text[at : found.start()]))
        parts.append(_special(found[0], glob))
        at = found.end()
    parts.append(re.escape(text[at:]))
    return b"".join(parts)


def _special(found: bytes, glob: str) -> bytes:
    match found:
        case b"**/":
            return b"(?:.*/)?"
        case b"/**":
            return b"/.+"
        case b"**":
            return b".*"
        case b"*":
            return b"[^/]*"
        case b"?":
            return b"[^/]"
        case b"[":
            raise ValueError(f"{glob!r} is no pattern: its '[' is never closed")
        case _:
            inner = found[1:-1]
            negated = inner[:1] in {b"!", b"^"}
            body = re.sub(rb"([\\\[\]^&~|])", rb"\\\1", inner[1:] if negated else inner)
            return (b"[^/" if negated else b"[") + body + b"]"
