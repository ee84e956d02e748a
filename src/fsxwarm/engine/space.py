"""Free space: measured, less a reserve, on the file system as a whole and on its fullest target."""

from __future__ import annotations

from dataclasses import dataclass
from errno import ETIMEDOUT

from fsxwarm.model.entry import Trouble
from fsxwarm.model.units import Amount
from fsxwarm.ports.hsm import CallHungError, Hsm, Space


@dataclass(frozen=True, slots=True)
class Measure:
    """What is free on a file system, in bytes.

    `room` is what may be restored: free space less the reserve, and no more than the fullest OST can take of its even
    share; negative where the reserve is not free. A file of up to 1 GiB lies on one OST, so that one can be full while
    the file system has room (AWS, "Storage distribution").
    """

    space: Space
    room: int
    bound_by_ost: bool

    @property
    def available(self) -> int:
        """What may be restored, never negative."""
        return max(0, self.room)

    def lacks(self, nbytes: int) -> int:
        """Bytes that would have to be released, spread evenly, for so many to fit."""
        return max(0, nbytes - self.room)


def measure(space: Space, reserve: Amount) -> Measure:
    """Work out what may be restored. `reserve` is a percentage, or bytes, to be left free."""
    whole = space.free - reserve.of(space.total)
    fullest = space.fullest
    if fullest is None or not space.total:
        return Measure(space, whole, bound_by_ost=False)
    share = fullest.free - reserve.of(space.total) * fullest.total // space.total
    even = share * len(space.osts)
    return Measure(space, min(whole, even), bound_by_ost=even < whole)


async def measure_mount(hsm: Hsm, mount: bytes, reserve: Amount) -> Measure | Trouble:
    """Ask `lfs df`; Trouble when it gives no answer, which is no reason to stop warming."""
    try:
        space = await hsm.space(mount)
    except CallHungError as hung:
        return Trouble(mount, ETIMEDOUT, str(hung))
    return space if isinstance(space, Trouble) else measure(space, reserve)
