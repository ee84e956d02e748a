"""Servers that are upgraded, or fail over to an older one, while the daemon runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fsxwarm.engine.means import Means
from fsxwarm.engine.servers import PROBATION, Servers
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.policy import Policy
from fsxwarm.sim.inodes import LUSTRE_DEV
from fsxwarm.store.sqlite import SqliteStore
from service_stage import BOB, Stage, ended, play, request

ONE, TWO = frozenset({1}), frozenset({2})


async def beliefs(believed: frozenset[int], found: Sequence[frozenset[int]], every: float) -> list[frozenset[int]]:
    """What is believed after each of some looks, `every` so many seconds."""
    now, seen = 0.0, iter(found)

    async def skipping() -> frozenset[int]:
        return next(seen)

    servers = Servers(skipping, lambda: now)
    after = []
    for _ in found:
        believed = await servers.look(believed)
        after.append(believed)
        now += every
    return after


async def test_what_is_not_certain_any_more_is_not_believed_at_once() -> None:
    assert await beliefs(ONE | TWO, [ONE | TWO, TWO, ONE | TWO], 30.0) == [ONE | TWO, TWO, TWO]


async def test_what_is_new_is_believed_when_it_was_certain_for_a_while() -> None:
    assert await beliefs(ONE, [ONE | TWO] * 3, PROBATION / 2) == [ONE, ONE, ONE | TWO]


async def test_what_comes_and_goes_is_never_believed() -> None:
    assert set(await beliefs(ONE, [frozenset(), ONE] * 10, PROBATION / 2)) == {frozenset()}


class Upgraded(Stage):
    """A stage on which daemons look at what version the servers are."""

    broken = False

    def means(self, store: SqliteStore) -> Means:
        return replace(super().means(store), skipping=self._skipping)

    async def _skipping(self) -> frozenset[int]:
        if self.broken:
            raise FsxwarmError(Kind.HUNG, "nothing answers")
        return frozenset() if self.world.spec.duplicates_block else frozenset({LUSTRE_DEV})

    def exchange(self, *version: int) -> None:
        self.world.spec = replace(self.world.spec, version=version)

    async def others_restore(self, paths: Sequence[bytes]) -> None:
        assert (await self.hsm(BOB).restore(paths)).errno == 0


def looks(stage: Stage) -> int:
    return stage.world.counts["action"]


SKIP = Policy(skip_duplicates=frozenset({LUSTRE_DEV}))


def test_after_a_failover_to_an_older_server_what_others_have_in_flight_is_not_asked_for(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Upgraded(tmp_path, version=(2, 16, 1), latency=20.0)
        stage.fill(60)
        async with stage.service(policy=SKIP) as service:
            stage.exchange(2, 15, 8)
            await asyncio.sleep(60.0)
            await stage.others_restore(stage.paths[:50])
            job = await service.submit(request())
            assert (await ended(service, job.id)).job.exit is Exit.DONE
            assert stage.resident() == 60
            assert stage.duplicates == 0

    play(go)


def test_after_a_failover_under_way_our_own_files_are_not_asked_for_again(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Upgraded(tmp_path, version=(2, 16, 1), latency=30.0, agents=20)
        stage.fill(200)
        async with stage.service(policy=SKIP) as service:
            job = await service.submit(request())
            await asyncio.sleep(20.0)
            stage.exchange(2, 15, 8)
            assert (await ended(service, job.id)).job.exit is Exit.DONE
            assert stage.resident() == 200
            assert stage.duplicates == 0
            assert service.plan.policy.skip_duplicates == frozenset()

    play(go)


def test_after_an_upgrade_looks_are_saved_once_it_is_certain(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Upgraded(tmp_path, version=(2, 15, 8))
        stage.fill(80)
        async with stage.service() as service:
            stage.exchange(2, 16, 1)
            await asyncio.sleep(PROBATION)
            first = await service.submit(request(*stage.paths[:40]))
            await ended(service, first.id)
            before = looks(stage)
            assert before >= 40
            await asyncio.sleep(120.0)
            second = await service.submit(request(*stage.paths[40:]))
            assert (await ended(service, second.id)).job.exit is Exit.DONE
            assert looks(stage) == before

    play(go)


def test_what_cannot_be_looked_at_changes_nothing_and_is_told(tmp_path: Path) -> None:
    async def go() -> None:
        stage = Upgraded(tmp_path, version=(2, 16, 1))
        stage.broken = True
        async with stage.service(policy=SKIP) as service:
            await asyncio.sleep(60.0)
            assert service.plan.policy == SKIP
            assert any("looking at servers: nothing answers" in problem for problem in service.health().problems)

    play(go)
