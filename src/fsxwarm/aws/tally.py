"""Counts calls to AWS. Calls are made in threads of their own."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fsxwarm.model.measures import CallTally

THROTTLED: Final = frozenset({"ThrottlingException", "Throttling", "TooManyRequestsException", "SlowDown"})
"""Error codes that ask for fewer calls."""
_SLOW_DOWN: Final = (429, 503)


class CallCounter:
    """Counts each call once by what came of it, and on the way each answer that asked for fewer calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._throttled: Counter[str] = Counter()
        self._local = threading.local()

    def begin(self, action: str) -> None:
        """The next call of the calling thread is of such an IAM action."""
        self._local.action = action

    def end(self, action: str, result: str) -> None:
        """The call has come to its end: `ok`, or what was wrong (`fsxwarm.ports.cloud.Fault`)."""
        with self._lock:
            self._calls[action, result] += 1
            self._throttled[action] += 0

    def answered(self, response: tuple[Any, Any] | None = None, **_: Any) -> None:
        """An attempt of this thread's call was answered: botocore's event `needs-retry`. Has no say in it."""
        status = getattr(response[0], "status_code", 0) if response else 0
        code = str(response[1].get("Error", {}).get("Code", "")) if response else ""
        if status in _SLOW_DOWN or code in THROTTLED:
            with self._lock:
                self._throttled[self._local.action] += 1

    def tally(self) -> CallTally:
        """What has been counted."""
        from fsxwarm.model.measures import CallTally  # noqa: PLC0415 - few commands keep metrics, and all wait for it

        with self._lock:
            return CallTally(dict(self._calls), dict(self._throttled))
