"""The daemon's life: start, ready, configuration anew, stop."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

from fsxwarm import __version__, configfile
from fsxwarm.app import use_pidfd
from fsxwarm.configfile import Config
from fsxwarm.daemon import listening, wiring
from fsxwarm.daemon.api import Api
from fsxwarm.daemon.logs import log, set_up
from fsxwarm.daemon.notify import Notifier
from fsxwarm.daemon.page.folders import Counts
from fsxwarm.daemon.page.sessions import Sessions
from fsxwarm.daemon.page.site import Door, Site
from fsxwarm.daemon.public import Answer, Public, metrics_answer, watch_loop
from fsxwarm.daemon.remote import Remote
from fsxwarm.daemon.server import Server
from fsxwarm.daemon.slurm_world import SlurmWorld
from fsxwarm.daemon.vocabulary import Line
from fsxwarm.engine.service import Service
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.address import parse_address

_DRAINED_WITHIN: Final = 4.0
"""Seconds that storing what is under way may take."""
_GONE_WITHIN: Final = 8.0
"""Seconds after which the process ends, whatever still hangs in the kernel: systemd would kill it a little later."""
_TOLD_EVERY: Final = 15.0
_SWITCH: Final = 0.001
"""Seconds for which the store's thread may keep the loop from going on after each of its system calls."""
_GC: Final = (10_000, 20, 100)
"""Objects after which garbage is looked for among the new; every so many times among the older; so many, among all."""


def run(config: Config, path: str | None, environ: Mapping[str, str]) -> Exit:
    """Run the daemon until SIGTERM or SIGINT. `path` is the configuration that SIGHUP reads anew, as `load` takes it.

    Raises FsxwarmError where it cannot start, and what has broken where it cannot go on.
    """
    set_up(config.daemon.log)
    use_pidfd()
    _raise_limit()
    asyncio.run(Daemon(config, path, environ).run())
    return Exit.DONE


class Daemon:
    """One life of it."""

    def __init__(self, config: Config, path: str | None, environ: Mapping[str, str]) -> None:
        self._config = config
        self._path = path
        self._environ = environ
        self._notifier = Notifier(environ, os.getpid())
        self._stop = asyncio.Event()
        self._reloads: set[asyncio.Task[None]] = set()
        self._remote: Remote | None = None

    async def run(self) -> None:
        """Start, serve, stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        async with AsyncExitStack() as stack:
            circle = wiring.circle_of(self._config)
            sock = self._listen(stack, circle.users)
            core = await stack.enter_async_context(wiring.open_core(self._config, self._environ))
            world = SlurmWorld(lambda: server.gate.circle, core.resolve, core.addresses, self._environ)
            quota, rules = wiring.quota_of(self._config), wiring.slurm_rules_of(self._config)
            api = Api(core.service, core.resolve, quota, world, rules, time.time)
            limits = self._config.limits
            server = Server(api, circle, wiring.gate_limits_of(self._config), limits.request_size)
            answer = metrics_answer(core.service.measures)
            server.add_page("/metrics", answer)
            await server.start(sock)
            stack.push_async_callback(server.close)
            await self._open_to_all(stack, [("/metrics", answer)], api, server, core)
            await self._open_to_others(stack, api, server)
            loop.add_signal_handler(signal.SIGHUP, self._begin_reload, core.service, api, server)
            works = (self._notifier.live(), self._tell(core), watch_loop(core.service.meter))
            beside = [asyncio.create_task(work) for work in works]
            _settle()
            self._notifier.ready("ready")
            log(Line.READY, version=__version__, socket=self._config.daemon.socket, uid=os.geteuid())
            try:
                await self._until_the_end(core.service)
            finally:
                for task in beside:
                    task.cancel()
                await self._wind_up(core.service)

    def _listen(self, stack: AsyncExitStack, users: int | None) -> socket.socket:
        passed = listening.from_systemd(self._environ, os.getpid())
        if passed is not None:
            return passed
        path = self._config.daemon.socket
        sock = listening.bind(path, users)
        stack.callback(listening.remove, path)
        return sock

    async def _open_to_all(
        self, stack: AsyncExitStack, pages: Sequence[tuple[str, Answer]], api: Api, server: Server, core: wiring.Core
    ) -> None:
        """Answer on TCP too, if the configuration wants that. Where it cannot be, warming matters more."""
        if not self._config.metrics.listen:
            return
        sessions = Sessions(time.monotonic, secrets.token_urlsafe)
        counts = Counts(core.service.survey, time.monotonic)
        site = Site(api, sessions, counts, lambda: server.gate.circle)
        public = Public(parse_address(self._config.metrics.listen), [*pages, *site.pages])
        try:
            where = await public.start()
        except FsxwarmError as error:
            log(Line.NOTICE, message=f"no metrics on TCP: {error.message}; {error.hint}")
            return
        stack.push_async_callback(site.close)
        stack.push_async_callback(public.close)
        api.door = Door(sessions, where, time.time)

    async def _open_to_others(self, stack: AsyncExitStack, api: Api, server: Server) -> None:
        """Take requests from other machines, if the configuration wants that."""
        if self._config.remote.listen:
            remote = self._remote = wiring.remote_of(self._config, api, server, self._environ)
            where = await remote.start(parse_address(self._config.remote.listen))
            stack.push_async_callback(remote.close)
            log(Line.NOTICE, message=f"requests from other machines are taken at {where}")

    async def _until_the_end(self, service: Service) -> None:
        stopped = asyncio.create_task(self._stop.wait())
        broken = asyncio.create_task(service.run())
        await asyncio.wait({stopped, broken}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if broken.done():
            broken.result()
        broken.cancel()

    async def _wind_up(self, service: Service) -> None:
        """Store what is under way and answer those who wait; then nothing may hold the process for long."""
        log(Line.STOPPING)
        self._notifier.stopping()
        last = threading.Timer(_GONE_WITHIN, _leave)
        last.daemon = True
        last.start()
        try:
            async with asyncio.timeout(_DRAINED_WITHIN):
                await service.drain()
        except TimeoutError:
            log(Line.NOT_STORED)

    # ---- the configuration anew --------------------------------------------------------------------------------

    def _begin_reload(self, service: Service, api: Api, server: Server) -> None:
        task = asyncio.get_running_loop().create_task(self._reload(service, api, server))
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload(self, service: Service, api: Api, server: Server) -> None:
        """Take a new configuration on; a bad one changes nothing."""
        self._notifier.reloading()
        try:
            config = await asyncio.to_thread(configfile.load, self._environ, self._path)
            circle = await asyncio.to_thread(wiring.circle_of, config)
            rules = await asyncio.to_thread(wiring.slurm_rules_of, config)
        except FsxwarmError as error:
            log(Line.CONFIGURATION_BAD, error=str(error))
            self._notifier.ready(f"going on with the old configuration: {error.message}")
            return
        later = ", ".join(wiring.after_restart(config, self._config))
        await service.reconfigure(wiring.plan_of(config, service.plan.policy))
        api.quota, api.slurm.rules = wiring.quota_of(config), rules
        server.gate.circle = circle
        for face in (server, self._remote):
            if face is not None:
                face.gate.limits, face.request_size = wiring.gate_limits_of(config), config.limits.request_size
        set_up(config.daemon.log)
        log(Line.CONFIGURATION_READ, **({"after_restart": later} if later else {}))
        self._notifier.ready(f"ready; from the next start on: {later}" if later else "ready")

    async def _tell(self, core: wiring.Core) -> None:
        """Keep the line in `systemctl status` true, and note problems as they come and go."""
        while True:
            await asyncio.sleep(_TOLD_EVERY)
            health = core.service.health()
            core.chronicle.problems(health.problems)
            jobs = ", ".join(f"{count:,} {phase}" for phase, count in sorted(health.jobs.items())) or "none"
            problem = f"; {health.problems[0]}" if health.problems else ""
            self._notifier.status(f"jobs: {jobs}{problem}")


def _settle() -> None:
    """Take what there is by now for good: to look through all of it for cycles takes a tenth of a second each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC)
    sys.setswitchinterval(_SWITCH)


def _leave() -> None:
    os._exit(Exit.DONE)


def _raise_limit() -> None:
    """As many open files as we may have: each client is one."""
    with suppress(ValueError, OSError):  # a sandbox may forbid to ask
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
