"""A simulated FSx that runs in a thread of the test: its servers can look into what else the test has."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from fsxwarm.model.hsm import Flags
from fsxwarm.sim import layout
from fsxwarm.sim.facility import DiskFsx
from fsxwarm.sim.faults import Faults
from fsxwarm.sim.launch import SimulatedFsx
from fsxwarm.sim.server import Server, listen
from fsxwarm.sim.spec import WorldSpec

T = TypeVar("T")
SPEC = WorldSpec(latency=0.0)


class InProcess:
    """A running simulated FSx: `launched` is what commands see, `servers` what only its own thread may touch."""

    def __init__(self, folder: Path) -> None:
        self.launched = SimulatedFsx(folder)
        self.servers: DiskFsx
        self.loop: asyncio.AbstractEventLoop

    def ask(self, work: Callable[[DiskFsx], T]) -> T:
        """Run `work` on the servers in their thread."""

        async def there() -> T:
            return work(self.servers)

        return asyncio.run_coroutine_threadsafe(there(), self.loop).result(timeout=60)


@contextmanager
def run_in_process(folder: Path, *, files: int, size: int) -> Iterator[InProcess]:
    """Run one in `folder`, with `files` released files of `size` bytes, until the block ends."""
    layout.prepare(folder, "test")
    running, ready = InProcess(folder), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(running, files, size, ready)), daemon=True)
    thread.start()
    assert ready.wait(timeout=60)
    try:
        yield running
    finally:
        running.launched.control("shutdown")
        thread.join(timeout=60)


async def _serve(running: InProcess, files: int, size: int, ready: threading.Event) -> None:
    folder = running.launched.folder
    with listen(folder) as sock, closing(DiskFsx(folder, SPEC, Faults())) as fsx:
        made = layout.fill(folder / "mnt", files, layout.fixed(size), seed=0, now=time.time())
        fsx.adopt((str(path).encode() for path in made), Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED)
        running.servers, running.loop = fsx, asyncio.get_running_loop()
        await Server(fsx).serve(sock, ready.set)
