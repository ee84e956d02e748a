"""What goes to the terminal: names that cannot harm it, JSON, and consoles."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fsxwarm.model.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

    from fsxwarm.cli.schema import BackendUsed
    from fsxwarm.lustre.backend import Choice

_CLEAR_LINE: Final = "\r\x1b[K"
"""What a terminal takes the line away with on which the cursor is."""

_NARROW: Final = 80
_PLAIN_WIDTH: Final = 4096
_NAMED: Final = 3
_SHOWN: Final = 240
"""Characters that are shown of a name that is one of some: three lines of a narrow terminal."""


def safe(text: str) -> str:
    """Escape what a terminal would obey instead of show: control, direction and undecodable characters."""
    return visible(text)


def show_path(path: bytes) -> str:
    """A file's name for people, on one line and harmless, whatever bytes it is made of."""
    return safe(path.decode("utf-8", "surrogateescape"))


def short_path(path: bytes) -> str:
    """A file's name for people, as an example: a long one without its middle. What must be whole goes to a report."""
    return shortened(show_path(path))


def shortened(text: str) -> str:
    """A text that fits a few lines: beginning and end of a longer one."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


def emit_json(document: Mapping[str, Any], choice: Choice | None = None) -> None:
    """Print the one object of `--json` on standard output, with the `choice` of a back end if there was one."""
    if choice is not None:
        used: BackendUsed = {"name": choice.backend.value, "why": choice.why}
        document = {**document, "backend": used}
    print(json.dumps(document))  # noqa: T201 - printing is what this is for


def complain(message: str) -> None:
    """Say one line on standard error, with the program's name; on a terminal in place of a line that changes."""
    before = _CLEAR_LINE if sys.stderr.isatty() else ""
    print(f"{before}fsxwarm: {safe(message)}", file=sys.stderr)  # noqa: T201 - printing is what this is for


def redraw(text: str = "") -> None:
    """Show a line on the terminal of standard error in place of the one before, cut so that it stays one; or none."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    sys.stderr.write(_CLEAR_LINE + text[: (columns or _NARROW) - 1])
    sys.stderr.flush()


def console(*, stderr: bool = False) -> Console:
    """A console that takes text literally (no markup in names); wide and plain when it is no terminal.

    When its reader has gone it raises BrokenPipeError, as print does; rich's own way ends the process.
    """
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import and not needed for --json

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    made = Plain(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made = Plain(stderr=stderr, markup=False, emoji=False, highlight=False, width=_PLAIN_WIDTH)
    return made


def name_errors(errnos: Mapping[int, int], detail: str = "") -> str:
    """Name errors, given how many files had each, the commonest first; `detail` is what was said of one of them."""
    some = sorted(errnos.items(), key=lambda item: -item[1])[:_NAMED]
    named = [f"{errno.errorcode.get(code, f'errno {code}')} ({os.strerror(code)})" for code, _ in some]
    if len(errnos) > 1:
        named = [f"{name} of {files:,}" for name, (_, files) in zip(named, some, strict=True)]
    told = {os.strerror(code) for code, _ in some}
    return ", ".join(named) + (f": {safe(detail)}" if detail and detail not in told else "")


def name_some(paths: Sequence[bytes], count: int) -> str:
    """Name the first of `count` files: `a, b and 3 more`."""
    some = paths[:_NAMED]
    names = ", ".join(map(short_path, some))
    more = count - len(some)
    return f"{names} and {more:,} more" if more > 0 else names
