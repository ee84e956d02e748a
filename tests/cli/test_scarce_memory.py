"""Commands under `ulimit -v`: what was done counts, and what could not be is one clear line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.machine import Site


@pytest.mark.parametrize("limit", [35_000, 45_000, 50_000, 55_000, 60_000])
def test_without_memory_one_line_says_so_and_what_was_done_counts(site: Site, limit: int) -> None:
    """Which limit is too low depends on the interpreter; from the lowest to one that lets all but a thread start."""
    command = [sys.executable, "-m", "fsxwarm", "preload", str(site.data), "--progress", "none"]
    limited = ["/bin/sh", "-c", f'ulimit -v {limit} && exec "$@"', "sh", *command]
    done = subprocess.run(limited, env=site.environ, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 0:
        assert done.stderr == ""
        assert not any(site.released(path) for path in site.files)
    else:
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(("fsxwarm: out of memory: ", "fsxwarm: another thread cannot be started: "))
        assert done.stderr.count("\n") == 1
