"""Rights: ports that act as somebody."""

from __future__ import annotations

from typing import Protocol

from fsxwarm.model.job import Identity
from fsxwarm.ports.hsm import Hsm
from fsxwarm.ports.tree import Tree


class Access(Protocol):
    """Hands out ports that can do no more than a user may. Whoever implements it owns and closes what it hands out.

    A tree for a user other than root names only files that this user may read: the others are `Trouble` EACCES.
    """

    def tree(self, identity: Identity) -> Tree:
        """A tree that is walked with this user's rights."""
        ...

    def hsm(self, identity: Identity) -> Hsm:
        """HSM calls made with this user's rights; used for releasing and looking, never for restores."""
        ...
