"""Attacks by people who swap names at the worst moment: after the check with their rights, before what root does."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.live import ADA, ALICE, BOB, Live, living
from fsxwarm.errors import Exit
from fsxwarm.model.entry import Key
from fsxwarm.model.hsm import Flags
from fsxwarm.model.job import Identity, JobView, Kind
from fsxwarm.ports.hsm import Reply
from fsxwarm.sim.calls import Caller
from fsxwarm.sim.ports import SimHsm
from service_stage import ANN, Stage, ended, play, request

MINE, BESIDE, SECRET = b"/fsx/mine/x", b"/fsx/mine/y", b"/fsx/vault/x"
CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED


class WorstMoment(SimHsm):
    """Requests, right before which a name comes to mean somebody else's file."""

    async def restore(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        self._swap(paths)
        return await super().restore(paths, keys)

    async def release(self, paths: Sequence[bytes], keys: Sequence[Key] = ()) -> Reply:
        self._swap(paths)
        return await super().release(paths, keys)

    def _swap(self, paths: Sequence[bytes]) -> None:
        if MINE in paths and SECRET in self._names.walk():
            self._names.rename(MINE, b"/fsx/aside", self._clockwork.now())
            self._names.rename(SECRET, MINE, self._clockwork.now())


class SwappingStage(Stage):
    """Ann's two files, and one that is somebody else's. To be made on the loop that it lives on."""

    def __init__(self, folder: Path, flags: Flags) -> None:
        super().__init__(folder)
        for path, uid in ((MINE, ANN.uid), (BESIDE, ANN.uid), (SECRET, 1001)):
            self.names.make_folder(path.rpartition(b"/")[0])
            self.names.make_file(path, 1_000_000, flags, caller=Caller(uid, frozenset({uid})))
        self.secret = self.names.file(SECRET)

    def hsm(self, identity: Identity) -> SimHsm:
        return WorstMoment(self.clockwork, self.names, Caller(identity.uid, frozenset(identity.gids)))

    async def job(self, kind: Kind) -> JobView:
        """Ann's job over her folder, and how it ended."""
        async with self.service() as service:
            job = await service.submit(request(b"/fsx/mine", kind=kind))
            view = await ended(service, job.id)
        assert self.names.file(MINE) is self.secret, "the swap took place"
        return view


def test_a_file_swapped_in_before_the_request_is_not_restored(tmp_path: Path) -> None:
    async def act() -> None:
        stage = SwappingStage(tmp_path, COLD)
        view = await stage.job(Kind.PRELOAD)
        assert stage.secret.node.flags.released
        assert not stage.names.file(BESIDE).node.flags.released, "the request was made anew without it"
        assert (view.counters.restored.files, view.counters.vanished.files) == (1, 1)
        assert view.job.exit is Exit.DONE

    play(act)


def test_a_file_swapped_in_before_the_request_is_not_released(tmp_path: Path) -> None:
    async def act() -> None:
        stage = SwappingStage(tmp_path, CLEAN)
        view = await stage.job(Kind.RELEASE)
        assert not stage.secret.node.flags.released
        assert stage.names.file(BESIDE).node.flags.released
        assert (view.counters.released.files, view.counters.left.files) == (1, 1)
        assert view.counters.reasons == {"changed": 1}

    play(act)


# ---- against the running daemon ------------------------------------------------------------------------------------

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users (CI is)")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living() as running:
        yield running
        running.alive()


@contextmanager
def swapping(name: Path, other: Path) -> Iterator[None]:
    """Make a folder's name mean the other folder, and back, as fast as can be."""
    stop = threading.Event()
    aside = name.with_name("aside")

    def swap() -> None:
        while not stop.is_set():
            name.rename(aside)
            name.symlink_to(other)
            name.unlink()
            aside.rename(name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        stop.set()
        swapper.join()


@only_root
@pytest.mark.parametrize("who", [ALICE, ADA], ids=["their owner", "an administrator"])
def test_releasing_while_names_are_swapped_hits_nothing_else(live: Live, who: int) -> None:
    bait = live.file(f"bait-{who}/file", uid=ALICE)
    prize = live.file(f"prize-{who}/file", uid=BOB, mode=0o666)
    prize.parent.chmod(0o755)
    top = live.mount / f"top-{who}"
    top.mkdir()
    bait.parent.rename(top / "d")
    assert live.job(BOB, prize)["exit"] == 0
    for _ in range(6):
        assert live.job(ALICE, top)["exit"] == 0
        with swapping(top / "d", prize.parent):
            live.job(who, top, kind="release")
    assert not live.released(prize)


@only_root
def test_with_lfs_which_goes_by_name_only_root_is_served() -> None:
    with living(settings='[warming]\nbackend = "lfs"\n') as live:
        path = live.file("by-name/file")
        for kind in ("preload", "release"):
            refused = live.job(ALICE, path, kind=kind)
            assert refused["exit"] == Exit.CANNOT
            assert "lfs" in refused["error"]
        assert live.released(path)
        assert live.job(0, path)["exit"] == 0
        assert not live.released(path)
