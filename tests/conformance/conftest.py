"""The back ends of the conformance suite.

`sim`: the simulated FSx in process. `lfs`: the lfs adapter and the helper tree on the simulated executable. `native`:
the native adapter on the simulated system calls. `real-lfs`, `real-native`: the same on a real Lustre;
FSXWARM_CONFORMANCE_DIR names a writable folder on one with HSM, `lfs` is in PATH, and the caller is root (cancelling
requests and marking files as lost are root's).
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from conformance.lab import Lab, LfsLab, Stock
from conformance.sim_lab import SimLab
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.sim import launch

REAL = "FSXWARM_CONFORMANCE_DIR"


@dataclass(frozen=True, slots=True)
class Site:
    """A mounted file system: where, how `lfs` is found, and the files in stock."""

    top: Path
    mount: Path
    mounts: str
    environ: dict[str, str]
    stock: Stock


@pytest.fixture(scope="session")
def simulated_sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Site]]:
    """Start a simulated FSx of a version, once."""
    with ExitStack() as stack:

        @cache
        def site(version: str) -> Site:
            folder = tmp_path_factory.mktemp("fsx") / "sim"
            options = ("--files", "0", "--mdts", "1", "--latency", "10ms", "--version", version)
            fsx = stack.enter_context(launch.start(folder, *options))
            return make_site(fsx.mount, fsx.mount, fsx.environ(os.environ, uid=0), str(folder / "mounts"))

        yield site


@pytest.fixture(scope="session")
def real_site() -> Iterator[Site]:
    """A folder of our own on the real Lustre."""
    given = os.environ.get(REAL)
    if not given:
        pytest.skip(f"no real Lustre: set {REAL} to a writable folder on one with HSM, as root, with lfs in PATH")
    if os.geteuid() != 0:
        pytest.skip(f"{REAL} is set, but cancelling requests and marking files as lost need root")
    if shutil.which("lfs") is None:
        pytest.skip(f"{REAL} is set, but there is no lfs in PATH")
    top = Path(given).resolve() / f"fsxwarm-conformance-{secrets.token_hex(4)}"
    top.mkdir()
    mount = next(folder for folder in top.parents if folder.is_mount())
    yield make_site(top, mount, dict(os.environ), "/proc/self/mounts")
    shutil.rmtree(top)


def make_site(top: Path, mount: Path, environ: dict[str, str], mounts: str) -> Site:
    (top / "stock").mkdir()
    return Site(top, mount, mounts, environ, Stock(os.fsencode(top / "stock")))


BACKENDS = ["sim", "lfs-2.12", "lfs-2.15", "lfs-2.16", "native-2.12", "native-2.15", "native-2.16"]


@pytest.fixture(params=[*BACKENDS, "real-lfs", "real-native"])
async def lab(request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    if request.param == "sim":
        with closing(SimLab()) as virtual:
            yield virtual
        return
    kind, _, version = request.param.partition("-")
    site: Site = (
        request.getfixturevalue("real_site") if kind == "real" else request.getfixturevalue("simulated_sites")(version)
    )
    folder = site.top / secrets.token_hex(4)
    folder.mkdir()
    lfs = LfsHsm(Children("lfs", site.environ))
    native = NativeHsm(lfs, site.mounts, environ=site.environ)
    hsm = native if "native" in request.param else lfs
    tree = HelperTree(site.mounts)
    mounted = LfsLab(
        hsm, tree, mount=os.fsencode(site.mount), folder=os.fsencode(folder), stock=site.stock, environ=site.environ
    )
    try:
        yield mounted
        await mounted.clean()
    finally:
        await native.close()
        await lfs.close()
        await tree.close()
