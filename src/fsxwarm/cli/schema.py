"""The objects that `--json` prints. Names are stable: fields may be added, none is renamed or removed within a version.

Each object has `schema` (name and version) and `exit` (the exit status of the command). Sizes are bytes, times are
seconds since the epoch. A file is an object with `path`, and `path_b64` (base64 of the exact bytes) when its name is
not UTF-8.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fsxwarm.errors import FsxwarmError


class FilePath(TypedDict):
    """A file's name."""

    path: str
    path_b64: NotRequired[str]


class Error(TypedDict):
    """Why a command did not start or gave up."""

    kind: str
    message: str
    hint: str


class ErrorDocument(TypedDict):
    """Instead of the command's own object, when there is nothing to tell but an error: `fsxwarm.error/1`."""

    schema: str
    exit: int
    error: Error


class Tally(TypedDict):
    """Files, and the sum of their sizes."""

    files: int
    bytes: int


class Issue(FilePath):
    """A path at which something failed: `errno` as the system gives it, `text` in words."""

    errno: int
    text: str


def error_document(error: FsxwarmError) -> ErrorDocument:
    """Write an error as the object that `--json` prints."""
    return {
        "schema": "fsxwarm.error/1",
        "exit": int(error.exit),
        "error": {"kind": error.kind.value, "message": error.message, "hint": error.hint},
    }
