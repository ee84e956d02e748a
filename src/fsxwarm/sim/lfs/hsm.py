"""`lfs hsm_state`, `hsm_action`, `hsm_set` and `hsm_clear`: one file after another, by open and ioctl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.sim.lfs.getopt import BadOptionError, Spec, parse
from fsxwarm.sim.lfs.kernel import Kernel, State
from fsxwarm.sim.lfs.outcome import Outcome, Output, UsageError, number, strerror

_WORDS: Final = (
    (Flags.RELEASED, b"released"),
    (Flags.EXISTS, b"exists"),
    (Flags.DIRTY, b"dirty"),
    (Flags.ARCHIVED, b"archived"),
    (Flags.NORELEASE, b"never_release"),
    (Flags.NOARCHIVE, b"never_archive"),
    (Flags.LOST, b"lost_from_hsm"),
)

_FLAG_OPTIONS: Final = {
    "A": Flags.ARCHIVED,
    "a": Flags.NOARCHIVE,
    "d": Flags.DIRTY,
    "e": Flags.EXISTS,
    "l": Flags.LOST,
    "r": Flags.NORELEASE,
}
_CHANGE: Final = Spec(
    short={**dict.fromkeys(_FLAG_OPTIONS, False), "h": False, "i": True},
    long={
        "archived": "A",
        "noarchive": "a",
        "dirty": "d",
        "exists": "e",
        "lost": "l",
        "norelease": "r",
        "archive-id": "i",
        "help": "h",
    },
)

GOES_ON: Final = (2, 16)
"""The first version whose hsm_state goes on after a bad file."""


def state(argv: Sequence[bytes], kernel: Kernel, version: tuple[int, ...]) -> Outcome:
    """`lfs hsm_state`: parses no options at all. Up to 2.15 it stops at the first bad file.

    The words of 2.16's error are ours; only that they differ is known.
    """
    output = Output()
    status = 0
    for path in _files(argv):
        try:
            found = kernel.hsm_state(path)
        except OSError as error:
            if version < GOES_ON:
                output.complain(b"can't get hsm state for %b: %b" % (path, strerror(number(error))))
                return output.exit(number(error))
            output.complain(b"lfs hsm_state: cannot get HSM state for '%b': %b" % (path, strerror(number(error))))
            status = status or number(error)
        else:
            output.print(path + b": " + _describe(found))
    return output.exit(status)


def action(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs hsm_action`: parses no options and stops at the first bad file."""
    output = Output()
    for path in _files(argv):
        try:
            found = kernel.hsm_action(path)
        except OSError as error:
            output.complain(b"can't get hsm action for %b: %b" % (path, strerror(number(error))))
            return output.exit(number(error))
        output.print(path + b": " + _describe_action(found))
    return output.exit(0)


def change(argv: Sequence[bytes], kernel: Kernel, *, on: bool) -> Outcome:
    """`lfs hsm_set` (`on`) and `lfs hsm_clear`: stop at the first file that refuses."""
    if len(argv) < 3:  # noqa: PLR2004 - the sub-command, a flag and a file
        raise UsageError
    try:
        options, paths = parse(_CHANGE, argv)
    except BadOptionError as error:
        raise UsageError(b"lfs: unrecognized option '%b'" % error.named) from error
    mask, archive_id = Flags(0), 0
    for option in options:
        if option.letter == "h":
            raise UsageError
        if option.letter == "i":
            archive_id = _atoi(option.value)
        else:
            mask |= _FLAG_OPTIONS[option.letter]
    if not mask and not archive_id:
        raise UsageError
    output = Output()
    for path in paths:
        try:
            kernel.hsm_change(
                path, set_flags=mask if on else 0, clear_flags=0 if on else mask, archive_id=archive_id if on else 0
            )
        except OSError as error:
            output.complain(b"Can't change hsm flags for %b: %b" % (path, strerror(number(error))))
            return output.exit(number(error))
    return output.exit(0)


def _files(argv: Sequence[bytes]) -> Sequence[bytes]:
    if len(argv) == 1:
        raise UsageError
    return argv[1:]


def _describe(found: State) -> bytes:
    line = b"(0x%08x)" % found.flags
    for flag, word in _WORDS:
        if found.flags & flag:
            line += b" " + word
    return line + b", archive_id:%d" % found.archive_id if found.archive_id else line


def _describe_action(found: Action) -> bytes:
    if found.verb is Verb.NONE:
        return b"NOOP"
    verb: bytes = found.verb.value.encode()
    return verb + (b" running (%d bytes moved)" % found.moved if found.running else b" waiting (from 0 to EOF)")


def _atoi(text: bytes) -> int:
    digits = text.strip()
    return int(digits) if digits.isdigit() else 0
