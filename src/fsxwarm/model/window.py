"""How many files may be in flight at one metadata target: learnt from how fast they become resident."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_PAUSE: Final = (2.0, 60.0)
_INTERVAL: Final = 2.0
_RISE: Final = 1.1


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """Bounds of a window, in files. `fixed` takes the place of all learning."""

    start: int = 64
    floor: int = 4
    ceiling: int = 5000
    fixed: int | None = None


class Window:
    """The window of one metadata target. Times in seconds on one steady clock; `now` never goes back."""

    def __init__(self, policy: WindowPolicy, now: float) -> None:
        self._policy = policy
        self._size = policy.fixed or policy.start
        self._paused_until = now
        self._pause = _PAUSE[0]
        self._since = now
        self._files = 0
        self._bytes = 0
        self._best = 0.0
        self._rate_files = 0.0
        self._rate_bytes = 0.0
        self._service = 0.0

    @property
    def size(self) -> int:
        """Files that may be in flight."""
        return self._size

    @property
    def paused_until(self) -> float:
        """Until when nothing may be asked for."""
        return self._paused_until

    @property
    def rate_files(self) -> float:
        """Files that became resident per second, of late."""
        return self._rate_files

    @property
    def rate_bytes(self) -> float:
        """Bytes that became resident per second, of late."""
        return self._rate_bytes

    @property
    def service_time(self) -> float:
        """Seconds that a restore takes when it need not wait for others; 0 while nothing was seen."""
        return self._service

    @property
    def limit(self) -> str:
        """What binds: "files/s", "bytes/s", or "unknown"."""
        return "unknown"

    def submitted(self, files: int, in_flight: int, now: float) -> None:
        """A request for `files` files is on its way; `in_flight` counts them already."""

    def settled(self, *, nbytes: int, took: float, in_flight: int, now: float) -> None:
        """A file became resident `took` seconds after it was asked for."""
        del in_flight, now
        self._files += 1
        self._bytes += nbytes
        self._service = min(self._service or took, took)
        self._pause = _PAUSE[0]

    def refused(self, now: float) -> None:
        """The coordinator takes no requests (EAGAIN): leave it alone for a while, and ask for less afterwards."""
        if now < self._paused_until:
            return
        self._paused_until = now + self._pause
        self._pause = min(2 * self._pause, _PAUSE[1])
        if self._policy.fixed is None:
            self._size = max(self._policy.floor, self._size // 2)

    def tick(self, in_flight: int, hungry: bool, now: float) -> None:  # noqa: FBT001 - a fact beside two others
        """About a second has passed. `hungry`: there is more to ask for, and the window is what holds it back."""
        del in_flight
        took = now - self._since
        if took < max(_INTERVAL, 2 * self._service):
            return
        self._rate_files, self._rate_bytes = self._files / took, self._bytes / took
        if self._policy.fixed is None and hungry and self._rate_files > _RISE * self._best:
            self._best = self._rate_files
            self._size = min(2 * self._size, self._policy.ceiling)
        self._since, self._files, self._bytes = now, 0, 0
