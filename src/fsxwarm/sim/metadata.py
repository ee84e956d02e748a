"""The metadata servers of a world as a client's kernel talks to them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.sim.calls import Call, Caller
from fsxwarm.sim.lfs.kernel import Fid, Request, State, Target
from fsxwarm.sim.world import World

_HEADER: Final = 24
_ITEM: Final = 32
_LONGEST_REQUEST: Final = 1706
"""A request of this many bytes or more is refused: a third of MDS_MAXREQSIZE (52 items and 17 bytes measured)."""

_MDT_SIZE: Final = 64 << 30
_INODE: Final = 4096


@dataclass(frozen=True, slots=True)
class MetadataServers:
    """Implements `fsxwarm.sim.mounted.Servers` for one world; `clock` tells its time in seconds."""

    world: World
    fsname: str
    clock: Callable[[], float]

    def state(self, fid: Fid) -> State:
        """See `Servers`."""
        node = self.world.state(fid, self.clock())
        return State(int(node.flags), node.archive_id)

    def released(self, fid: Fid) -> bool:
        """See `Servers`."""
        self.world.advance(self.clock())
        node = self.world.nodes.get(fid)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return bool(node.flags & Flags.RELEASED)

    def action(self, fid: Fid) -> Action:
        """See `Servers`."""
        return self.world.action(fid, self.clock())

    def change(self, fid: Fid, *, set_flags: int, clear_flags: int, archive_id: int) -> None:
        """See `Servers`."""
        self.world.change(fid, set_flags, clear_flags, archive_id, self.clock())

    def targets(self) -> list[Target]:
        """See `Servers`."""
        spec, world = self.world.spec, self.world
        world.advance(self.clock())
        inodes = len(world.nodes) * _INODE // spec.mdts
        return [
            Target(f"{self.fsname}-MDT{mdt:04x}", mdt, True, _MDT_SIZE, inodes, _MDT_SIZE - inodes)
            for mdt in range(spec.mdts)
        ] + [
            Target(f"{self.fsname}-OST{number:04x}", number, False, ost.total, ost.used, max(0, ost.free))
            for number, ost in enumerate(world.osts.all)
        ]

    def send(self, request: Request, caller: Caller) -> Call:
        """Send a request; the client's kernel refuses one that is too long before anybody sees it."""
        if _HEADER + _ITEM * len(request.fids) + request.data_size >= _LONGEST_REQUEST:
            call = Call(request.verb, [], caller)
            call.finish(errno.E2BIG)
            return call
        call = self.world.request(request.verb, request.fids, caller, self.clock())
        for fid in request.fids if request.archive_id else ():
            node = self.world.nodes.get(fid)
            if node is not None and node.verb is Verb.ARCHIVE:
                node.archive_id = request.archive_id
        return call
