"""What others do to the file system meanwhile: users, release tasks, administrators, and accidents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dst.ledger import Ledger, key_of
from dst.plan import Deed
from fsxwarm.model.hsm import Flags, Verb
from fsxwarm.sim.calls import ROOT
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.nodes import Node


class Outsiders:
    """Does deeds when their time has come; those to a file that is not there any more come to nothing."""

    def __init__(self, ledger: Ledger, names: VirtualNamespace) -> None:
        self._ledger = ledger
        self._world = ledger.world
        self._names = names

    async def act(self, deeds: Sequence[Deed]) -> None:
        """Do all deeds; they are in the order of their times."""
        for deed in deeds:
            await asyncio.sleep(max(0.0, deed.at - self._ledger.now))
            if deed.path:
                node = self._ledger.at(deed.path)
                if node is not None:
                    self._ledger.tell(key_of(node), f"somebody does it: {deed.what}")
                    self._to_a_file(deed, node)
            else:
                await self._to_the_system(deed)

    def _to_a_file(self, deed: Deed, node: Node) -> None:
        now, path = self._ledger.now, deed.path
        match deed.what:
            case "read":
                self._names.read(path, now)
            case "write":
                self._names.write(path, int(deed.number), now)
            case "rename":
                self._names.rename(path, deed.other, now)
            case "delete":
                self._names.unlink(path, now)
            case "overwrite":
                self._names.unlink(path, now)
                self._ledger.enter(self._names.make_file(path, int(deed.number)).node)
            case "release":
                self._world.request(Verb.RELEASE, [node.fid], ROOT, now)
            case "restore":
                self._world.request(Verb.RESTORE, [node.fid], ROOT, now)
            case "cancel":
                self._world.request(Verb.CANCEL, [node.fid], ROOT, now)
            case "archive":
                self._world.request(Verb.ARCHIVE, [node.fid], ROOT, now)
            case "pin":
                self._world.change(node.fid, int(Flags.NORELEASE), 0, 0, now)
            case "lose" if Flags.ARCHIVED in node.flags:
                self._world.change(node.fid, int(Flags.LOST), 0, 0, now)
            case _:
                pass

    async def _to_the_system(self, deed: Deed) -> None:
        world, now = self._world, self._ledger.now
        match deed.what:
            case "stop coordinators":
                world.stop_coordinators(deed.number, now)
            case "shut down":
                world.set_control(Control.SHUTDOWN, now)
                await asyncio.sleep(deed.number)
                world.set_control(Control.ENABLED, self._ledger.now)
            case "kill agents":
                world.kill_agents(deed.number, now)
            case "set agents":
                world.set_agents(int(deed.number), now)
            case "freeze agents":
                world.freeze_agents(now)
            case "thaw agents":
                world.thaw_agents(now)
            case _:
                raise ValueError(deed.what)
