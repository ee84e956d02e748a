"""Users of this machine, as its name service knows them (passwd, LDAP, SSSD …)."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Callable, Collection

from fsxwarm.daemon.access import Circle
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import Identity


def groups_of(uid: int, gid: int | None = None) -> Identity:
    """A user with all of his groups, `gid` (by default his primary one) first. KeyError for one whom nobody knows.

    Blocks as long as the name service takes.
    """
    user = pwd.getpwuid(uid)
    first = user.pw_gid if gid is None else gid
    groups = os.getgrouplist(user.pw_name, first)
    return Identity(uid, (first, *(group for group in dict.fromkeys(groups) if group != first)))


async def served(uid: int, circle: Callable[[], Circle]) -> Identity:
    """A user whom somebody else acts for. FsxwarmError NO_PERMISSION unless the daemon serves him."""
    try:
        identity = await asyncio.to_thread(groups_of, uid)
    except KeyError:
        raise FsxwarmError(Kind.NO_PERMISSION, f"this machine knows no user with uid {uid}", hint="") from None
    if circle().admit(identity) is None:
        raise FsxwarmError(
            Kind.NO_PERMISSION, f"the daemon is not for uid {uid}", hint="let the user join the daemon's group"
        )
    return identity


def uids_of(names: Collection[str]) -> frozenset[int]:
    """The numbers of users, given by name or number. FsxwarmError USAGE for a name that nobody has."""
    found = set()
    for name in names:
        try:
            found.add(int(name) if name.isascii() and name.isdigit() else pwd.getpwnam(name).pw_uid)
        except KeyError:
            hint = "correct the daemon's configuration"
            raise FsxwarmError(Kind.USAGE, f"there is no user {name}", hint=hint) from None
    return frozenset(found)
