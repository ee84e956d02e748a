"""Data repository associations: which folder of a file system shows which S3 prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from fsxwarm.model.s3 import Uri

_SOURCE: Final = re.compile(r"(?P<nids>[^/]+):/(?P<fsname>[^/]+)(?P<below>/.*)?")
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_DNS: Final = re.compile(r"(?P<id>fs-[0-9a-f]{8,17})\.fsx\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?")


class MountSource(NamedTuple):
    """The source of a Lustre mount, taken apart.

    `host` is the first server's name or address, `name` the MountName, `below` the folder of the file system that is
    mounted (empty for all of it). `id` and `region` are those in an FSx host name, empty for any other.
    """

    host: str
    name: str
    below: str
    id: str
    region: str


def parse_source(source: str) -> MountSource | None:
    """Take `DNSName@tcp:/MountName` apart; None for what is no Lustre mount's source."""
    found = _SOURCE.fullmatch(source)
    if found is None:
        return None
    host = re.split(r"[@:,]", found["nids"])[0]
    dns = _DNS.fullmatch(host)
    below = (found["below"] or "").rstrip("/")
    return MountSource(host, found["fsname"], below, dns["id"] if dns else "", dns["region"] if dns else "")


def may_be_fsx(source: str) -> bool:
    """Whether a mount's source names an FSx file system, or an address that may be one's."""
    found = parse_source(source)
    return found is not None and (bool(found.id) or _ADDRESS.fullmatch(found.host) is not None)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """What FSx says of a file system. Capacity in bytes, `throughput` in MB/s per TiB (0: unknown or none).

    `log_group` is the CloudWatch log group that it writes to, empty if it writes to none, and `log_level` what it
    writes (WARN_ONLY, ERROR_ONLY, WARN_ERROR); `import_path` its legacy link to S3 (SCRATCH_1, 2.10 and early
    PERSISTENT_1), empty if it has none; `metadata` its metadata mode and IOPS.
    """

    id: str
    dns_name: str
    mount_name: str
    lifecycle: str
    version: str
    deployment: str
    storage: str
    capacity: int
    throughput: int = 0
    compression: str = "NONE"
    log_group: str = ""
    root_squash: str = ""
    metadata: str = ""
    metadata_iops: int = 0
    import_path: str = ""
    import_lifecycle: str = ""
    import_policy: str = ""
    import_failure: str = ""
    arn: str = ""
    log_level: str = ""

    @property
    def region(self) -> str:
        """The region in its ARN; empty if that is not known."""
        return self.arn.split(":")[3] if self.arn else ""


@dataclass(frozen=True, slots=True)
class Association:
    """A link between a folder of a file system (`folder`, absolute within it, such as `/` or `/train`) and a prefix.

    `prefix` is empty or ends in a slash. `imports` and `exports` are the events that are carried over by themselves
    (NEW, CHANGED, DELETED). A legacy link is one at `/` without an id of its own.
    """

    id: str
    folder: str
    uri: Uri
    lifecycle: str
    failure: str = ""
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    legacy: bool = False

    @property
    def usable(self) -> bool:
        """Restores through it can succeed."""
        return self.lifecycle in {"AVAILABLE", "UPDATING"}


def legacy_link(system: FileSystem) -> Association | None:
    """The one association at the root that an ImportPath amounts to."""
    if not system.import_path:
        return None
    return Association(
        id="",
        folder="/",
        uri=as_prefix(system.import_path),
        lifecycle=system.import_lifecycle or "AVAILABLE",
        failure=system.import_failure,
        imports=tuple(word for word in system.import_policy.split("_") if word not in {"NONE", ""}),
        legacy=True,
    )


def as_prefix(text: str) -> Uri:
    """Read a DataRepositoryPath: `s3://bucket/prefix`, with or without the slash at its end."""
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    return Uri(bucket, f"{prefix.rstrip('/')}/" if prefix.strip("/") else "")


class Link(NamedTuple):
    """An association as one mount shows it: `base` is the path at which its folder lies, no slash at its end."""

    base: bytes
    association: Association
    mount: bytes

    def key_of(self, path: bytes) -> str | None:
        """The key of the object behind a file; None for a name that is no UTF-8, which S3 cannot hold."""
        inner = path[len(self.base) :].lstrip(b"/")
        try:
            return self.association.uri.key + inner.decode()
        except UnicodeDecodeError:
            return None


def links_of(mount: bytes, below: str, associations: Iterable[Association]) -> list[Link]:
    """Lay associations over a mount point at which the folder `below` of the file system (empty: its root) shows."""
    links: list[Link] = []
    root = mount.rstrip(b"/")
    for association in associations:
        folder = association.folder.rstrip("/")
        if folder == below or folder.startswith(f"{below}/"):
            links.append(Link(root + folder[len(below) :].encode(), association, mount))
        elif below.startswith(f"{folder}/"):  # mounted from within the association's folder
            inner = below[len(folder) + 1 :] + "/"
            part = _moved(association, below, inner)
            links.append(Link(root, part, mount))
    return links


def _moved(association: Association, folder: str, inner: str) -> Association:
    uri = Uri(association.uri.bucket, association.uri.key + inner)
    return replace(association, folder=folder, uri=uri)


def link_of(path: bytes, links: Sequence[Link]) -> Link | None:
    """The link that a path lies in; the deepest, although FSx lets none overlap."""
    inside = [link for link in links if path == link.base or path.startswith(link.base + b"/")]
    return max(inside, key=lambda link: len(link.base), default=None)


def is_linked(path: bytes, links: Sequence[Link]) -> bool:
    """Whether a path lies in a link, or any link below it."""
    below = path.rstrip(b"/") + b"/"
    return link_of(path, links) is not None or any(link.base.startswith(below) for link in links)


class Shown(NamedTuple):
    """Where an S3 address shows: `at` those paths if it lies in an association, `within` them if it lies above some."""

    at: list[bytes]
    within: list[bytes]


def shown(uri: Uri, links: Sequence[Link]) -> Shown:
    """Find the paths at which an object or a prefix shows.

    A prefix above associations means all that they show of it. Only whole folders count: `s3://bucket/tr` does not
    mean `train/`. A file system that is mounted several times counts once, at its first mount.
    """
    folder = f"{uri.key.rstrip('/')}/" if uri.key else ""
    at: dict[Association, bytes] = {}
    within: dict[Association, bytes] = {}
    for link in links:
        bucket, prefix = link.association.uri
        if bucket != uri.bucket:
            continue
        if folder.startswith(prefix):
            inner = folder[len(prefix) :].rstrip("/")
            at.setdefault(link.association, link.base + (b"/" + inner.encode() if inner else b"") or b"/")
        elif prefix.startswith(folder):
            within.setdefault(link.association, link.base or b"/")
    return Shown(list(dict.fromkeys(at.values())), list(dict.fromkeys(within.values())))


class Complaint(NamedTuple):
    """What is wrong with an association or with a file system's use of S3, and what to do."""

    what: str
    todo: str


def complaint_of(association: Association) -> Complaint | None:
    """What is wrong with an association; None if nothing is."""
    failure = f": {association.failure}" if association.failure else ""
    match association.lifecycle:
        case "AVAILABLE" | "UPDATING":
            return None
        case "MISCONFIGURED":
            return Complaint(
                f"misconfigured{failure}",
                "check the bucket, its policy and the rights of FSx's service-linked role; then change the association"
                " (UpdateDataRepositoryAssociation), so that FSx tries again",
            )
        case "CREATING":
            return Complaint("being created", "wait until it is available: not all files are listed yet")
        case "DELETING":
            return Complaint("being deleted", "its released files cannot be restored any more")
        case "FAILED":
            return Complaint(f"failed{failure}", "delete it and create it anew")
        case other:
            return Complaint(f"in state {other}{failure}", "see the file system's page in the FSx console")


def complaint_of_system(system: FileSystem) -> Complaint | None:
    """Why a file system has no associations at all; None if it can have some."""
    if system.storage == "INTELLIGENT_TIERING":
        return Complaint(
            "Intelligent-Tiering file systems have no data repository associations",
            "its data is tiered by FSx itself: nothing to warm",
        )
    if system.deployment == "SCRATCH_1":
        return Complaint(
            "SCRATCH_1 file systems know only the link made with them (ImportPath)",
            "use SCRATCH_2 or PERSISTENT for associations",
        )
    if system.version == "2.10":
        return Complaint(
            "Lustre 2.10 file systems know only the link made with them (ImportPath)",
            "create one of 2.12 or newer for associations",
        )
    return None
