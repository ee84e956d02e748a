"""Defects planted into copies of the source while they are imported, to show that the simulation finds them.

`python tests/dst/defects.py` plays seeds with each defect until one catches it, and prints the table. A defect is a
text of one module and what stands in its place; nothing of it is in the product.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

MOST_SEEDS = 300


@dataclass(frozen=True, slots=True)
class Defect:
    """Where it is planted; `seed` is the first that catches it."""

    name: str
    module: str
    old: str
    new: str
    seed: int = 0


class Caught(NamedTuple):
    """A seed that broke a promise, and how."""

    seed: int
    what: str


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module from its changed source."""

    def __init__(self, name: str, path: str, defect: Defect) -> None:
        super().__init__(name, path)
        self._defect = defect

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        if source.count(self._defect.old) != 1:
            raise ImportError(f"{self._defect.name!r}: its place in {fullname} has changed, see {__file__}")
        return compile(source.replace(self._defect.old, self._defect.new), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that has the defect."""

    def __init__(self, defect: Defect) -> None:
        self._defect = defect

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._defect.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._defect)
        return spec


def catch(defect: Defect, first: int, count: int, *, timeout: float = 900.0) -> Caught | None:
    """Play seeds with a defect, in a process of its own, until one breaks a promise."""
    argv = [sys.executable, __file__, "--plant", defect.name, "--first", str(first), "--seeds", str(count)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout)
    return None if found is None else Caught(*found)


def _play(defect: Defect, first: int, count: int) -> Caught | None:
    """Be the process that has the defect."""
    sys.meta_path.insert(0, _Finder(defect))
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from dst.simulate import broken_seeds  # noqa: PLC0415 - only now may the product be imported

    for seed in range(first, first + count):
        for broken in broken_seeds([seed]):
            return Caught(*broken)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of defects; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS)
    parser.add_argument("--plant", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.plant is not None:
        json.dump(_play(BY_NAME[args.plant], args.first, args.seeds), sys.stdout)
        return 0
    wanted = [defect for defect in DEFECTS if not args.only or defect.name in args.only]
    missed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        searches = {pool.submit(catch, defect, args.first, args.seeds): defect for defect in wanted}
        for search in as_completed(searches):
            caught = search.result()
            missed += caught is None
            where = f"seed {caught.seed:4}  {caught.what[:100]}" if caught is not None else "NOT CAUGHT"
            print(f"{searches[search].name:44} {where}", flush=True)
    return int(missed > 0)


ASKING = "fsxwarm.model.asking"
JUDGING = "fsxwarm.model.judging"
WARMING = "fsxwarm.model.warming"
RELEASE = "fsxwarm.engine.release"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "window off by one",
        ASKING,
        "room = lane.window.size - lane.at_fsx\n",
        "room = lane.window.size - lane.at_fsx + 1\n",
        seed=9,
    ),
    Defect(
        "no action taken for success",
        "fsxwarm.model.diagnosis",
        "return Verdict.IDLE if sight.flags.restorable",
        "return Verdict.RESIDENT if sight.flags.restorable",
        seed=19,
    ),
    Defect(
        "asked again without a look at the action",
        WARMING,
        "(lane.unseen if file.flags is None and not file.unreadable else lane.cold).put(file, ahead=True)",
        'self._book.move(file, Phase.READY)\n        file.fresh_until = float("inf")\n        lane.ready.append(file)',
        seed=5,
    ),
    Defect(
        "asked without a look at the action",
        ASKING,
        "if file.unreadable or self._is_skipped(file):",
        "if file.unreadable or not file.request:",
        seed=0,
    ),
    Defect(
        "asked again without a look where the first is needless",
        ASKING,
        "in self._policy.skip_duplicates and not file.request",
        "in self._policy.skip_duplicates",
        seed=19,
    ),
    Defect(
        "asked by a stale look",
        JUDGING,
        "file.fresh_until = event.started + self._policy.fresh",
        "file.fresh_until = event.started + 60.0",
        seed=37,
    ),
    Defect(
        "refused batch not split",
        ASKING,
        "file.crowd = 1 if first else max(1, min(file.crowd, len(request.files)) // 2)",
        "file.crowd = file.crowd if first else file.crowd",
        seed=6,
    ),
    Defect(
        "whole batch failed after a refusal",
        ASKING,
        """            elif alone:
                self._refused_alone(file, request, now)
                return
""",
        """            elif alone or request.errno == REFUSED:
                self._refused_alone(file, request, now)
                continue
""",
        seed=6,
    ),
    Defect(
        "hard link counted twice",
        "fsxwarm.engine.selection",
        "and not self._seen.add(item):",
        "and not self._seen.add(item) and item.nlink == 1:",
        seed=5,
    ),
    Defect(
        "lost wake-up",
        "fsxwarm.model.rounds",
        "            age = now - file.asked\n            self.schedule",
        "            age = now - file.asked\n"
        "            if age > 10.0:\n"
        "                return\n"
        "            self.schedule",
        seed=34,
    ),
    Defect(
        "file forgotten after a failed look",
        JUDGING,
        """        else:
            self._book.rounds.schedule(file, now + file.looks_failed)""",
        """        else:
            file.due = now + file.looks_failed""",
        seed=33,
    ),
    Defect("release without the dirty check", RELEASE, "if flags & Flags.DIRTY:", "if not flags:", seed=9),
    Defect(
        "release without the restoring check",
        RELEASE,
        "actions = await self._looks.actions(paths, keys)",
        "actions: list[Action | Trouble] = [Action()] * len(paths)",
        seed=1,
    ),
    Defect(
        "release of pinned files",
        RELEASE,
        "return Reason.PINNED if flags & Flags.NORELEASE else None",
        "return None",
        seed=47,
    ),
    Defect(
        "release without a look at the archive",
        RELEASE,
        "if not flags & Flags.ARCHIVED:",
        "if not flags & 15:",
        seed=0,
    ),
    Defect(
        "counters kept over a restart",
        "fsxwarm.model.progress",
        "{outcome: Tally() for outcome in Outcome}",
        'globals().setdefault("KEPT", {outcome: Tally() for outcome in Outcome})',
        seed=0,
    ),
    Defect(
        "settled twice",
        "fsxwarm.engine.warm",
        "                self.progress.finished(news)\n",
        "                self.progress.finished(news)\n                self.progress.finished(news)\n",
        seed=0,
    ),
    Defect("no pause after EAGAIN", ASKING, "                window.refused(now)\n", "", seed=38),
    Defect(
        "hung call asked again",
        ASKING,
        """            self._book.move(file, Phase.LIMBO)
            self._book.set_stuck(file, stuck=True)
            file.moved_at = now
            self._book.rounds.schedule(file, now)
""",
        """            self._book.back_to_queue(file)
""",
        seed=34,
    ),
    Defect(
        "cancelled while it waits for its turn",
        JUDGING,
        """                file.moved_at = now
                lane.waiting_asked = file.asked
""",
        """                file.moved_at = now
                lane.waiting_asked = file.asked
                self._stuck(file, Reason.WEDGED, now)
""",
        seed=13,
    ),
    Defect(
        "asked for what somebody else has in flight",
        JUDGING,
        "if action is None or action.idle:\n            self._book.move(file, Phase.READY)",
        "if action is None or not action.running:\n            self._book.move(file, Phase.READY)",
        seed=13,
    ),
    Defect(
        "file in backoff forgotten at a stop",
        WARMING,
        """            self._book.finish(file, Outcome.CANCELLED, reason)
        self._book.clear_queues""",
        """            if file.phase is not Phase.BACKOFF:
                self._book.finish(file, Outcome.CANCELLED, reason)
        self._book.clear_queues""",
        seed=106,
    ),
    Defect(
        "state looked at before the action",
        "fsxwarm.engine.looking",
        """        actions = await self._hsm.actions(paths, keys)
        unclear = [at for at, action in enumerate(actions) if isinstance(action, Trouble) or not action.waits]
        states = await self._hsm.states([paths[at] for at in unclear], [keys[at] for at in unclear]) if unclear else []
""",
        """        before = await self._hsm.states(paths, keys)
        actions = await self._hsm.actions(paths, keys)
        unclear = [at for at, action in enumerate(actions) if isinstance(action, Trouble) or not action.waits]
        states = [before[at] for at in unclear]
""",
        seed=95,
    ),
    Defect(
        "space claimed twice",
        "fsxwarm.model.book",
        "file.entry.size if becomes else -file.entry.size",
        "2 * file.entry.size if becomes else -file.entry.size",
        seed=1,
    ),
)
BY_NAME = {defect.name: defect for defect in DEFECTS}


if __name__ == "__main__":
    sys.exit(main())
