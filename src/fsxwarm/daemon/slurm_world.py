"""What Slurm's jobs are about on this machine: its users, their lists, and where S3 shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.api import Resolve, usable
from fsxwarm.daemon.people import served
from fsxwarm.engine.addresses import Addresses, is_address, mapped
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.reading import read_as
from fsxwarm.model.job import Identity
from fsxwarm.ports.tree import Place


@dataclass(frozen=True, slots=True)
class SlurmWorld:
    """See `fsxwarm.daemon.slurm.World`."""

    circle: Callable[[], Circle]
    resolve: Resolve
    addresses: Callable[[], Addresses]
    environ: Mapping[str, str]

    async def identity(self, uid: int) -> Identity:
        """See the protocol."""
        return await served(uid, self.circle)

    async def place(self, path: bytes, identity: Identity) -> Place:
        """See the protocol."""
        return usable(await self.resolve(path, identity), path)

    async def paths(self, named: Sequence[bytes]) -> list[bytes]:
        """See the protocol."""
        return await mapped(named, self.addresses())

    async def listed(self, path: bytes, identity: Identity) -> list[bytes]:
        """See the protocol."""
        lines = (await read_as(identity, path, self.environ)).split(b"\n")
        entries = [entry for line in lines if (entry := line.removesuffix(b"\r"))]
        for entry in entries:
            if b"\0" in entry or not (entry.startswith(b"/") or is_address(entry)):
                what = entry[:200].decode("utf-8", "backslashreplace")
                raise FsxwarmError(Kind.USAGE, f"the list {os.fsdecode(path)}: {what!r} is no absolute path", hint="")
        return entries
