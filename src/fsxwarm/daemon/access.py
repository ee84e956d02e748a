"""Who may do what: the rules that the table of routes names."""

from __future__ import annotations

import grp
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import DEFAULT_PRIORITY, Identity


class Rule(StrEnum):
    """Who may call a route. Everybody else gets NO_PERMISSION, or for another's job what a missing one gives."""

    MEMBER = "member"
    """Whoever may talk to the daemon at all; what the answer shows is the caller's own, or public."""
    OWNER = "owner"
    """The owner of the job or lease that the path names; and administrators."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: an identity proved by the kernel, and what it is to this daemon."""

    identity: Identity
    admin: bool

    @property
    def uid(self) -> int:
        """The user's number."""
        return self.identity.uid

    def owns(self, uid: int) -> bool:
        """Whether what belongs to `uid` is this caller's to see and change."""
        return self.admin or uid == self.uid

    def may_set(self, priority: int) -> None:
        """Raise NO_PERMISSION unless this caller may give a job such a priority."""
        if priority > DEFAULT_PRIORITY and not self.admin:
            raise FsxwarmError(
                Kind.NO_PERMISSION,
                f"a priority above {DEFAULT_PRIORITY} is for administrators",
                hint=f"ask for {DEFAULT_PRIORITY} or less",
            )


NOBODY: Final = Caller(Identity(-1), admin=False)
"""Whoever comes by a way on which nobody is asked who he is."""


@dataclass(frozen=True, slots=True)
class Circle:
    """Whom the daemon serves: groups by number (None: nobody but root), and its own user.

    A daemon that is not root cannot take on anybody's rights: it serves its own user alone. `slurm` are uids that
    may talk to it because they act for others, when Slurm's jobs begin and end.
    """

    own: int
    users: int | None
    admins: int | None
    slurm: frozenset[int] = frozenset()

    @classmethod
    def of(cls, users: str, admins: str, slurm: frozenset[int] = frozenset()) -> Circle:
        """Look up the groups by name (empty: none). FsxwarmError USAGE when there is none of that name."""
        own = os.geteuid()
        if own != 0:
            return cls(own, None, None)
        return cls(own, _gid(users), _gid(admins), slurm)

    def admit(self, identity: Identity) -> Caller | None:
        """The caller that somebody is; None for one who is not served."""
        admin = identity.uid in (0, self.own) or (self.admins is not None and self.admins in identity.gids)
        if admin or self._is_member(identity):
            return Caller(identity, admin)
        return None

    def admit_remote(self, identity: Identity) -> Caller | None:
        """The same for one on another machine: a root there is no administrator here."""
        if self._is_member(identity):
            return Caller(identity, self.admins is not None and self.admins in identity.gids)
        return None

    def _is_member(self, identity: Identity) -> bool:
        return identity.uid in self.slurm or (self.users is not None and self.users in identity.gids)


def _gid(name: str) -> int | None:
    if not name:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise FsxwarmError(
            Kind.USAGE,
            f"there is no group {name}",
            hint="make it (`systemd-sysusers`, or groupadd -r), or name another in the configuration",
        ) from None
