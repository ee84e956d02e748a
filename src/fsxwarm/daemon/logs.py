"""The daemon's log: JSON for journald, lines for people on a terminal. What it may say is in `vocabulary`."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

from fsxwarm.daemon.vocabulary import LINES, Level, Line

_LONGEST: Final = 2000
"""Characters of one value: a path may be as long as it likes, a line of the log may not."""
_SECRET: Final = ("secret", "token", "password", "credential", "authorization", "access_key")
_HIDDEN: Final = "(hidden)"

_NUMBERS: Final[dict[Level, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_GATE: Final = logging.getLogger("fsxwarm.daemon.gate")
"""Knows the level that lines are written from."""

Fields = MutableMapping[str, Any]


def log(line: Line, **fields: object) -> None:
    """Write a line at its own level."""
    if writes(line):  # each file has a line at debug, and structlog makes a logger before it drops one
        structlog.get_logger("fsxwarm").log(_NUMBERS[LINES[line].level], line.value, **fields)


def writes(line: Line) -> bool:
    """Whether a line's level is one that is written."""
    return _GATE.isEnabledFor(_NUMBERS[LINES[line].level])


def set_up(level: Level = "info", stream: TextIO = sys.stderr) -> None:
    """Log to `stream` from this level on, warnings of libraries included."""
    people = stream.isatty()
    _GATE.setLevel(_NUMBERS[level])
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        bounded,
    ]
    if people:
        processors += [structlog.processors.TimeStamper("%H:%M:%S", utc=False), structlog.dev.ConsoleRenderer()]
    else:
        processors += [structlog.processors.TimeStamper("iso"), structlog.processors.JSONRenderer(sort_keys=False)]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_NUMBERS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Through()], force=True)


def bounded(_logger: object, _method: str, fields: Fields) -> Fields:
    """Cut what is long, hide what is secret, and escape what a terminal would obey."""
    return {key: _HIDDEN if _is_secret(key) else _plain(value) for key, value in fields.items()}


def _is_secret(key: str) -> bool:
    return any(word in key.lower() for word in _SECRET)


def _plain(value: object) -> object:
    if isinstance(value, bool | int | float | None):
        return value
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _Through(logging.Handler):
    """Hands the libraries' records on to the daemon's log."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        log(
            Line.LIBRARY,
            logger=record.name,
            message=record.getMessage(),
            **({"error": repr(error)} if error is not None else {}),
        )
