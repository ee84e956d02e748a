"""The end of a session: signals that ask a command to end, and terminals that have gone."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SAYING: Final = (1, 2)
"""Standard output and standard error."""


def leave_gone_terminals() -> None:
    """Let what is still to be said to a terminal that has gone go nowhere: the rest of the work, a report say, counts.

    A reader of a pipe that has gone is another matter: it has had enough.
    """
    for stream in _SAYING:
        poll = select.poll()
        poll.register(stream, 0)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream)
            os.close(null)


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """While the body runs, SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, unless they are ignored (nohup).

    Each does so once: a terminal that closes may send SIGHUP twice, by the shell and by the kernel.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number, handler in before.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, handler)


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
