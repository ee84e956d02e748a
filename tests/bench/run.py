"""`make bench`: every measure that is no test, as tables and as JSON.

The exit status is 1 when a target is missed by more than is known.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import (
    cost,
    lower_bound,
    machine_facts,
    million_keys,
    processes,
    resident,
    settling,
    shards,
    tables,
    warm_tree,
    watching,
)

BENCHES = (lower_bound, resident, cost, settling, shards, processes, warm_tree, million_keys, watching)
NAMES = {bench.__name__.rpartition(".")[2]: bench for bench in BENCHES}


def main() -> int:
    """Run all benches, or those that were named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"which to run (all): {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write machine, tables and unrounded figures there")
    options = parser.parse_args()
    if unknown := [name for name in options.benches if name not in NAMES]:
        parser.error(f"no bench is called {unknown[0]}; there are {', '.join(NAMES)}")
    print(machine_facts.line())
    started, results = time.time(), []
    for name in options.benches or NAMES:
        began, before = time.monotonic(), len(tables.shown)
        kept = NAMES[name].main()
        seconds = time.monotonic() - began
        results.append({"bench": name, "kept": kept, "seconds": seconds, "tables": tables.shown[before:]})
    missed = [str(result["bench"]) for result in results if not result["kept"]]
    where = ", ".join(missed) or "no bench"
    print(f"\ntargets missed by more than is known in {where}", end="")
    print(f"; {time.time() - started:.0f} s in all")
    if options.json:
        told = {"machine": machine_facts.facts(), "started": started, "kept": not missed, "benches": results}
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
