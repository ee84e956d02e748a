"""What the warming has to tell besides its counters: one clear line a matter, and not too often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fsxwarm.cli.output import short_path
from fsxwarm.cli.snapshot import Snapshot
from fsxwarm.model.messages import Say, Word
from fsxwarm.model.units import format_count, format_duration

_BETWEEN: Final = 10.0
"""Seconds between the first two lines about the same matter; doubled each time."""
_AT_MOST: Final = 600.0


@dataclass(slots=True)
class _Heard:
    times: int = 0
    files: int = 0
    path: bytes = b""
    seconds: float = 0.0


@dataclass(slots=True)
class Saying:
    """Collects words; `due` gives the lines whose time has come, `rest` those that are left at the end."""

    fit: bool = False
    _heard: dict[Word, _Heard] = field(default_factory=dict)
    _next: dict[Word, tuple[float, float]] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _ready: str = ""
    _told_lopsided: bool = False

    def said(self, say: Say) -> None:
        """Something of the whole is worth telling."""
        heard = self._heard.setdefault(say.word, _Heard())
        heard.times += 1
        heard.files += len(say.files)
        heard.seconds = say.seconds
        if say.files and not heard.path:
            heard.path = say.files[0].path

    def tell(self, line: str) -> None:
        """A line of its own, told as soon as can be."""
        self._lines.append(line)

    def ready(self) -> None:
        """The share asked for is resident."""
        self._ready = "ready: the share asked for is resident; the rest goes on"

    def due(self, seen: Snapshot, now: float) -> list[str]:
        """Lines to print at time `now`, in seconds on any steady clock."""
        lines, self._lines = self._lines, []
        for word in list(self._heard):
            due, pause = self._next.get(word, (now, _BETWEEN))
            if due <= now:
                lines.append(self._line(word, seen.in_flight))
                self._next[word] = (now + pause, min(2 * pause, _AT_MOST))
        if self._ready:
            lines.append(self._ready)
            self._ready = ""
        if seen.lopsided is not None and not self._told_lopsided:
            self._told_lopsided = True
            lines.append(
                f"nearly all of these files are on one of several metadata targets (MDT{seen.lopsided}),"
                " which alone sets the pace"
            )
        return lines

    def rest(self) -> list[str]:
        """Lines that were held back."""
        return [*self._lines, *(self._line(word, None) for word in list(self._heard))]

    def _line(self, word: Word, in_flight: int | None) -> str:
        heard = self._heard.pop(word)
        files = format_count(heard.files, "file")
        such_as = f", such as {short_path(heard.path)}" if heard.files > 1 else f": {short_path(heard.path)}"
        calls = "a request" if heard.times == 1 else format_count(heard.times, "request")
        hang = f"hang{'s' if heard.times == 1 else ''} in the kernel"
        watched = "it is watched" if heard.files == 1 else "they are watched"
        time = format_duration(heard.seconds)
        flying = "files are in flight" if in_flight is None else f"{format_count(in_flight, 'file')} in flight"
        return {
            Word.SYSTEM_STALLED: f"nothing has become resident for {time} with {flying}: waiting goes on",
            Word.SYSTEM_MOVES: "files become resident again",
            Word.PAUSED: f"the metadata server takes no requests now: asking pauses for {time}",
            Word.FILE_STALLED: f"{files}: the restore runs, but no bytes move{such_as}",
            Word.FILE_WEDGED: f"{files}: the request counts as running but was never started{such_as}",
            Word.CURED: f"{files}: a stuck request was cancelled, and is made again{such_as}",
            Word.CALL_HUNG: f"{calls} for {files} {hang}; {watched}{such_as}",
            Word.RETRY: f"{files}: the restore came to nothing and is tried again{such_as}",
            Word.NO_ROOM: "no room for the rest" if self.fit else "not all of it fits: nothing more is asked for",
            Word.ROOM_UNKNOWN: "free space could not be measured (lfs df): it is not known whether all of it fits",
            Word.NOT_ALLOWED: "the metadata server refuses every restore that this user asks for",
        }[word]
