r"""What a Slurm job says that it needs: the one grammar of `#FSXWARM` lines and of `--comment`.

    #FSXWARM preload=/fsx/imagenet ready=0.2 deadline=30m
    #FSXWARM preload="/fsx/with blanks" exclude=*.tmp release=after
    sbatch --comment='fsxwarm:preload=/fsx/imagenet ready=0.2' …

Words are `key=value`, separated by blanks. A value with blanks is quoted: '…' as it is, "…" with \" and \\ for these
two characters. Nothing is expanded: no variables, no globs, no ~. The lines of a script count as one; as with #SBATCH,
they stand at the beginning of a line and before the first command.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fsxwarm.model.lease import MOST_SECONDS
from fsxwarm.model.order import Order
from fsxwarm.model.patterns import compile_globs
from fsxwarm.model.s3 import is_uri, parse_uri
from fsxwarm.model.units import parse_duration, parse_share

MARK: Final = "#FSXWARM"
"""How a script's line begins; Slurm knows it from `Directive=FSXWARM` in burst_buffer.conf."""
_COMMENT: Final = re.compile(r"(?:^|(?<=[\s;,]))fsxwarm:", re.ASCII)
_NEARLY: Final = re.compile(r"\s*#+\s*FSXWARM\b", re.IGNORECASE | re.ASCII)
_BLANK: Final = " \t\r\n\v\f"


@dataclass(frozen=True, slots=True)
class Directive:
    """What is to be done for a job. `paths` are absolute or S3 addresses, `lists` absolute paths of lists of files."""

    paths: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ready: float | None = None
    """The share of the bytes with which the job may start; None: all."""
    deadline: float | None = None
    """Seconds after which the job starts with what is there; None: it waits."""
    order: Order = Order.LISTED
    fit: bool = False
    """Whether to warm as much as fits, instead of nothing, when it does not all fit."""
    release: bool = False
    """Whether to give the space back when the job has ended."""
    lease: float | None = None
    """Seconds that the paths are kept for the job if nobody tells of its end; None: the daemon's own."""


class DirectiveError(ValueError):
    """A directive that says nothing sensible. `line` and `column` count from 1; `source` is the line that is wrong."""

    def __init__(self, message: str, column: int, line: int = 1, source: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.line = line
        self.source = source

    @property
    def where(self) -> str:
        """The place, in one line."""
        return f"line {self.line}, column {self.column}"

    def pointed(self) -> str:
        """The line that is wrong, and below it a mark at the place."""
        before = "".join(char if char == "\t" else " " for char in self.source[: self.column - 1])
        return f"{self.source}\n{before}^"


class _Word(NamedTuple):
    key: str
    value: str
    key_at: int
    value_at: int


def parse_script(script: str) -> Directive | None:
    """Read the `#FSXWARM` lines of a batch script; None if it has none. DirectiveError."""
    lines = [(number, line) for number, line in _header(script) if _is_marked(line)]
    if not lines:
        return None
    draft = _Draft()
    for number, line in lines:
        _read(draft, line, len(MARK), number)
    return _finished(draft, *lines[0])


def parse_comment(comment: str) -> Directive | None:
    """Read what follows `fsxwarm:` in a job's comment; None if that is not in it. DirectiveError."""
    found = _COMMENT.search(comment)
    if found is None:
        return None
    draft = _Draft()
    _read(draft, comment, found.end(), 1)
    return _finished(draft, 1, comment)


def overlooked(script: str) -> list[tuple[int, str]]:
    """Lines that look like directives and are none for Slurm: their numbers, and why."""
    header = {number for number, _ in _header(script)}
    found = []
    for number, line in enumerate(script.split("\n"), start=1):
        if number not in header and _is_marked(line):
            found.append((number, "it comes after the first command, where Slurm does not look"))
        elif _NEARLY.match(line) and not _is_marked(line):
            found.append((number, f"a directive begins with {MARK}, at the start of the line and in capitals"))
    return found


def _header(script: str) -> Iterator[tuple[int, str]]:
    """The lines that Slurm reads: up to the first that is neither empty nor a comment."""
    for number, line in enumerate(script.split("\n"), start=1):
        if line and not line.startswith("#"):
            return
        yield number, line.removesuffix("\r")


def _is_marked(line: str) -> bool:
    return line.startswith(MARK) and (line[len(MARK) :] == "" or line[len(MARK)] in _BLANK)


def _finished(draft: _Draft, line: int, source: str) -> Directive:
    if not draft.values.get("preload") and not draft.values.get("list"):
        raise DirectiveError("nothing is asked for: write preload=/a/path", len(source) + 1, line, source)
    return draft.directive()


def _read(draft: _Draft, source: str, start: int, line: int) -> None:
    try:
        for word in _words(source, start):
            draft.take(word)
    except DirectiveError as error:
        raise DirectiveError(error.message, error.column, line, source) from None


def _words(text: str, place: int) -> Iterator[_Word]:
    """Split into words; places count from 0."""
    while True:
        while place < len(text) and text[place] in _BLANK:
            place += 1
        if place == len(text):
            return
        key_at = place
        while place < len(text) and text[place] not in _BLANK + "=":
            place += 1
        key = text[key_at:place]
        if place == len(text) or text[place] != "=" or not key:
            raise DirectiveError(f"{key or '='!r} is no key=value", key_at + 1)
        value_at = place + 1
        value, place = _value(text, value_at)
        if not value:
            raise DirectiveError(f"{key}= has no value", value_at + 1)
        yield _Word(key, value, key_at, value_at)


def _value(text: str, start: int) -> tuple[str, int]:
    """A value and the place behind it."""
    quote = text[start : start + 1]
    if quote not in {'"', "'"}:
        end = next((place for place in range(start, len(text)) if text[place] in _BLANK), len(text))
        return text[start:end], end
    value, place = "", start + 1
    while place < len(text) and text[place] != quote:
        if quote == '"' and text[place] == "\\" and text[place + 1 : place + 2] in {'"', "\\"}:
            place += 1
        value += text[place]
        place += 1
    if place == len(text):
        raise DirectiveError("this quote is never closed", start + 1)
    if text[place + 1 : place + 2] not in {"", *_BLANK}:
        raise DirectiveError("a blank must follow the closing quote", place + 2)
    return value, place + 1


# ---- keys ------------------------------------------------------------------------------------------------------------


def _path(text: str) -> str:
    if is_uri(text):
        parse_uri(text)
    else:
        _local(text)
    return text


def _local(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is no absolute path (nothing is expanded here, ~ and $ neither)")
    if "\0" in text:
        raise ValueError("no path has a NUL in it")
    return text


def _glob(text: str) -> str:
    compile_globs([text])
    return text


def _order(text: str) -> Order:
    if text not in list(Order):
        raise ValueError(f"{text!r} is no order: one of {', '.join(Order)}")
    return Order(text)


def _yes(text: str) -> bool:
    if text not in {"yes", "no"}:
        raise ValueError(f"{text!r} is neither yes nor no")
    return text == "yes"


def _after(text: str) -> bool:
    if text not in {"after", "never"}:
        raise ValueError(f"{text!r}: release=after gives the space back when the job has ended, release=never does not")
    return text == "after"


def _duration(text: str) -> float:
    seconds = parse_duration(text)
    if not seconds:
        raise ValueError(f"{text!r} is no time at all")
    return seconds


def _lease(text: str) -> float:
    seconds = _duration(text)
    if seconds > MOST_SECONDS:
        raise ValueError(f"{text!r} is more than {MOST_SECONDS / 86400:.0f} days")
    return seconds


class _Key(NamedTuple):
    field: str
    read: Callable[[str], Any]
    repeats: bool = False


KEYS: Final = {
    "preload": _Key("paths", _path, repeats=True),
    "list": _Key("lists", _local, repeats=True),
    "include": _Key("include", _glob, repeats=True),
    "exclude": _Key("exclude", _glob, repeats=True),
    "ready": _Key("ready", parse_share),
    "deadline": _Key("deadline", _duration),
    "order": _Key("order", _order),
    "fit": _Key("fit", _yes),
    "release": _Key("release", _after),
    "lease": _Key("lease", _lease),
}


@dataclass(slots=True)
class _Draft:
    """A directive as far as it was read."""

    values: dict[str, list[Any]] = field(default_factory=dict)

    def take(self, word: _Word) -> None:
        """Add a word."""
        key = KEYS.get(word.key)
        if key is None:
            near = difflib.get_close_matches(word.key, KEYS, n=1)
            known = f"did you mean {near[0]}?" if near else f"known: {', '.join(KEYS)}"
            raise DirectiveError(f"unknown key {word.key!r} ({known})", word.key_at + 1)
        try:
            value = key.read(word.value)
        except ValueError as error:
            raise DirectiveError(f"{word.key}: {error}", word.value_at + 1) from None
        if word.key in self.values and not key.repeats:
            raise DirectiveError(f"{word.key} is given twice", word.key_at + 1)
        self.values.setdefault(word.key, []).append(value)

    def directive(self) -> Directive:
        """What was read."""
        fields: dict[str, Any] = {
            KEYS[key].field: tuple(values) if KEYS[key].repeats else values[0] for key, values in self.values.items()
        }
        return Directive(**fields)
