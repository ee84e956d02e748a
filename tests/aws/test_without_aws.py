"""Commands that need no AWS do not pay for it."""

from __future__ import annotations

import subprocess
import sys

WATCHED = """
import sys
from fsxwarm.cli.main import run
status = run(sys.argv[1:])
loaded = sorted(name for name in ("boto3", "botocore", "urllib3") if name in sys.modules)
print("LOADED", loaded, file=sys.stderr)
sys.exit(status)
"""


def test_help_and_local_commands_do_not_import_boto3() -> None:
    for arguments in (["--help"], ["status", "/nowhere"], ["associations", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, *arguments], capture_output=True, text=True, check=False, timeout=60
        )
        assert "LOADED []" in done.stderr, done.stderr
