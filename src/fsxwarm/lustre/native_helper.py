"""The program of helper processes that make Lustre's own calls: `python -I -S native_helper.py BEAT`.

It starts bare (see helper.py), so it finds the package that it belongs to by itself.
"""

from __future__ import annotations

import functools
import os
import sys

if not __package__:  # run as a program
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120 - pathlib is slow to import

from fsxwarm.lustre import helper
from fsxwarm.lustre.native_calls import Native, load

TYPE_CHECKING = False  # as typing's, which is not worth its import
if TYPE_CHECKING:
    from typing import Any

    from fsxwarm.lustre.native_calls import SystemCalls, Work


class NativeHelper(helper.Helper):
    """A helper that does the jobs of `Native` too."""

    def __init__(self, calls: SystemCalls, source: int, sink: int, beat: float, *, guarded: bool = False) -> None:
        super().__init__(source, sink, beat, guarded=guarded)
        for kind, work in Native(calls).jobs.items():
            self.kinds[kind] = functools.partial(self._answer, work)

    def _answer(self, work: Work, job: int, mark: list[int], *arguments: Any) -> None:
        self.send(job, helper.DONE, work(mark, *arguments))


if __name__ == "__main__":
    helper.main(functools.partial(NativeHelper, load(os.environ)))  # loaded before another user's rights are taken on
