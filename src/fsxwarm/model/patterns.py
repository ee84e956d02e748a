"""Globs over names, as rsync, git and ripgrep have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_TOKEN: Final = re.compile(r"\*\*+|\*|\?|\[[!^]?\]?[^\]]*\]|\[|[^*?\[]+", re.DOTALL)


def compile_globs(globs: Sequence[str]) -> str | None:
    """Turn globs into the source of one regular expression for whole relative paths; None for no glob.

    A glob without `/` matches the last part of a path, one with `/` the whole path below the starting folder (a
    leading `/` says just that: `/a` is only the topmost `a`). `*` and `?` do not match `/`, `**` does; `[a-z]`,
    `[!a-z]` are sets. Upper and lower case differ. A `/` at the end changes nothing.

    The expression is for text decoded as UTF-8 with surrogateescape (so that `?` is one character, and any bytes
    are a name), to be compiled with re.DOTALL and used with `match`. Raises ValueError, with a text for people, for
    an empty glob and for a set that is not closed or is no set.
    """
    sources = [_source(glob) for glob in globs]
    return "(?:" + "|".join(sources) + r")\Z" if sources else None


def matcher(include: Sequence[str], exclude: Sequence[str]) -> Callable[[bytes, bool], bool]:
    """Make the question "is this wanted?" of a relative path (bytes, no leading slash) and whether it is a folder.

    Exclusion wins, and a folder that is excluded is not entered; inclusion asks of files only. No `include`: all.
    """
    wanted, unwanted = compile_globs(include), compile_globs(exclude)
    takes = re.compile(wanted, re.DOTALL).match if wanted else None
    drops = re.compile(unwanted, re.DOTALL).match if unwanted else None

    def matches(path: bytes, is_dir: bool) -> bool:  # noqa: FBT001 - a plain predicate, called for each name
        name = path.decode("utf-8", "surrogateescape")
        if drops is not None and drops(name):
            return False
        return is_dir or takes is None or takes(name) is not None

    return matches


def _source(glob: str) -> str:
    parts = [part for part in glob.split("/") if part]
    if not parts:
        raise ValueError(f"{glob!r} is no pattern: write '*.tar' or 'train/**'")
    if "/" not in glob.rstrip("/"):
        parts.insert(0, "**")
    source = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part != "**":
            source += _part(part, glob) + ("" if last else "/")
        elif last:
            source += ".+"
        elif part != parts[place - 1] or not place:
            source += "(?:[^/]+/)*?"
    return source


def _part(part: str, glob: str) -> str:
    """Translate what stands between two slashes.

    The first place where the text between two stars fits is as good as any: it is never tried again, so that a glob
    of many stars takes no time that explodes.
    """
    pieces: list[tuple[str, str]] = [("", "")]
    for found in _TOKEN.findall(part):
        if found.startswith("*"):
            pieces.append((".*" if found.startswith("**") else "[^/]*", ""))
        else:
            star, fixed = pieces[-1]
            pieces[-1] = (star, fixed + _fixed(found, glob))
    return "".join(_joined(pieces))


def _joined(pieces: list[tuple[str, str]]) -> Iterator[str]:
    for place, (star, fixed) in enumerate(pieces):
        follower = pieces[place + 1][0] if place + 1 < len(pieces) else ""
        yield f"(?>{star}?{fixed})" if star and star == follower else star + fixed


def _fixed(found: str, glob: str) -> str:
    if found == "?":
        return "[^/]"
    if not found.startswith("["):
        return re.escape(found)
    negated = found[1:2] in {"!", "^"}
    inner = found[2 if negated else 1 : -1]
    if not inner:
        raise ValueError(f"{glob!r} is no pattern: its '[' is never closed (write '[[]' for the character itself)")
    return f"(?!/)[{'^' if negated else ''}{''.join(_members(inner, glob))}]"


def _members(inner: str, glob: str) -> Iterator[str]:
    """Translate the inside of a set: characters and ranges. A minus at either end is itself."""
    place = 0
    while place < len(inner):
        if inner[place + 1 : place + 2] == "-" and place + 2 < len(inner):
            low, high = inner[place], inner[place + 2]
            if low > high:
                raise ValueError(f"{glob!r} is no pattern: {low}-{high} in its set is backwards")
            yield f"{_member(low)}-{_member(high)}"
            place += 3
        else:
            yield _member(inner[place])
            place += 1


def _member(character: str) -> str:
    return "\\" + character if character in "\\]^-[&~|" else character
