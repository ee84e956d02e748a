"""Counts of folders: few at a time, kept for a while, ended when nobody looks on."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from fsxwarm.daemon.page.folders import Counts, tree
from fsxwarm.engine.status import Status, Survey
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.job import Identity
from fsxwarm.model.tally import Coverage, Tally
from page.stand import ALICE, BOB, Clock


class Endless:
    """A survey that never ends unless it is told to."""

    def __init__(self) -> None:
        self.status = Status()
        self.end = asyncio.Event()
        self.cancelled = False

    async def run(self) -> Status:
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self.status


class Made:
    """Counts, and the surveys that they began."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.begun: list[Endless] = []
        self.counts = Counts(self._begin, self.clock)

    def _begin(self, path: bytes, identity: Identity, depth: int) -> Survey:
        self.begun.append(Endless())
        return cast("Survey", self.begun[-1])


async def test_one_may_have_two_counted_at_a_time_and_all_eight() -> None:
    made = Made()
    for path in (b"/a", b"/b"):
        made.counts.of(path, ALICE)
    with pytest.raises(FsxwarmError) as caught:
        made.counts.of(b"/c", ALICE)
    assert caught.value.kind is Kind.TOO_MANY
    assert made.counts.of(b"/a", ALICE) is made.counts.of(b"/a", ALICE)
    made.counts.of(b"/a", BOB)  # not shared: his rights are others
    for uid in range(5):
        made.counts.of(b"/a", Identity(uid))
    with pytest.raises(FsxwarmError):
        made.counts.of(b"/a", Identity(99))
    await made.counts.close()
    assert len(made.begun) == 8


async def test_what_was_counted_is_shown_for_a_while_and_then_counted_anew() -> None:
    made = Made()
    first = made.counts.of(b"/a", ALICE)
    made.begun[0].end.set()
    await first.task
    made.clock.seconds += 599
    assert made.counts.of(b"/a", ALICE) is first
    made.clock.seconds += 1
    assert made.counts.of(b"/a", ALICE) is not first
    await made.counts.close()


async def test_a_count_at_which_nobody_looks_makes_way() -> None:
    made = Made()
    for path in (b"/a", b"/b"):
        made.counts.of(path, ALICE)
    await asyncio.sleep(0)
    for _ in range(3):
        made.clock.seconds += 200
        made.counts.of(b"/b", ALICE)
    made.counts.of(b"/c", ALICE)
    await asyncio.sleep(0)
    assert [one.cancelled for one in made.begun] == [True, False, False]
    await made.counts.close()


def test_folders_count_all_below_them_and_a_link_is_followed() -> None:
    folders = {
        b"/fsx/a": Coverage(Tally(1, 10), Tally(0, 0)),
        b"/fsx/a/b": Coverage(Tally(0, 0), Tally(2, 30)),
        b"/fsx/a/c/d": Coverage(Tally(1, 5), Tally(0, 0)),
    }
    for root in (b"/fsx/a", b"/link"):
        top = tree(root, folders)
        assert (top.path, top.coverage.resident.bytes, top.coverage.released.bytes) == (b"/fsx/a", 15, 30)
        assert sorted(top.below) == [b"b", b"c"]
        assert top.below[b"c"].below[b"d"].coverage.resident == Tally(1, 5)
    assert tree(b"/nothing", {}).coverage.share == 1.0
