"""Telling systemd how it goes (sd_notify(3)), and the signs of life that its watchdog wants."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_SHARE: Final = 0.4
"""Signs of life come at this share of the watchdog's time."""


class Notifier:
    """Speaks to the socket that NOTIFY_SOCKET in `environ` names; to nobody if there is none.

    `pid` is ours: the watchdog may be meant for somebody else.
    """

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        usec = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
        self.watchdog_every = int(usec) / 1e6 * _SHARE if usec.isdecimal() and mine and name else None
        """Seconds between signs of life; None where nobody wants any."""

    def ready(self, status: str) -> None:
        """Started, or done with reading the configuration anew."""
        self._send("READY=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={status}")

    def reloading(self) -> None:
        """Reading the configuration anew."""
        self._send("RELOADING=1")

    def stopping(self) -> None:
        """On the way out."""
        self._send("STOPPING=1", "STATUS=storing what is under way")

    async def live(self) -> None:
        """Give signs of life from the event loop, for as long as it turns: Lustre may take as long as it likes."""
        while self.watchdog_every is not None:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_every)

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        text = "\n".join(line.replace("\n", " ") for line in lines)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.setblocking(False)
            sock.sendto(os.fsencode(text), self._address)
