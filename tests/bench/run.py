"""`make bench`: every measure that is no test, as tables; exit status 1 when a target is missed."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import cost, lower_bound, million_keys, processes, settling, shards, warm_tree, watching

BENCHES = (lower_bound, cost, settling, shards, processes, warm_tree, million_keys, watching)


def main() -> int:
    """Run all benches."""
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    kept = [bench.main() for bench in BENCHES]
    print("\nall targets kept" if all(kept) else "\nSOME TARGETS MISSED")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
