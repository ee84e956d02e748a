"""How `fsxwarm plan` looks, as text and as JSON."""

from __future__ import annotations

from typing import Final, Literal, TypedDict

from rich.console import Console

from fsxwarm.cli.estimate_view import counts
from fsxwarm.cli.output import console, safe, show_path
from fsxwarm.cli.s3_view import checked_document, checked_lines
from fsxwarm.cli.schema import CheckedS3, FilePath, Leftovers, Tally, issues, json_path, tally, unusable
from fsxwarm.cli.tables import add_tallies, plain_table, show_leftovers
from fsxwarm.engine.estimate import Need
from fsxwarm.engine.planner import Part, Plan
from fsxwarm.engine.preflight import Checked
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit
from fsxwarm.model import tally as model
from fsxwarm.model.association import FileSystem
from fsxwarm.model.forecast import Basis, Bound
from fsxwarm.model.outcome import MEANINGS
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_BIGGEST: Final = 10
_WHO: Final = {
    Basis.SEEN: "seen in earlier runs here",
    Basis.TIER: "what its tier's disks take in",
    Basis.PUBLISHED: "seen elsewhere: no earlier run here tells",
}


# ---- text ----------------------------------------------------------------------------------------------------------


def show(plan: Plan, selection: Selection, checked: Checked) -> None:
    """Print a plan for people."""
    out = console()
    _show_counts(out, plan)
    if plan.folders:
        out.print()
        _show_folders(out, plan)
    for part in plan.parts:
        if part.released.files:
            out.print()
            _show_part(out, part)
    out.print()
    if not plan.estimate.released.files:
        out.print("nothing needs to be restored")
    else:
        gets = format_count(plan.estimate.released.files, "object")
        out.print(
            f"requests: {plan.requests:,} to Lustre at least; FSx then reads {gets} from S3, one GET or more each"
        )
    for line in checked_lines(checked):
        out.print(line)
    if plan.estimate.vanished:
        out.print(f"{format_count(plan.estimate.vanished, 'path')} vanished meanwhile")
    show_leftovers(out, selection, plan.estimate.troubles)


def _show_counts(out: Console, plan: Plan) -> None:
    out.print(counts(plan.estimate))
    for reason in plan.estimate.blocked:
        out.print(f"→ {MEANINGS[reason].what}: {MEANINGS[reason].todo}", style="yellow")


def _show_folders(out: Console, plan: Plan) -> None:
    table = plain_table("biggest folders", ["files", "to be restored"])
    add_tallies(table, [(show_path(path), some) for path, some in plan.biggest(_BIGGEST)])
    others = _others(plan)
    if others.files:
        more = len(plan.folders) - _BIGGEST
        add_tallies(table, [(f"and {format_count(more, 'more folder')}", others)])
    out.print(table)


def _show_part(out: Console, part: Part) -> None:
    system = "" if part.system is None else f", {_tier(part.system)}"
    out.print(f"{show_path(part.mount)}{system}", style="bold")
    if part.need is None:
        out.print("  room: free space could not be measured", style="yellow")
    else:
        _show_room(out, part, part.need)
    forecast = part.forecast
    binds = "" if forecast.binds == "unknown" else f"; {forecast.binds} bind"
    out.print(f"  time: about {format_duration(forecast.seconds)}{binds}")
    files = f"{forecast.by_files.rate:,.0f} files/s" if forecast.by_files.rate >= 1 else "less than 1 file/s"
    out.print(f"    by files  {_bound(forecast.by_files)} at {files}, {_WHO[forecast.by_files.basis]}")
    if forecast.by_bytes is not None:
        rate = format_rate(forecast.by_bytes.rate)
        out.print(f"    by bytes  {_bound(forecast.by_bytes)} at {rate}, {_WHO[forecast.by_bytes.basis]}")
    if part.unknown:
        out.print(f"    its tier is not known: {safe(part.unknown)}", style="dim")


def _show_room(out: Console, part: Part, need: Need) -> None:
    measure = need.measure
    upper = f" at most, for {part.system.compression} compresses" if part.system and part.compressed else ""
    fullest = measure.space.fullest
    ost = "" if fullest is None else f", {format_size(fullest.free)} on the fullest OST ({safe(fullest.name)})"
    why = "as that allows" if measure.bound_by_ost else "less the reserve"
    out.print(
        f"  room: {format_size(need.bytes)} needed{upper}; {format_size(measure.space.free)} free{ost};"
        f" {format_size(measure.available)} may be used, {why}",
        style="" if need.fits else "yellow",
    )
    if need.fits:
        return
    target = _until_free(need)
    if target > measure.space.total:
        out.print(
            "  with the reserve it is more than the file system holds: preload it in parts, or with --fit",
            style="yellow",
        )
        return
    size = format_size(measure.lacks(need.bytes))
    out.print(
        f"  not enough room: {size} would have to be released:"
        f" fsxwarm release --until-free {_rounded_up(target)} {show_path(part.mount)}",
        style="yellow",
    )


def _bound(bound: Bound) -> str:
    return f"{format_duration(bound.seconds):>7}"


def _tier(system: FileSystem) -> str:
    through = f", {system.throughput} MB/s per TiB" if system.throughput else ""
    return f"{system.id}: {system.deployment} {system.storage}, {format_size(system.capacity)}{through}"


def _until_free(need: Need) -> int:
    """How much must be free for all of it to fit, the reserve included."""
    return need.measure.space.free + need.bytes - need.measure.room


def _rounded_up(size: int) -> str:
    """A size as an option takes it, rounded up to three or more digits."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= 100 * unit:
            return f"{-(-size // unit)}{name}"
    return str(size)


def _others(plan: Plan) -> model.Tally:
    named = [some for _, some in plan.biggest(_BIGGEST)]
    released = plan.estimate.released
    return model.Tally(
        released.files - sum(some.files for some in named), released.bytes - sum(some.bytes for some in named)
    )


# ---- JSON ----------------------------------------------------------------------------------------------------------


class FolderToRestore(FilePath, Tally):
    """A folder, and what is to be restored in it."""


class OstDocument(TypedDict):
    """An object storage target: bytes."""

    name: str
    total: int
    free: int


class RoomDocument(TypedDict):
    """Bytes: needed, free, of these to be used; what would have to be released, and be free, for all to fit.

    `upper_bound` tells that the file system compresses, so that less may be needed.
    """

    need: int
    total: int
    free: int
    available: int
    fits: bool
    fullest_ost: OstDocument | None
    upper_bound: bool
    to_release: int
    until_free: int


class BoundDocument(TypedDict):
    """Seconds by one limit: at so many files or bytes per second, by earlier runs, the tier, or others' measures."""

    seconds: float
    rate: float
    basis: Literal["seen", "tier", "published"]


class TimeDocument(TypedDict):
    """The estimated time. `binds` is files/s, bytes/s, or unknown where no rate of bytes is known."""

    seconds: float
    binds: str
    by_files: BoundDocument
    by_bytes: BoundDocument | None


class TierDocument(TypedDict):
    """What FSx says of a file system: capacity in bytes, throughput in MB/s per TiB (0 if it has none)."""

    id: str
    deployment: str
    storage: str
    capacity: int
    throughput: int
    compression: str


class PartDocument(TypedDict):
    """The plan of one file system. `tier` is null where it is not known, and `unknown` says why."""

    mount: FilePath
    released: Tally
    tier: TierDocument | None
    unknown: str
    room: RoomDocument | None
    time: TimeDocument


class RequestsDocument(TypedDict):
    """Requests that a preload takes at the least: to Lustre, and FSx's own to S3. `s3_made` were made for the plan."""

    lustre: int
    s3_get: int
    s3_made: int


class PlanDocument(Leftovers):
    """`fsxwarm.plan/1`. `folders` are the biggest, `other_folders` all others together; `blocked` goes by reason."""

    schema: str
    exit: int
    released: Tally
    resident: Tally
    blocked: dict[str, Tally]
    unknown: Tally
    vanished: int
    skipped: int
    folders: list[FolderToRestore]
    other_folders: Tally
    file_systems: list[PartDocument]
    fits: bool
    seconds: float
    requests: RequestsDocument
    s3: CheckedS3


def plan_document(plan: Plan, selection: Selection, checked: Checked, code: Exit) -> PlanDocument:
    """Write a plan as the object that `--json` prints."""
    found = plan.estimate
    return {
        "schema": "fsxwarm.plan/1",
        "exit": int(code),
        "released": tally(found.released),
        "resident": tally(found.resident),
        "blocked": {reason.value: tally(some) for reason, some in found.blocked.items()},
        "unknown": tally(found.unknown),
        "vanished": found.vanished,
        "skipped": found.skipped,
        "folders": [{**json_path(path), **tally(some)} for path, some in plan.biggest(_BIGGEST)],
        "other_folders": tally(_others(plan)),
        "file_systems": [_part(part) for part in plan.parts],
        "fits": plan.fits,
        "seconds": plan.seconds,
        "requests": {"lustre": plan.requests, "s3_get": found.released.files, "s3_made": checked.requests},
        "s3": checked_document(checked),
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(found.troubles),
    }


def _part(part: Part) -> PartDocument:
    forecast = part.forecast
    return {
        "mount": json_path(part.mount),
        "released": tally(part.released),
        "tier": None if part.system is None else _tier_document(part.system),
        "unknown": part.unknown,
        "room": None if part.need is None else _room(part.need, upper_bound=part.compressed),
        "time": {
            "seconds": forecast.seconds,
            "binds": forecast.binds,
            "by_files": _bound_document(forecast.by_files),
            "by_bytes": None if forecast.by_bytes is None else _bound_document(forecast.by_bytes),
        },
    }


def _room(need: Need, *, upper_bound: bool) -> RoomDocument:
    space = need.measure.space
    fullest = space.fullest
    return {
        "need": need.bytes,
        "total": space.total,
        "free": space.free,
        "available": need.measure.available,
        "fits": need.fits,
        "fullest_ost": None
        if fullest is None
        else {"name": fullest.name, "total": fullest.total, "free": fullest.free},
        "upper_bound": upper_bound,
        "to_release": need.measure.lacks(need.bytes),
        "until_free": _until_free(need),
    }


def _tier_document(system: FileSystem) -> TierDocument:
    return {
        "id": system.id,
        "deployment": system.deployment,
        "storage": system.storage,
        "capacity": system.capacity,
        "throughput": system.throughput,
        "compression": system.compression,
    }


def _bound_document(bound: Bound) -> BoundDocument:
    return {"seconds": bound.seconds, "rate": bound.rate, "basis": bound.basis.value}
