"""Why files of jobs are not resident, and what to do: the news alone, without what a later job has looked at again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fsxwarm.client import naming, wire
from fsxwarm.engine.advice import advice
from fsxwarm.model.outcome import Reason
from fsxwarm.model.release import Reason as Kept
from fsxwarm.model.units import format_count

LEFT_ALONE: Final = {
    Kept.DIRTY: "dirty: changed since the copy in S3 was made",
    Kept.NEVER_ARCHIVED: "never archived: not in S3",
    Kept.PINNED: "pinned",
    Kept.LEASED: "leased: promised not to be released for now",
    Kept.WANTED: "wanted by a job that has not ended",
    Kept.LOST: "lost: the copy in S3 is gone",
    Kept.RESTORING: "being restored",
    Kept.BUSY: "busy: being archived, or written a moment ago",
    Kept.CHANGED: "changed while fsxwarm was looking",
    Kept.NOT_YOURS: "not yours to write",
    Kept.UNREADABLE: "flags not yours to read",
    Kept.NO_OBJECT: "not in S3: releasing it would lose its data",
    Kept.OTHER_SIZE: "of another size in S3",
    Kept.UNCHECKED: "not known to be in S3",
    Kept.HUNG: "no answer from the file system",
}
"""Why a release leaves a file alone, in words."""

_ROOT: Final = 0
_UNREADABLE: Final = "unreadable_path"
"""The reason of folders and list entries that could not be looked at: no file is counted for them."""


class Miss(NamedTuple):
    """Why so many files (or paths) are not resident, and what to do about it."""

    reason: str
    files: int
    what: str
    todo: str

    @property
    def title(self) -> str:
        """How many, and why."""
        counted = f"{self.files:,} " if self.reason == _UNREADABLE else f"{format_count(self.files, 'file')}: "
        return counted + self.what


def misses(jobs: Iterable[wire.Job]) -> list[Miss]:
    """Why files of these jobs are not resident, the commonest reason first.

    What a later job has gone over again is that job's to tell; what release jobs left alone is no matter here.
    """
    counts: Counter[str] = Counter()
    unreadable: list[wire.Job] = []
    fit: dict[str, bool] = {}
    for job in latest(jobs):
        for reason in job["counters"]["reasons"]:
            fit[reason] = fit.get(reason, True) and bool(job["options"].get("fit"))
        counts.update({reason: files for reason, files in job["counters"]["reasons"].items() if reason != Reason.GONE})
        if job["counters"]["unreadable"]:
            unreadable.append(job)
    found = [Miss(reason, files, *meaning(reason, fit=fit[reason])) for reason, files in counts.most_common()]
    if unreadable:
        paths = sum(job["counters"]["unreadable"] for job in unreadable)
        what = "folder or list entry that could not be looked at" if paths == 1 else (
            "folders or list entries that could not be looked at"
        )  # fmt: skip
        found.append(Miss(_UNREADABLE, paths, what, f"`fsxwarm jobs show {unreadable[0]['id']}` names them"))
    return found


def filed_under(failure: wire.Failure) -> str:
    """The reason of the `Miss` that a failure belongs to."""
    return _UNREADABLE if failure["outcome"] == "unreadable" else failure["reason"]


def meaning(reason: str, *, fit: bool = False) -> tuple[str, str]:
    """A reason in words, and what to do about it; `fit`: what does not fit was to be left out."""
    known = advice(Reason(reason), fit=fit) if reason in set(Reason) else None
    return (known.what, known.todo) if known else (reason.replace("_", " "), "")


def left_alone(reason: str) -> str:
    """Why a release job left a file alone, in words."""
    if reason == "recent":
        return "used too recently"
    return LEFT_ALONE[Kept(reason)] if reason in set(Kept) else reason.replace("_", " ")


def shortfall(job: wire.Job) -> str:
    """What of a job could not be made resident, in a few words: `7 failed, 2 blocked, 1 folder unreadable`; or ""."""
    counters = job["counters"]
    parts = [f"{counters[name]['files']:,} {name}" for name in ("failed", "blocked") if counters[name]["files"]]
    if counters["unreadable"]:
        parts.append(f"{format_count(counters['unreadable'], 'path')} unreadable")
    return ", ".join(parts)


def latest(jobs: Iterable[wire.Job]) -> Iterator[wire.Job]:
    """Tell the jobs that warm, the newest first, without those whose files a later one looks at again."""
    later: list[wire.Job] = []
    for job in sorted(jobs, key=lambda job: job["created"], reverse=True):
        if job["kind"] == "release":
            continue
        if not any(_goes_over(other, job) for other in later):
            yield job
        if job["phase"] not in {"failed", "cancelled"}:
            later.append(job)


def _goes_over(later: wire.Job, job: wire.Job) -> bool:
    """Whether a later job looks at all files of an earlier one, and may."""
    if later["owner"] not in {job["owner"], _ROOT}:
        return False
    if _scope(later) == _scope(job):
        return True
    whole = not (later["listed"] or later["include"] or later["exclude"])
    return whole and not job["listed"] and _within(job, later)


def _scope(job: wire.Job) -> tuple[object, ...]:
    paths = sorted(map(naming.exact, job["paths"]))
    lists = job.get("digest", job["id"]) if job["listed"] else ""  # an older daemon does not tell equal lists
    return paths, lists, sorted(job["include"]), job["exclude"]


def _within(job: wire.Job, later: wire.Job) -> bool:
    above = [naming.exact(name).rstrip(b"/") + b"/" for name in later["paths"]]
    return all(any((naming.exact(name) + b"/").startswith(one) for one in above) for name in job["paths"])
