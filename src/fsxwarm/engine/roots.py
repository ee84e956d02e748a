"""Paths under which a warming found nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsxwarm.engine.folders import parent
from fsxwarm.engine.warm import Listener, Relay
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome


class Roots(Relay):
    """Hears a warming, hands it on, and remembers under which of the paths given something was not resident already."""

    def __init__(self, listener: Listener, roots: Sequence[bytes]) -> None:
        super().__init__(listener)
        self._untouched = dict.fromkeys(roots)

    @property
    def resident(self) -> list[bytes]:
        """The paths under which nothing was released."""
        return list(self._untouched)

    def settled(self, finish: Finish) -> None:
        """See `Listener`."""
        if self._untouched and finish.outcome not in {Outcome.RESIDENT, Outcome.VANISHED}:
            for folder in _upwards(finish.entry.path):
                self._untouched.pop(folder, None)
        super().settled(finish)


def _upwards(path: bytes) -> Iterator[bytes]:
    yield path
    while (up := parent(path)) != path:
        yield up
        path = up
