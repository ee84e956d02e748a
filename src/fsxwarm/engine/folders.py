"""Folders by which files are counted."""

from __future__ import annotations

from collections.abc import Iterable


def cut(folder: bytes, roots: Iterable[bytes], depth: int) -> bytes:
    """Shorten a folder's path to `depth` levels below the deepest of `roots` that it lies in."""
    for root in sorted(roots, reverse=True):
        base = root.rstrip(b"/")
        if folder == root or folder.startswith(base + b"/"):
            below = folder[len(base) :].split(b"/")[1 : depth + 1]
            return b"/".join([base, *below]) or b"/"
    return folder


def parent(path: bytes) -> bytes:
    """The folder that a file lies in."""
    return path.rpartition(b"/")[0] or b"/"
