"""What a bench ran on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from fsxwarm import __version__


def facts() -> dict[str, object]:
    """The machine, in JSON's terms; memory in bytes. What /proc does not tell is null."""
    model = _told("/proc/cpuinfo", r"^model name\s*:\s*(.+)$")
    memory = _told("/proc/meminfo", r"^MemTotal:\s+(\d+) kB$")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model,
        "architecture": platform.machine(),
        "memory": int(memory) * 1024 if memory else None,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "fsxwarm": __version__,
    }


def line() -> str:
    """The same for people."""
    told = facts()
    memory = told["memory"]
    return (
        f"fsxwarm {told['fsxwarm']}, Python {told['python']}, Linux {told['kernel']},"
        f" {told['cores']} cores of {told['cpu'] or told['architecture']}"
        + (f", {memory / 2**30:.0f} GiB" if isinstance(memory, int) else "")
    )


def _told(file: str, pattern: str) -> str | None:
    """What a pattern finds in a file of /proc; None when the file is not there or says nothing of it."""
    try:
        found = re.search(pattern, Path(file).read_text(), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None
