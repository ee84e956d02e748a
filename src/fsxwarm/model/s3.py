"""S3 as FSx sees it: object addresses, and which objects a restore can read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from fsxwarm.model.outcome import Reason

SCHEME: Final = "s3://"

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_OFFLINE: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})
_TIERING: Final = "INTELLIGENT_TIERING"
_ONGOING: Final = re.compile(r'ongoing-request="(true|false)"')


class Uri(NamedTuple):
    """An S3 address: a bucket and a key, or a prefix of keys; empty for the whole bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"


def parse_uri(text: str) -> Uri:
    """Read `s3://bucket/key`. ValueError says what is wrong."""
    if not text.lower().startswith(SCHEME):
        raise ValueError(f"{text!r} is no S3 address: write s3://bucket/prefix")
    bucket, _, key = text[len(SCHEME) :].partition("/")
    if bucket.startswith("arn:") or not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{bucket!r} is no bucket's name: write s3://bucket/prefix")
    return Uri(bucket, key)


def is_uri(text: str) -> bool:
    """Tell an S3 address from a path; a file of that name is written `./s3:/…`."""
    return text.lower().startswith(SCHEME)


class CheckS3(StrEnum):
    """Whether objects are looked at first: as far as it costs little, at any cost, or not at all."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Thaw(StrEnum):
    """Whether an archived object has, or will have, a copy that can be read."""

    NONE = "none"
    ONGOING = "ongoing"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as S3 lists it: size in bytes, `modified` in seconds since the epoch, its storage class.

    `archive` is what HeadObject says of an Intelligent-Tiering object (ARCHIVE_ACCESS, DEEP_ARCHIVE_ACCESS, empty for
    the tiers that can be read); None while nobody has asked.
    """

    size: int
    modified: int
    storage_class: str = "STANDARD"
    thaw: Thaw = Thaw.NONE
    archive: str | None = None

    @property
    def must_be_asked(self) -> bool:
        """Whether only HeadObject can tell if it can be read: a listing does not show the tier it has moved to."""
        return self.storage_class == _TIERING and self.archive is None

    @property
    def deep(self) -> bool:
        """Archived so deeply that only the slower thaws exist for it."""
        return self.storage_class == "DEEP_ARCHIVE" or self.archive == "DEEP_ARCHIVE_ACCESS"

    @property
    def offline(self) -> bool:
        """FSx cannot read it until it is thawed. Glacier Instant Retrieval can be read as it is."""
        archived = self.storage_class in _OFFLINE or bool(self.archive)
        return archived and self.thaw is not Thaw.LIVE


def parse_restore(header: str) -> Thaw:
    """Read the Restore header of HeadObject: `ongoing-request="false", expiry-date="…"`."""
    found = _ONGOING.search(header)
    if found is None:
        return Thaw.NONE
    return Thaw.ONGOING if found[1] == "true" else Thaw.LIVE


def refusal(size: int, stored: Stored | None) -> Reason | None:
    """Why FSx cannot restore a file of `size` bytes from what S3 has; None if nothing speaks against it."""
    if stored is None:
        return Reason.OBJECT_MISSING
    if stored.size != size:
        return Reason.OBJECT_CHANGED
    if stored.offline:
        return Reason.THAWING if stored.thaw is Thaw.ONGOING else Reason.STORAGE_CLASS
    return None


class ThawTier(StrEnum):
    """How fast, and how dear, a thaw is."""

    BULK = "Bulk"
    STANDARD = "Standard"
    EXPEDITED = "Expedited"


class ThawCost(NamedTuple):
    """What a thaw costs in words, and how long it takes at most, for Glacier Flexible Retrieval and Deep Archive.

    Hours; None where the tier does not exist for the class (S3 user guide, "Understanding archive retrieval options").
    """

    words: str
    glacier: float
    deep: float | None


THAW_COSTS: Final[dict[ThawTier, ThawCost]] = {
    ThawTier.BULK: ThawCost("the cheapest: free of retrieval charges for Glacier Flexible Retrieval", 12.0, 48.0),
    ThawTier.STANDARD: ThawCost("charged by request and by GB", 5.0, 12.0),
    ThawTier.EXPEDITED: ThawCost("the dearest: several times Standard's charges", 5 / 60, None),
}
