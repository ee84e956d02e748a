"""What a command line names, as the daemon is told it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from pathlib import Path

from fsxwarm.cli.options import absolute, named, to_retry
from fsxwarm.client import naming, wire


def files_wished(
    paths: Sequence[str],
    *,
    braces: bool = False,
    files_from: str | None = None,
    nul: bool = False,
    retry_failed: Path | None = None,
) -> wire.JobWish:
    """The files that a command line names, as a wish without a kind yet: lists are read here, as this user."""
    failed = None if retry_failed is None else asyncio.run(to_retry(retry_failed))
    names, listed = named(paths, files_from=files_from, nul=nul, listed=failed, braces=braces)
    return {
        "kind": "preload",
        "paths": [naming.wish(absolute(name)) for name in names],
        "files": [] if listed is None else [naming.wish(path) for path in asyncio.run(_all(listed))],
    }


async def _all(chunks: AsyncIterator[Sequence[bytes]]) -> list[bytes]:
    return list(chain.from_iterable([chunk async for chunk in chunks]))
