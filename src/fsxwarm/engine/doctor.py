"""Finding out whether fsxwarm can work here, and what to do if it cannot."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fsxwarm.engine.looks import DENIED
from fsxwarm.errors import CONSEQUENCES, OTHER_LFS, FsxwarmError, Kind
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.filesystems import describe, is_lustre_client
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.model.policy import SKIPS_DUPLICATES
from fsxwarm.model.units import format_count, format_size
from fsxwarm.ports.hsm import CallHungError, Hsm, Space
from fsxwarm.ports.tree import Batch, Filters, Place, Tree

_OLDEST: Final = (2, 10)
_STAT_IS_FREE: Final = (2, 15)
_SAMPLE: Final = 200
_MOST_BATCHES: Final = 200
_FULL: Final = 0.9


class Level(StrEnum):
    """`fail` means that fsxwarm cannot work here."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do about it (empty: nothing)."""

    check: str
    level: Level
    text: str
    advice: str = ""


Servers = Callable[[str], Awaitable[tuple[int, ...] | Trouble]]
"""Finds the version of the metadata servers of a mount's source."""


class Doctor:
    """Examines the client and some paths. Starts no restore: the probe asks for one already resident file."""

    def __init__(self, tree: Tree, hsm: Hsm, servers: Servers, *, root: bool) -> None:
        self._tree = tree
        self._hsm = hsm
        self._servers = servers
        self._root = root

    async def examine(self, paths: Sequence[bytes]) -> AsyncIterator[Finding]:
        """Yield the findings as they are made."""
        has_lfs = True
        async for finding in self._client():
            has_lfs = has_lfs and finding.level is not Level.FAIL
            yield finding
        for path in paths:
            async for finding in self._path(path, has_lfs=has_lfs):
                yield finding
        yield self._user()
        hung = self._hsm.abandoned + self._tree.abandoned
        if hung:
            text = f"{format_count(hung, 'call')} hang in the kernel"
            yield Finding("calls", Level.WARN, text, CONSEQUENCES[Kind.HUNG].hint)

    async def _client(self) -> AsyncIterator[Finding]:
        try:
            version = await self._hsm.version()
        except FsxwarmError as error:
            yield Finding("lfs", Level.FAIL, error.message, error.hint)
            return
        except CallHungError as error:
            yield Finding("lfs", Level.FAIL, str(error), CONSEQUENCES[Kind.HUNG].hint)
            return
        if isinstance(version, Trouble):
            yield Finding("lfs", Level.FAIL, f"this is no Lustre client's lfs: {_why(version)}", OTHER_LFS)
            return
        name = f"lfs {'.'.join(map(str, version))}"
        if version < _OLDEST:
            yield Finding("lfs", Level.WARN, f"{name} is older than any that FSx supports", "update the Lustre client")
        elif version < _STAT_IS_FREE:
            yield Finding("lfs", Level.WARN, f"{name} works, but 2.15 polls at less cost", "update the Lustre client")
        else:
            yield Finding("lfs", Level.OK, name)

    async def _path(self, path: bytes, *, has_lfs: bool) -> AsyncIterator[Finding]:
        name = os.fsdecode(path)
        place = await self._tree.resolve(path)
        if isinstance(place, Trouble):
            kind = Kind.HUNG if place.errno == errno.ETIMEDOUT else Kind.NO_SUCH_PATH
            yield Finding("path", Level.FAIL, f"{name}: {_why(place)}", CONSEQUENCES[kind].hint)
            return
        if not is_lustre_client(place.fstype, place.source):
            what = describe(place.fstype, place.source)
            hint = CONSEQUENCES[Kind.NOT_LUSTRE].hint
            yield Finding("path", Level.FAIL, f"{name} is not on FSx for Lustre but on {what}", hint)
            return
        yield Finding("path", Level.OK, f"{name} is on {place.source}, mounted at {os.fsdecode(place.mount)}")
        yield _looks(await self._servers(place.source))
        if not has_lfs:
            return
        async for finding in self._files(place):
            yield finding
        async for finding in self._space(place):
            yield finding

    async def _files(self, place: Place) -> AsyncIterator[Finding]:
        sample, troubles = await self._sample(place)
        if troubles:
            text = f"{os.fsdecode(troubles[0].path)}: {_why(troubles[0])}"
            yield Finding("folders", Level.WARN, text, "what cannot be read is left out: run as root to reach it all")
        if not sample:
            yield Finding("states", Level.OK, "not tried: no files here")
            return
        paths = [entry.path for entry in sample]
        try:
            states = await self._hsm.states(paths)
            yield _states(states)
            yield await self._probe([p for p, state in zip(paths, states, strict=True) if state == _PROBE])
        except CallHungError as error:
            yield Finding("states", Level.FAIL, str(error), CONSEQUENCES[Kind.HUNG].hint)

    async def _probe(self, paths: Sequence[bytes]) -> Finding:
        """Ask for a restore of a file that is resident and idle: the server checks our rights and does nothing."""
        idle: list[bytes] = []
        if paths:
            actions = await self._hsm.actions(paths[:1])
            states = await self._hsm.states(paths[:1])
            idle = [paths[0]] if actions[0] == Action() and states[0] == _PROBE else []
        if not idle:
            return Finding("restore", Level.OK, "not tried: no resident file with a copy in S3 was at hand")
        reply = await self._hsm.restore(idle)
        if reply.errno == 0:
            return Finding("restore", Level.OK, "you may restore files here")
        text = f"a restore is refused: {reply.text or os.strerror(reply.errno)}"
        if reply.errno == errno.EAGAIN:
            return Finding(
                "restore", Level.FAIL, text, "the coordinator is stopped: check the file system's state in FSx"
            )
        return Finding("restore", Level.FAIL, text, CONSEQUENCES[Kind.NO_PERMISSION].hint)

    async def _sample(self, place: Place) -> tuple[list[Entry], list[Trouble]]:
        """Some files of a place, the first that come."""
        entries: list[Entry] = []
        troubles: list[Trouble] = []
        batches = (
            self._tree.walk(place, Filters(), whole=True)
            if place.is_dir
            else self._tree.listed(_one(place.path), Filters(), whole=True)
        )
        count = 0
        async with aclosing(_generator(batches)) as some:
            async for batch in some:
                entries += [item for item in batch.items if isinstance(item, Entry)]
                troubles += batch.troubles
                count += 1
                if len(entries) >= _SAMPLE or count >= _MOST_BATCHES:
                    break
        return entries[:_SAMPLE], troubles

    async def _space(self, place: Place) -> AsyncIterator[Finding]:
        try:
            space = await self._hsm.space(place.mount)
        except CallHungError as error:
            yield Finding("space", Level.FAIL, str(error), CONSEQUENCES[Kind.HUNG].hint)
            return
        if isinstance(space, Trouble):
            yield Finding("space", Level.WARN, f"free space is unknown: {_why(space)}", "check `lfs df`")
            return
        yield _room(space)
        fullest = space.fullest
        if fullest is not None:
            yield _fullness(f"fullest OST {fullest.name}", fullest.free, fullest.total, check="ost")

    def _user(self) -> Finding:
        if self._root:
            return Finding("user", Level.OK, "you are root: wedged restores can be cancelled, all folders read")
        return Finding(
            "user", Level.OK, "you are not root: only root can cancel wedged restores, or read others' folders"
        )


_PROBE: Final = Flags.EXISTS | Flags.ARCHIVED
"""A resident, clean file with its copy in S3: a restore of it is a no-op."""


def _states(states: Sequence[Flags | Trouble]) -> Finding:
    denied = sum(isinstance(state, Trouble) and state.errno in DENIED for state in states)
    read = sum(isinstance(state, Flags) for state in states)
    if denied:
        text = f"flags of {denied} of {format_count(len(states), 'file')} may not be read"
        return Finding("states", Level.WARN, text, "fsxwarm falls back to `lfs find`; read permission makes it exact")
    if not read and isinstance(states[0], Trouble):
        advice = "check that HSM works on this file system: `lfs hsm_state FILE`"
        return Finding("states", Level.FAIL, f"flags cannot be read: {_why(states[0])}", advice)
    released = sum(isinstance(state, Flags) and state.released for state in states)
    return Finding(
        "states", Level.OK, f"flags can be read; {released} of {format_count(read, 'file')} seen are released"
    )


def _looks(servers: tuple[int, ...] | Trouble) -> Finding:
    """Whether files are looked at before they are asked for, which is needless where servers skip duplicates."""
    looks = "each file is looked at before it is asked for"
    if isinstance(servers, Trouble):
        return Finding("servers", Level.OK, f"version unknown ({_why(servers)}): {looks}")
    if servers >= SKIPS_DUPLICATES:
        looks = "files need no look before they are asked for"
    return Finding("servers", Level.OK, f"Lustre {'.'.join(map(str, servers))}: {looks}")


def _room(space: Space) -> Finding:
    return _fullness("file system", space.free, space.total, check="space")


def _fullness(what: str, free: int, total: int, *, check: str) -> Finding:
    used = 1 - free / total if total else 1.0
    text = f"{what}: {format_size(free)} of {format_size(total)} free, {used:.0%} full"
    if used >= _FULL:
        return Finding(check, Level.WARN, text, "release something (`fsxwarm release --until-free 20%`)")
    return Finding(check, Level.OK, text)


def _why(trouble: Trouble) -> str:
    return trouble.text or os.strerror(trouble.errno)


async def _one(path: bytes) -> AsyncIterator[Sequence[bytes]]:
    yield [path]


async def _generator(batches: AsyncIterator[Batch]) -> AsyncGenerator[Batch, None]:
    async for batch in batches:
        yield batch
