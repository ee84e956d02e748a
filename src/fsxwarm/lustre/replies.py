"""What `lfs` prints, read without trusting it.

lfs prints names raw, so a name may hold a newline or a text that looks like an answer; a killed lfs leaves half a line.
Up to Lustre 2.15 it stops at the first bad file and exits with its errno, from 2.16 on it continues. The rules here
never need to know which: an answer is taken only where no other reading of the output is possible, and everything
else stays unknown, to be asked again in smaller groups.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.ports.hsm import Ost, Space

T = TypeVar("T")

SHOWN: Final = 500
"""Characters of a tool's complaint that are worth keeping."""


class Output(NamedTuple):
    """How an lfs process ended: its exit status (negative: the signal that killed it) and what it printed."""

    exit: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """What it complained about, fit for people: one line, any bytes made visible."""
        text = self.stderr.decode("utf-8", "backslashreplace").strip()
        return " / ".join(line.strip() for line in text.splitlines() if line.strip())[:SHOWN]


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What one process told beyond doubt, by path.

    With `stopped` lfs gave up at the one bad file in `known`, and the paths that are missing were never looked at.
    Without it, missing paths are unclear.
    """

    known: dict[bytes, T | Trouble] = field(default_factory=dict)
    stopped: bool = False


_STATE: Final = re.compile(
    rb": \(0x([0-9a-f]{8})\)"
    rb"(?: (?:released|exists|dirty|archived|never_release|never_archive|lost_from_hsm))*(?:, archive_id:\d+)?\n"
)
_ACTION: Final = re.compile(
    rb": (?:NOOP|(ARCHIVE|RESTORE|RELEASE|REMOVE|CANCEL) (?:waiting|done|(running)) "
    rb"\((?:(\d{1,20}) bytes moved|from \d+ to (?:EOF|\d+))\))\n"
)


def parse_states(paths: Sequence[bytes], output: Output) -> Parsed[Flags]:
    """Read the answers of `lfs hsm_state PATH…`; paths are absolute and each is given once."""
    return _parse(paths, output, _STATE, lambda match: Flags(int(match[1], 16)))


def parse_actions(paths: Sequence[bytes], output: Output) -> Parsed[Action]:
    """Read the answers of `lfs hsm_action PATH…`; paths are absolute and each is given once."""
    return _parse(paths, output, _ACTION, _action)


def _action(match: re.Match[bytes]) -> Action:
    verb, running, moved = match.groups()
    if verb is None:
        return Action()
    return Action(Verb(verb.decode()), running is not None, int(moved or 0) if running else 0)


def _parse(
    paths: Sequence[bytes], output: Output, pattern: re.Pattern[bytes], read: Callable[[re.Match[bytes]], T]
) -> Parsed[T]:
    """Take the first of these readings that is certain.

    1. The answers follow each other exactly, up to the end; exit 0. No other output would be printed then.
    2. They follow each other exactly up to one file, and stderr complains of that file and nothing else: lfs stopped.
       Had it gone on, there would be output or a complaint for the later ones.
    3. No name has a newline in it: each line then has one reading. Answers with gaps, complaints by line.
    """
    known: dict[bytes, T | Trouble] = {}
    position = 0
    for path in paths:
        match = _answer(path, output.stdout, position, pattern)
        if match is None:
            break
        known[path] = read(match)
        position = match.end()
    whole = position == len(output.stdout)
    if whole and len(known) == len(paths) and output.exit == 0:
        return Parsed(known)
    if whole and len(known) < len(paths) and output.exit > 0:
        bad = paths[len(known)]
        if len(paths) == 1:
            return Parsed({bad: _lone_trouble(bad, output)})
        trouble = _only_complaint(output)
        if trouble is not None and trouble.path == bad:
            known[bad] = trouble
            return Parsed(known, stopped=True)
    if any(b"\n" in path for path in paths):
        return Parsed()
    return _by_line(paths, output, pattern, read)


def _answer(path: bytes, stdout: bytes, position: int, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    if not stdout.startswith(path, position):
        return None
    return pattern.match(stdout, position + len(path))


def _by_line(
    paths: Sequence[bytes], output: Output, pattern: re.Pattern[bytes], read: Callable[[re.Match[bytes]], T]
) -> Parsed[T]:
    known: dict[bytes, T | Trouble] = {}
    place = {path: index for index, path in enumerate(paths)}
    last = -1
    *lines, _cut = output.stdout.split(b"\n")
    for line in lines:
        name, _, _ = line.rpartition(b": ")  # what follows a name holds this separator once
        match = pattern.fullmatch(line + b"\n", len(name))
        index = place.get(name, -1)
        if match is None or index <= last:
            return Parsed()  # not what lfs prints when asked for these: trust none of it
        known[name] = read(match)
        last = index
    if output.exit > 0:
        missing = [path for path in paths if path not in known]
        if len(missing) == 1:
            known[missing[0]] = _lone_trouble(missing[0], output)
        else:
            wanted = set(missing)
            known |= {trouble.path: trouble for trouble in _complaints(output) if trouble.path in wanted}
    return Parsed(known)


def parse_marks(paths: Sequence[bytes], output: Output) -> Parsed[bool]:
    """Read the end of `lfs hsm_set/hsm_clear … PATH…`, which prints nothing for the files done (True)."""
    if output.exit == 0:
        return Parsed(dict.fromkeys(paths, True))
    if output.exit < 0:
        return Parsed()
    if len(paths) == 1:
        return Parsed({paths[0]: _lone_trouble(paths[0], output)})
    trouble = _only_complaint(output)
    if trouble is None or trouble.path not in paths:
        return Parsed()
    done = paths[: paths.index(trouble.path)]
    return Parsed(dict.fromkeys(done, True) | {trouble.path: trouble}, stopped=True)


_UNREACHABLE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES})


def parse_unreachable(paths: Sequence[bytes], output: Output) -> dict[bytes, Trouble]:
    """Read what `lfs path2fid PATH…` complains of. It goes on after a bad file in every version.

    Only failed look-ups of the name count: they are the same for every other call.
    """
    if output.exit <= 0 or any(b"\n" in path for path in paths):
        return {}
    wanted = set(paths)
    return {
        trouble.path: trouble
        for trouble in _complaints(output)
        if trouble.path in wanted and trouble.errno in _UNREACHABLE
    }


def parse_released(paths: Sequence[bytes], output: Output) -> Parsed[bool]:
    """Read the answers of `lfs find PATH… -L released -print0`: it prints the released ones.

    Silence means "not released" only if lfs ended well and did not complain of the file. Of several that failed, only
    `Failed to open 'PATH'` surely names the culprit.
    """
    *listed, _cut = output.stdout.split(b"\0")
    wanted = set(paths)
    known: dict[bytes, bool | Trouble] = {path: True for path in listed if path in wanted}
    silent = [path for path in paths if path not in known]
    if len(silent) == len(paths) == 1 and (output.exit > 0 or (output.exit == 0 and silent[0] in output.stderr)):
        return Parsed({silent[0]: _lone_trouble(silent[0], output)})
    if output.exit == 0:
        known |= {path: False for path in silent if path not in output.stderr}
    elif output.exit > 0 and not any(b"\n" in path for path in paths):
        troubles = _complaints(output, b": Failed to open '")
        known |= {trouble.path: trouble for trouble in troubles if trouble.path in silent}
    return Parsed(known)


_ERRNOS: Final = {os.strerror(code).encode(): code for code in errno.errorcode}
_MESSAGE: Final = re.compile(rb": (?:Unknown error (?P<number>\d{1,4})|(?P<known>[^:]+?))(?: \(\d+\))?\Z")


def _complaint(text: bytes) -> Trouble | None:
    """Read `…what failed… 'PATH': Reason`, quoted or not, with the number behind it or not.

    The path is absolute and what stands before it holds no slash, so that it begins at the first one.
    """
    found = _MESSAGE.search(text)
    if found is None:
        return None
    code = int(found["number"]) if found["number"] else _ERRNOS.get(found["known"])
    before, slash, rest = text[: found.start()].partition(b"/")
    if code is None or not slash:
        return None
    path = slash + rest
    quote = before[-1:]
    if quote in {b"'", b'"'} and path.endswith(quote):
        path = path[:-1]
    return Trouble(path, code, found[0][2:].decode("ascii", "backslashreplace"))


def _only_complaint(output: Output) -> Trouble | None:
    """The trouble that lfs stopped at: all of stderr speaks of it, and the exit status agrees."""
    trouble = _complaint(output.stderr.removesuffix(b"\n"))
    return trouble if trouble is not None and trouble.errno & 0xFF == output.exit else None


def _complaints(output: Output, words: bytes = b"") -> list[Trouble]:
    *lines, _cut = output.stderr.split(b"\n")
    return [trouble for line in lines if words in line and (trouble := _complaint(line)) is not None]


def _lone_trouble(path: bytes, output: Output) -> Trouble:
    """The trouble with the one file that was asked for: what lfs said of it, else the exit status alone."""
    for text in (output.stderr.removesuffix(b"\n"), *output.stderr.split(b"\n")):
        trouble = _complaint(text)
        if trouble is not None and trouble.path == path:
            return trouble
    if output.exit == 0:  # lfs find: "warning: … does not exist"
        return Trouble(path, errno.ENOENT, output.text)
    return Trouble(path, errno_of(output), output.text)


def errno_of(output: Output) -> int:
    """The errno of an output that is no answer: its exit status, or EIO where that tells none.

    1 is EPERM only where the words say so: whatever else goes wrong in a program ends with 1 as well.
    """
    if output.exit <= 0 or (output.exit == errno.EPERM and os.strerror(errno.EPERM).encode() not in output.stderr):
        return errno.EIO
    return output.exit


_DF_LINE: Final = re.compile(
    rb"^(?P<name>\S+?)(?:_UUID)? +(?P<total>\d+) +(?P<used>\d+) +(?P<free>\d+) +(?:\d+%|-) (?P<mount>.*)$", re.MULTILINE
)
_DF_OST: Final = re.compile(rb"\[OST:\d+\](?: [A-Za-z]+)*$")


def parse_space(stdout: bytes) -> Space | None:
    """Read `lfs df MOUNT` (1K-blocks); None when there is no summary and no OST in it.

    OSTs that are inactive or do not answer print a reason in place of numbers, and are left out here as in the
    summary of lfs.
    """
    osts: list[Ost] = []
    summary: tuple[int, int] | None = None
    for line in _DF_LINE.finditer(stdout):
        total, free = int(line["total"]) * 1024, int(line["free"]) * 1024
        if line["name"] == b"filesystem_summary:":
            summary = total, free
        elif _DF_OST.search(line["mount"]):
            osts.append(Ost(line["name"].decode("ascii", "backslashreplace"), total, free))
    if summary is None:
        if not osts:
            return None
        summary = sum(ost.total for ost in osts), sum(ost.free for ost in osts)
    return Space(*summary, tuple(osts))


_VERSION: Final = re.compile(rb"(?:[^\n]*/)?lfs (\d{1,4}(?:\.\d{1,4})+)(?:[^\d\n][^\n]*)?\n?")


def parse_version(stdout: bytes) -> tuple[int, ...] | None:
    """Read `lfs --version`, such as `lfs 2.15.8` or `lfs 2.12.8_fsx3`; None for whatever is not that one line."""
    found = _VERSION.fullmatch(stdout)
    return tuple(int(part) for part in found[1].split(b".")) if found else None
