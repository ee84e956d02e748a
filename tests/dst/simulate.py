"""Simulates hours of fsxwarm in seconds, seed after seed: `python tests/dst/simulate.py --seeds 10000`.

With `--seed N` it plays that one and prints the story of each file concerned. Exit status 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dst.plan import draw
from dst.stage import Played, play

CHUNK = 25


def broken_seeds(seeds: Iterable[int]) -> list[tuple[int, str]]:
    """Play seeds; return those that broke a promise, with what was broken."""
    found = []
    for seed in seeds:
        played = play(draw(seed))
        if played.broken is not None:
            found.append((seed, f"{type(played.broken).__name__}: {played.broken}"))
    return found


def tell(played: Played) -> None:
    """Print a play: its plan and the story of each file."""
    plan = played.plan
    print(f"seed {plan.seed}: {plan.spec}")
    for part in (*plan.commands, *plan.deeds, *plan.bad_files, *plan.bad_calls):
        print(f"  {part}")
    for path, events in sorted(played.stories.items()):
        print(f"\n{path!r} {next((file for file in plan.files if file.path == path), '')}")
        before = ""
        for at, text in events:
            if text != before:
                print(f"  {at:10.3f} s  {text}")
            before = text
    if played.broken is not None:
        traceback.print_exception(played.broken)
    print(f"\nlasted {played.lasted:.1f} s: {played.broken or 'all promises kept'}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to play")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="play this one and tell its story")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args(argv)
    if args.seed is not None:
        played = play(draw(args.seed), story=True)
        tell(played)
        return int(played.broken is not None)
    began = time.monotonic()
    chunks = [
        range(start, min(start + CHUNK, args.first + args.seeds))
        for start in range(args.first, args.first + args.seeds, CHUNK)
    ]
    broken = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        for found in pool.map(broken_seeds, chunks):
            for seed, what in found:
                broken += 1
                print(f"seed {seed}: {what}", flush=True)
    print(f"{args.seeds} seeds, {broken} broken, {time.monotonic() - began:.0f} s")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
