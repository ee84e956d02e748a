"""Pins: the norelease flag, set and cleared over a selection."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fsxwarm.engine.crew import Crew
from fsxwarm.engine.looks import GONE, Troubles, really_gone
from fsxwarm.engine.release import named
from fsxwarm.engine.selection import Selection
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.tally import Tally
from fsxwarm.ports.hsm import CallHungError, Hsm

_AT_ONCE: Final = 200
_PARALLEL: Final = 4


@dataclass(slots=True)
class Pinned:
    """What became of the files, also while it is going on: `failed` names those whose flag could not be changed."""

    on: bool
    done: Tally = field(default_factory=Tally)
    failed: Troubles = field(default_factory=Troubles)
    troubles: Troubles = field(default_factory=Troubles)
    vanished: int = 0


async def pin_all(hsm: Hsm, selection: Selection, result: Pinned) -> None:
    """Set or clear (by `result.on`) the flag of every file of a whole selection. Raises what resolving it raises."""

    async def pin(entries: Sequence[Entry]) -> None:
        paths = [entry.path for entry in entries]
        answers: list[Trouble | None]
        try:
            answers = await really_gone(selection.tree, await hsm.pin(paths, on=result.on))
        except CallHungError as error:
            answers = [Trouble(path, errno.ETIMEDOUT, str(error)) for path in paths]
        for entry, trouble in zip(entries, answers, strict=True):
            if trouble is None:
                result.done.add(entry.size)
            elif trouble.errno in GONE:
                result.vanished += 1
            else:
                result.failed.add(trouble)

    pending: list[Entry] = []
    async with Crew(_PARALLEL) as crew:
        async for batch in selection.batches():
            result.vanished += result.troubles.take(batch)
            for entry in named(batch):
                pending.append(entry)
                if len(pending) == _AT_ONCE:
                    await crew.start(pin(pending))
                    pending = []
        if pending:
            await crew.start(pin(pending))
