"""`python -m fsxwarm` and the installed command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line that this process was started with. Ctrl-C ends it cleanly while it still loads, too."""
    try:
        open_streams()
        from fsxwarm.cli.main import run  # noqa: PLC0415 - most of the start goes by here: it has to be in the try

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("fsxwarm: interrupted", file=sys.stderr)  # noqa: T201 - what else could print may not be loaded
        status = 130
    sys.exit(status)


def open_streams() -> None:
    """Put /dev/null where a standard stream was closed, as some services start what they run.

    Else the next file or socket that is opened gets its number, and children write into that.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end


if __name__ == "__main__":
    main()
