"""The choice between native calls and `lfs`: made once, on the first mount that is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fsxwarm.config import Backend
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.mounts import mount_of, read_mounts
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.model.entry import Key, Trouble
from fsxwarm.model.filesystems import is_lustre_client
from fsxwarm.model.hsm import Action, Flags
from fsxwarm.ports.hsm import Hsm, Reply, Space


class Choice(NamedTuple):
    """What was chosen, and why, in words that end a sentence."""

    backend: Backend
    why: str


class ChosenHsm:
    """Implements `fsxwarm.ports.hsm.Hsm` by one of two others.

    With `Backend.AUTO` native calls are tried on the first path's mount, harmlessly; anything unexpected means `lfs`.
    With `Backend.NATIVE` that is FsxwarmError NOT_LUSTRE. `mounts` is the mount table's file.
    """

    def __init__(self, wish: Backend, native: NativeHsm, lfs: LfsHsm, mounts: str = "/proc/self/mounts") -> None:
        self._wish = wish
        self._native = native
        self._lfs = lfs
        self._mounts = mounts
        self._choosing = asyncio.Lock()
        self.choice: Choice | None = Choice(Backend.LFS, "asked for") if wish is Backend.LFS else None
        """None as long as nothing was asked of Lustre."""

    @property
    def abandoned(self) -> int:
        """How many calls hang in the kernel right now, abandoned."""
        return self._native.abandoned + self._lfs.abandoned

    async def close(self) -> None:
        """End what still runs."""
        await self._native.close()
        await self._lfs.close()

    async def choose(self) -> Choice | None:
        """Choose now, by the first Lustre mount there is; None where there is none yet. Raises as the calls do."""
        if self.choice is None:
            mounts = [mount for mount in read_mounts(self._mounts) if is_lustre_client(mount.fstype, mount.source)]
            await self._for([mount.path for mount in mounts[:1]])
        return self.choice

    async def _for(self, paths: Sequence[bytes]) -> Hsm:
        if self.choice is None and paths:
            async with self._choosing:
                if self.choice is None:
                    await self._choose(paths[0])
        if self.choice is not None and self.choice.backend is Backend.NATIVE:
            return self._native
        await self._lfs.must_be_lustres()  # another program of that name would fail file by file
        return self._lfs

    async def _choose(self, path: bytes) -> None:
        mount = mount_of(read_mounts(self._mounts), path)
        if mount is None or not is_lustre_client(mount.fstype, mount.source):
            return  # that is no mount to try it on: lfs has the words for it
        problem = await self._native.probe(mount.path)
        if not problem:
            why = "asked for" if self._wish is Backend.NATIVE else "Lustre's own calls work here"
            self.choice = Choice(Backend.NATIVE, why)
        elif self._wish is Backend.NATIVE:
            raise FsxwarmError(
                Kind.NOT_LUSTRE, f"native calls do not work: {problem}", hint="use --backend auto or --backend lfs"
            )
        else:
            self.choice = Choice(Backend.LFS, f"native calls do not work: {problem}")

    # ---- the port ----------------------------------------------------------------------------------------------

    async def states(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Flags | Trouble]:
        """See the port."""
        return await (await self._for(paths)).states(paths, keys)

    async def actions(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> list[Action | Trouble]:
        """See the port."""
        return await (await self._for(paths)).actions(paths, keys)

    async def released(self, paths: Sequence[bytes]) -> list[bool | Trouble]:
        """See the port."""
        return await (await self._for(paths)).released(paths)

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await (await self._for(paths)).restore(paths, keys)

    async def cancel(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await (await self._for(paths)).cancel(paths, keys)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        """See the port."""
        return await (await self._for(paths)).release(paths, keys)

    async def pin(self, paths: Sequence[bytes], *, on: bool) -> list[Trouble | None]:
        """See the port."""
        return await (await self._for(paths)).pin(paths, on=on)

    async def space(self, mount: bytes) -> Space | Trouble:
        """See the port."""
        return await self._lfs.space(mount)

    async def version(self) -> tuple[int, ...] | Trouble:
        """See the port."""
        return await self._lfs.version()
