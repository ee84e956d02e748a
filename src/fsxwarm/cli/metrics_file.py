"""`--metrics-file`: a run's metrics for node_exporter, while it goes on and at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from fsxwarm import __version__
from fsxwarm.app import App
from fsxwarm.cli.output import complain
from fsxwarm.engine.measuring import lanes_of, restoring_of, space_of
from fsxwarm.engine.metered import MeteredHsm, MeteredTree
from fsxwarm.engine.selection import Selection
from fsxwarm.engine.warm import Listener, Relay, Warmer
from fsxwarm.errors import Exit, FsxwarmError, worst
from fsxwarm.metrics import textfile
from fsxwarm.model.measures import Measures, RunMeasure
from fsxwarm.model.messages import Finish, Say
from fsxwarm.model.meter import Meter
from fsxwarm.model.outcome import Outcome
from fsxwarm.ports.hsm import Hsm

_EVERY: Final = 15.0


class MetricsFile:
    """Counts a run and writes `path`; without one it does nothing at all.

    The label `run` has the file's name, so that the files of several commands can stand side by side.
    """

    def __init__(self, path: Path | None, app: App) -> None:
        self._path = path
        self._meter = Meter()
        self._started = time.time()
        self._exit: Exit | None = None
        self._watched: tuple[Warmer, Selection] | None = None
        self._begun = False
        self.app = app
        """What the run is to work with."""
        self.hsm: Hsm = app.hsm
        if path is not None:
            textfile.check(path)
            self.app = replace(app, tree=MeteredTree(app.tree, self._meter))
            self.hsm = MeteredHsm(app.hsm, self._meter)
            from fsxwarm.metrics.exposition import Exposition  # noqa: PLC0415 - few ask for it, and it is slow to import

            self._exposition = Exposition(self._measure, {"run": path.stem})

    def hearing(self, listener: Listener) -> Listener:
        """A listener that counts what it hands on."""
        return listener if self._path is None else _Hearing(listener, self._meter)

    @asynccontextmanager
    async def kept(self, warmer: Warmer, selection: Selection) -> AsyncIterator[None]:
        """Write the file now, which tells whether that can be done, and from time to time until the block ends."""
        self._watched = (warmer, selection)
        if self._path is None:
            yield
            return
        await self._write(self._path)
        self._begun = True
        task = asyncio.create_task(self._repeat(self._path))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def end(self, code: Exit) -> Exit:
        """Write how it ended; returns the status to exit with."""
        self._exit = code
        if self._path is None or not self._begun:
            return code
        try:
            await self._write(self._path)
        except FsxwarmError as error:
            complain(error.message)
            return worst(code, Exit.UNFORESEEN)
        return code

    async def _repeat(self, path: Path) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            with suppress(FsxwarmError):  # the last write tells, if it cannot be done either
                await self._write(path)

    async def _write(self, path: Path) -> None:
        await asyncio.to_thread(textfile.write, path, self._exposition.text())

    def _measure(self) -> Measures:
        if self._watched is None:
            return Measures(__version__, self._meter)
        warmer, selection = self._watched
        progress = warmer.progress
        warm = progress.settled[Outcome.RESIDENT] + progress.settled[Outcome.RESTORED]
        found = progress.found
        return Measures(
            __version__,
            self._meter,
            abandoned=self.hsm.abandoned + self.app.tree.abandoned,
            restoring=restoring_of(warmer.machine, selection.mounts),
            lanes=lanes_of(warmer.machine, selection.mounts),
            spaces=[
                space_of(selection.mounts[dev], measure.space)
                for dev, measure in warmer.room.items()
                if dev in selection.mounts
            ],
            run=RunMeasure(
                self._started,
                found.files,
                found.bytes,
                warm.bytes / found.bytes if found.bytes else float(warm.files >= found.files),
                None if self._exit is None else time.time(),
                self._exit,
            ),
        )


class _Hearing(Relay):
    """Counts what it hears, but for troubles: the metered tree has counted those."""

    def __init__(self, listener: Listener, meter: Meter) -> None:
        super().__init__(listener)
        self._meter = meter

    def settled(self, finish: Finish) -> None:
        """Count it."""
        self._meter.settled(finish)
        super().settled(finish)

    def said(self, say: Say) -> None:
        """Count it."""
        self._meter.said(say)
        super().said(say)
