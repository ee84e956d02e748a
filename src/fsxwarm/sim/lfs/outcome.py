"""What a call of the simulated `lfs` came to, and how its sub-commands write it down."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import Final, NamedTuple

USAGE_EXIT: Final = 4
"""Exit status of every usage error of `lfs` (measured on 2.15.8)."""


class Outcome(NamedTuple):
    """A finished call: the bytes on stdout and stderr, and the exit status."""

    stdout: bytes
    stderr: bytes
    exit: int


class UsageError(Exception):
    """The call ends with exit status 4 and the sub-command's usage, after `message` where there is one."""

    def __init__(self, message: bytes = b"") -> None:
        super().__init__(message)
        self.message = message


@dataclass(slots=True)
class Output:
    """What a sub-command has printed so far."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    def print(self, line: bytes, end: bytes = b"\n") -> None:
        """Print a line on stdout."""
        self.stdout += line + end

    def complain(self, line: bytes) -> None:
        """Print a line on stderr."""
        self.stderr += line + b"\n"

    def exit(self, status: int) -> Outcome:
        """End the call."""
        return Outcome(bytes(self.stdout), bytes(self.stderr), status)


def number(error: OSError) -> int:
    """Return an error's number; EIO for one that Python raised without."""
    return error.errno or errno.EIO


def strerror(number: int) -> bytes:
    """Return the C library's words for an error number."""
    return os.strerror(number).encode()
