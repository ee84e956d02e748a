"""`preload --thaw`: its options, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import typer

from fsxwarm.app import App
from fsxwarm.cli.options import S3, whole
from fsxwarm.cli.schema import ThawDocument, tally
from fsxwarm.engine.looks import Looks
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.engine.thaw import Spare, Thawer, Thawing, ThawWish
from fsxwarm.engine.warm import Warmer
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason
from fsxwarm.model.s3 import CheckS3, ThawTier
from fsxwarm.model.units import format_count, format_size

Thaw = Annotated[
    bool,
    typer.Option(
        "--thaw",
        help="Have objects in Glacier, Deep Archive and archive tiers thawed, for which S3 charges; wait,"
        " and restore their files last. Looks at every object first, like --check-s3 always.",
        rich_help_panel=S3,
    ),
]
Tier = Annotated[
    ThawTier | None,
    typer.Option(
        "--tier",
        case_sensitive=False,
        metavar="TIER",
        help="With --thaw: how fast, and how dear. Bulk (the default) is the cheapest, and takes up to 12 hours, 48 for"
        " Deep Archive; Standard 5 and 12 hours; Expedited some minutes, but not for Deep Archive.",
        show_default=False,
        rich_help_panel=S3,
    ),
]
Days = Annotated[
    int | None,
    typer.Option(
        "--days",
        metavar="N",
        parser=whole(1, 365),
        help="With --thaw: for how many days S3 keeps the copy that can be read, and charges for it: 7, if not said.",
        show_default=False,
        rich_help_panel=S3,
    ),
]

_DAYS: Final = 7


def thaw_wish(check_s3: CheckS3, tier: ThawTier | None, days: int | None, *, thaw: bool) -> ThawWish | None:
    """What the options ask for; FsxwarmError USAGE if they do not go together."""
    if thaw and check_s3 is CheckS3.NEVER:
        raise FsxwarmError(
            Kind.USAGE, "--thaw has to look at what S3 holds", hint="leave out --check-s3 never, or --thaw"
        )
    if thaw:
        return ThawWish(tier or ThawTier.BULK, days or _DAYS)
    for option, given in (("--tier", tier), ("--days", days)):
        if given is not None:
            raise FsxwarmError(Kind.USAGE, f"{option} is for --thaw", hint="add --thaw")
    return None


def make_preflight(
    app: App, check_s3: CheckS3, wish: ThawWish | None, say: Callable[[str], None], *, spare: Spare, fit: bool
) -> Preflight:
    """What looks at S3 for a preload, and has thawed there what is wished."""
    thawer = None
    if wish is not None:
        thawer = Thawer(app.aws.atlas, Looks(app.hsm, app.tree), wish, say, spare=spare, fit=fit)
    return Preflight(Inspector(app.aws.atlas, check_s3, say), thawer)


def settle_waiting(preflight: Preflight, warmer: Warmer) -> None:
    """After a stop: files whose objects are still being thawed are blocked, and named as such."""
    for entry in preflight.let_go():
        warmer.settle(Finish(entry, Outcome.BLOCKED, frozenset(), reason=Reason.THAWING))


def thaw_lines(found: Thawing) -> list[str]:
    """What came of it, for people."""
    lines = []
    if found.asked.files or found.already.files:
        already = f", {found.already.files:,} more were being thawed already" if found.already.files else ""
        asked = format_count(found.asked.files, "object")
        lines.append(f"S3: asked to thaw {asked}, {format_size(found.asked.bytes)}{already}")
    if found.waiting.files:
        lines.append(
            f"S3: {format_count(found.waiting.files, 'object')} not thawed yet; what was asked of S3 goes on there:"
            " run again later, which costs nothing more"
        )
    return lines


def thaw_document(found: Thawing) -> ThawDocument:
    """What came of it, for programs."""
    return {
        "tier": found.wish.tier.value,
        "days": found.wish.days,
        "asked": tally(found.asked),
        "already": tally(found.already),
        "thawed": tally(found.thawed),
        "waiting": tally(found.waiting),
    }


def would_thaw(found: Thawing) -> str:
    """What would be thawed first, for people, after a dry run."""
    some = found.waiting
    if not some.files:
        return "nothing needs to be thawed"
    return f"thawed first: {format_count(some.files, 'object')}, {format_size(some.bytes)}, with {found.wish.words()}"
