"""`python -m fsxwarm` and the installed command."""

from __future__ import annotations

import sys

from fsxwarm.cli.main import run


def main() -> None:
    """Run the command line that this process was started with."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
