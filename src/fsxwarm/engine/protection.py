"""What must not be released: promised paths, paths that unfinished jobs want, files that have just been restored."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fsxwarm.model.entry import Entry
from fsxwarm.model.release import Reason

_MOST_FOLDERS: Final = 1000


def folders_of(files: Iterable[bytes], most: int = _MOST_FOLDERS) -> frozenset[bytes]:
    """The folders that listed files lie in; of more than `most`, the folders above them, so that none is left out."""
    folders = {_parent(path) for path in files}
    while len(folders) > most:
        folders = {_parent(folder) for folder in folders}
    return frozenset(folders)


class Protection:
    """Roots that somebody holds, by the holder's name, kept up to date while jobs and leases come and go.

    `wanted` tells when a job that has ended last wanted a root, in seconds since the epoch.
    """

    def __init__(self, wanted: Mapping[bytes, float]) -> None:
        self.wanted = dict(wanted)
        self._leased: Counter[bytes] = Counter()
        self._jobs: Counter[bytes] = Counter()
        self._held: dict[str, tuple[Counter[bytes], frozenset[bytes]]] = {}

    def hold(self, holder: str, roots: Iterable[bytes], *, lease: bool = False) -> None:
        """Protect roots for a holder, in place of those that it held before."""
        self.drop(holder)
        kind = self._leased if lease else self._jobs
        held = frozenset(roots)
        kind.update(held)
        self._held[holder] = (kind, held)

    def held(self, holder: str) -> frozenset[bytes]:
        """What a holder holds."""
        return self._held[holder][1] if holder in self._held else frozenset()

    def drop(self, holder: str) -> None:
        """Protect nothing for a holder any longer."""
        if holder in self._held:
            kind, roots = self._held.pop(holder)
            for root in roots:
                kind[root] -= 1
                if not kind[root]:
                    del kind[root]

    def forget(self, most: int) -> None:
        """Forget when paths were wanted, but for the `most` that were last."""
        if len(self.wanted) > most:
            self.wanted = dict(sorted(self.wanted.items(), key=lambda item: item[1])[-most:])

    def reason(self, path: bytes) -> Reason | None:
        """Why a file may not be released now; None if it may."""
        for root in _upwards(path):
            if root in self._leased:
                return Reason.LEASED
            if root in self._jobs:
                return Reason.WANTED
        return None

    def used(self, entry: Entry) -> float:
        """When a file was last of use: read, written, changed, or wanted by a job."""
        wanted = max((self.wanted.get(root, 0.0) for root in _upwards(entry.path)), default=0.0)
        return max(float(entry.used), wanted)


class Restored:
    """Files that became resident lately, by inode number: `earlier` is a sorted sequence of them, others are added."""

    def __init__(self, earlier: Sequence[int], lately: Iterable[int] = ()) -> None:
        self.earlier = earlier
        self._lately = set(lately)

    def add(self, ino: int) -> None:
        """One more has become resident."""
        self._lately.add(ino)

    def __contains__(self, ino: int) -> bool:
        at = bisect_left(self.earlier, ino)
        return ino in self._lately or (at < len(self.earlier) and self.earlier[at] == ino)


def _upwards(path: bytes) -> Iterable[bytes]:
    while True:
        yield path
        up = _parent(path)
        if up == path:
            return
        path = up


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0] or b"/"
