"""`python -m fsxwarm` and the installed command."""

from __future__ import annotations

import os
import sys

from fsxwarm.cli.main import run


def main() -> None:
    """Run the command line that this process was started with."""
    open_streams()
    sys.exit(run(sys.argv[1:]))


def open_streams() -> None:
    """Put /dev/null where a standard stream was closed, as some services start what they run.

    Else the next file or socket that is opened gets its number, and children write into that.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end


if __name__ == "__main__":
    main()
