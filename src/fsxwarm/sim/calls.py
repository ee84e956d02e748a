"""A request that may take a while: it hangs in the client's kernel until the servers have dealt with every item."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fsxwarm.model.hsm import Verb
from fsxwarm.sim.nodes import Node


class Caller(NamedTuple):
    """Whose rights apply."""

    uid: int = 0
    gids: frozenset[int] = frozenset({0})


ROOT = Caller()


class Call:
    """One request of a client. `errno` is None while it hangs; `blocked_on` is the file it hangs on.

    `left` are the items still to be dealt with, `refused` the first refusal so far.
    """

    def __init__(self, verb: Verb, nodes: Sequence[Node], caller: Caller) -> None:
        self.verb = verb
        self.left = deque(nodes)
        self.caller = caller
        self.errno: int | None = None
        self.refused = 0
        self.blocked_on: Node | None = None
        self._then: list[Callable[[int], None]] = []

    def finish(self, errno: int) -> None:
        """Let it come back."""
        self.errno = errno
        self.blocked_on = None
        self.left.clear()
        then, self._then = self._then, []
        for callback in then:
            callback(errno)

    def when_done(self, callback: Callable[[int], None]) -> None:
        """Call back with the errno when it has come back, at once if it has."""
        if self.errno is None:
            self._then.append(callback)
        else:
            callback(self.errno)
