"""Control messages of a simulated FSx's server: what tests and the demo do to it and ask of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fsxwarm.model.hsm import Flags
from fsxwarm.sim.coordinator import Control
from fsxwarm.sim.faults import CallFault, Fault, share_of_files
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.world import World

Fields = Mapping[str, Any]


class Fsx(Protocol):
    """What control messages work on."""

    @property
    def world(self) -> World:
        """The servers."""
        ...

    def clock(self) -> float:
        """The world's time, in seconds."""
        ...

    def adopt(self, paths: list[bytes], flags: Flags) -> None:
        """Take files as being in a state."""
        ...

    def seen_at(self, path: bytes) -> Node:
        """The servers' file of a path; KeyError if it is none."""
        ...


class Controls:
    """The messages, each a method with its fields as a mapping; `table` names them.

    Paths are absolute, as text with surrogate escapes.
    """

    def __init__(self, fsx: Fsx) -> None:
        self._fsx = fsx

    def table(self) -> Mapping[str, Callable[[Fields], dict[str, Any]]]:
        """What the messages do, by their `op`."""
        return {
            "counters": self.counters,
            "flags": self.flags,
            "fail": self.fail,
            "break": self.break_calls,
            "mend": self.mend,
            "coordinator": self.coordinator,
            "agents": self.agents,
        }

    def counters(self, _: Fields) -> dict[str, Any]:
        """What was asked of the servers so far: `World.counts`, `deepest` queue, `restoring` now."""
        world = self._fsx.world
        world.advance(self._fsx.clock())
        return {**world.counts, "deepest": world.deepest, "restoring": world.restoring}

    def flags(self, fields: Fields) -> dict[str, Any]:
        """Put files (`paths`) into a state (`flags`, a number)."""
        self._fsx.adopt([os.fsencode(path) for path in fields["paths"]], Flags(fields["flags"]))
        return {}

    def fail(self, fields: Fields) -> dict[str, Any]:
        """Let the first `tries` restores of files (`paths`, or a `share` from 0 to 1) fail by `fault`, a `Fault`."""
        fault, tries = Fault(fields["fault"]), int(fields.get("tries", 10**9))
        rules = self._fsx.world.faults.restore
        if "share" in fields:
            rules.append(share_of_files(float(fields["share"]), fault, tries=tries))
            return {}
        bad = {self._fsx.seen_at(os.fsencode(path)).fid for path in fields["paths"]}
        rules.append(lambda node, tried: fault if node.fid in bad and tried < tries else None)
        return {}

    def break_calls(self, fields: Fields) -> dict[str, Any]:
        """Let the next `times` calls of a `call` kind (`state`, `action`, `restore`, …) go wrong: a `CallFault`."""
        fault, kind = CallFault(fields["fault"]), str(fields["call"])
        left = int(fields.get("times", 1))

        def rule(met: str, _: float) -> CallFault | None:
            nonlocal left
            if met != kind or left <= 0:
                return None
            left -= 1
            return fault

        self._fsx.world.faults.call.append(rule)
        return {}

    def mend(self, _: Fields) -> dict[str, Any]:
        """Take all faults away. Calls that hang stay so."""
        self._fsx.world.faults.restore.clear()
        self._fsx.world.faults.call.clear()
        return {}

    def coordinator(self, fields: Fields) -> dict[str, Any]:
        """Set `hsm_control` (`control`: enabled, disabled, shutdown), or let it start nothing for some `seconds`."""
        if "control" in fields:
            self._fsx.world.set_control(Control(fields["control"]), self._fsx.clock())
        else:
            self._fsx.world.stop_coordinators(float(fields["seconds"]), self._fsx.clock())
        return {}

    def agents(self, fields: Fields) -> dict[str, Any]:
        """Set their `number`, `kill` a share (0 to 1) of the busy ones, or `freeze` all (true) and let them go on."""
        world, now = self._fsx.world, self._fsx.clock()
        if "number" in fields:
            world.set_agents(int(fields["number"]), now)
        if "kill" in fields:
            world.kill_agents(float(fields["kill"]), now)
        if "freeze" in fields:
            (world.freeze_agents if fields["freeze"] else world.thaw_agents)(now)
        return {}
