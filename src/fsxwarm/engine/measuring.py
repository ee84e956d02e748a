"""What metrics tell of one warming and of a file system, be it a command's or the daemon's."""

from __future__ import annotations

from collections.abc import Mapping

from fsxwarm.model.file import Phase
from fsxwarm.model.measures import LaneMeasure, SpaceMeasure, label
from fsxwarm.model.warming import Warming
from fsxwarm.ports.hsm import Space


def lanes_of(machine: Warming, mounts: Mapping[int, bytes]) -> list[LaneMeasure]:
    """A machine's metadata targets; `mounts` names the file systems by st_dev."""
    return [
        LaneMeasure(
            label(mounts.get(lane_id.dev, b"")),
            lane_id.mdt,
            lane.window.size,
            lane.at_fsx,
            lane.counts[Phase.WATCHED],
            lane.waiting,
        )
        for lane_id, lane in sorted(machine.lanes.items())
    ]


def restoring_of(machine: Warming, mounts: Mapping[int, bytes]) -> dict[str, int]:
    """By mount: bytes asked for or about to be, and not resident yet."""
    devs = {lane_id.dev for lane_id in machine.lanes}
    return {label(mounts[dev]): machine.claimed(dev) for dev in sorted(devs) if dev in mounts}


def space_of(mount: bytes, space: Space) -> SpaceMeasure:
    """Room on a file system."""
    fullest = space.fullest
    return SpaceMeasure(
        label(mount), space.free, space.total, None if fullest is None else (fullest.free, fullest.total)
    )
