"""The truth of a simulation, noted down beside the engine: what the servers really did, and what each client saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from fsxwarm.model.entry import Key
from fsxwarm.model.hsm import Flags
from fsxwarm.sim.inodes import LUSTRE_DEV, LustreFile
from fsxwarm.sim.lfs.kernel import Fid
from fsxwarm.sim.namespace import VirtualNamespace
from fsxwarm.sim.nodes import Node
from fsxwarm.sim.world import World

SLACK = 5.0
"""Seconds that pass at the most between an answer of the servers and what the engine makes of it."""


class Check(IntEnum):
    """The promises."""

    SETTLES = 1
    ASKS_RIGHTLY = 2
    LOSES_NOTHING = 3
    SURVIVES_CRASHES = 4
    ENDS_IN_TIME = 5


class BrokenCheckError(AssertionError):
    """A promise is broken: which, when, and how."""

    def __init__(self, check: Check, what: str, now: float) -> None:
        super().__init__(f"check {check.value} ({check.name.lower()}) at {now:.3f} s: {what}")
        self.check = check


@dataclass(frozen=True, slots=True)
class Moment:
    """What was true of a file at a time."""

    at: float
    released: bool
    restoring: bool
    number: int
    """What tells its action from earlier ones; 0 for none."""


class Ledger:
    """All that is true of the world, by file; `broken` is the first promise that was found broken."""

    def __init__(self, world: World, names: VirtualNamespace, clock: Callable[[], float], *, story: bool) -> None:
        self.world = world
        self.names = names
        self._clock = clock
        self.broken: BrokenCheckError | None = None
        self.stories: defaultdict[Key, list[tuple[float, str]]] = defaultdict(list)
        self.telling = story
        self._data: dict[Fid, list[tuple[float, bool]]] = {}
        self._nodes: dict[Fid, Node] = {}
        world.on_data = self._on_data

    @property
    def now(self) -> float:
        """The time, in seconds."""
        return self._clock()

    def fail(self, check: Check, what: str) -> None:
        """A promise is broken: note it and raise it."""
        error = BrokenCheckError(check, what, self.now)
        self.broken = self.broken or error
        raise error

    def must(self, truth: object, check: Check, what: str) -> None:
        """Raise unless it holds."""
        if not truth:
            self.fail(check, what)

    def tell(self, key: Key, text: str) -> None:
        """Add to a file's story."""
        if self.telling:
            self.stories[key].append((self.now, text))

    # ---- what is true ------------------------------------------------------------------------------------------

    def enter(self, node: Node) -> None:
        """A file has been made."""
        self._nodes[node.fid] = node
        self._data[node.fid] = [(self.now, not node.flags.released)]

    def _on_data(self, node: Node, resident: bool) -> None:  # noqa: FBT001 - the world's callback
        self._data[node.fid].append((self.world.now, resident))
        self.tell(key_of(node), "its data is there" if resident else "its data is given up")
        if not resident:
            kept = Flags.ARCHIVED in node.flags and not node.flags & (Flags.DIRTY | Flags.LOST | Flags.NORELEASE)
            self.must(kept, Check.LOSES_NOTHING, f"{node} was released though it must not be")

    def node(self, key: Key) -> Node | None:
        """Find a file by its identity, be it gone or not."""
        return self._nodes.get(Fid(key.ino >> 24, key.ino & 0xFFFFFF))

    def at(self, path: bytes) -> Node | None:
        """Find the file that a path names now."""
        try:
            found = self.names.find(path, follow=False)
        except OSError:
            return None
        return found.node if isinstance(found, LustreFile) else None

    def moment(self, node: Node) -> Moment:
        """What is true of a file now."""
        return Moment(self.now, node.flags.released, node.in_flight, node.number if node.in_flight else 0)

    def was_resident(self, node: Node, since: float) -> bool:
        """Whether a file was resident at any time from `since` until now."""
        before = True
        for at, resident in self._data[node.fid]:
            if at <= since:
                before = resident
            elif resident:
                return True
        return before

    def idle_since(self, node: Node, seconds: float) -> bool:
        """Whether nothing has been in flight for a file for so long, as far as its data's comings and goings tell."""
        return not node.in_flight and self._data[node.fid][-1][0] < self.now - seconds

    def resident_since(self, node: Node) -> float | None:
        """Since when a file has been resident without a break; None if it is not."""
        at, resident = self._data[node.fid][-1]
        return at if resident else None


def key_of(node: Node) -> Key:
    """A file's identity as a client sees it."""
    return Key(LUSTRE_DEV, (node.fid.seq << 24) + node.fid.oid)
