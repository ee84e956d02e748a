"""The native adapter: what it asks of the kernel, what hangs and what does not, and when it is chosen."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fsxwarm.config import Backend
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.lustre import native_helper
from fsxwarm.lustre.backend import ChosenHsm
from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.native import NativeHsm
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.ports.hsm import CallHungError, Reply
from fsxwarm.sim.launch import SimulatedFsx, start

SimFsx = Callable[..., SimulatedFsx]
RELEASED = Flags.EXISTS | Flags.ARCHIVED | Flags.RELEASED

STAND_IN = '''
"""Writes down each call. A file whose name begins with "hang" never answers; one called "die" ends the process."""
import os, threading

LOG = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

class Calls:
    def open(self, path, flags):
        os.write(LOG, b"open %s %o\\n" % (os.path.basename(path), flags & ~os.O_CLOEXEC & ~0o100000))
        return os.open(path, os.O_PATH | flags & os.O_NOFOLLOW)

    def close(self, fd):
        os.write(LOG, b"close\\n")
        os.close(fd)

    def ioctl(self, fd, number, argument):
        name = os.path.basename(os.readlink(b"/proc/self/fd/%d" % fd))
        os.write(LOG, b"ioctl %s %x %s\\n" % (name, number, argument.hex().encode()))
        if name.startswith(b"hang"):
            threading.Event().wait()
        if name == b"die":
            os._exit(1)
        return argument

    def fid(self, fd):
        os.write(LOG, b"fid\\n")
        info = os.fstat(fd)
        return (0x200000402).to_bytes(8, "little") + info.st_size.to_bytes(4, "little") + bytes(4)
'''


class Machine:
    """A folder that the mount table calls Lustre, and the stand-in for its system calls."""

    def __init__(self, top: Path, name: str) -> None:
        self.mount = top / name
        self.mount.mkdir()
        self.mounts = top / "mounts"
        self.mounts.write_text(f"sim@tcp:/fsx {self.mount} lustre rw 0 0\n")
        self.log = top / "log"
        (top / "calls.py").write_text(STAND_IN)
        self.environ = {"FSXWARM_SYSTEM_CALLS": str(top / "calls.py"), "LOG": str(self.log)}

    def file(self, name: str, size: int = 1) -> bytes:
        path = self.mount / name
        path.write_bytes(bytes(size))
        return os.fsencode(path)

    @asynccontextmanager
    async def hsm(self, **options: float) -> AsyncIterator[NativeHsm]:
        """A deadline below a second kills a helper that a busy machine has not started yet, and its calls with it."""
        lfs = LfsHsm(Children("/nowhere/lfs", {}))
        hsm = NativeHsm(lfs, str(self.mounts), environ=self.environ, **options)  # type: ignore[arg-type]  # numbers
        try:
            yield hsm
        finally:
            await hsm.close()

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "fsx")


@asynccontextmanager
async def native(fsx: SimulatedFsx, uid: int = 0, deadline: float = 30.0) -> AsyncIterator[NativeHsm]:
    environ = fsx.environ(os.environ, uid=uid)
    lfs = LfsHsm(Children("lfs", environ))
    hsm = NativeHsm(lfs, environ["FSXWARM_MOUNTS"], deadline=deadline, environ=environ)
    try:
        yield hsm
    finally:
        await hsm.close()
        await lfs.close()


def files(fsx: SimulatedFsx) -> list[bytes]:
    return [os.fsencode(path) for path in sorted(fsx.mount.rglob("*")) if path.is_file()]


# ---- what it asks of the kernel ------------------------------------------------------------------------------------


async def test_a_look_is_one_open_one_ioctl_one_close(machine: Machine) -> None:
    path = machine.file("a")
    async with machine.hsm() as hsm:
        assert await hsm.states([path]) == [Flags(0)]
        assert await hsm.actions([path]) == [Action()]
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
    opened, closed = f"open a {flags:o}", "close"
    assert machine.asked() == [
        *(opened, f"ioctl a 802066d3 {bytes(32).hex()}", closed),
        *(opened, f"ioctl a 801866dc {bytes(24).hex()}", closed),
    ]


async def test_a_request_opens_no_file_and_is_sent_on_the_mount_point(machine: Machine) -> None:
    (machine.mount / "sub").mkdir()
    paths = [machine.file("sub/a", 0x1171), machine.file("b", 0x1172)]
    async with machine.hsm() as hsm:
        assert await hsm.restore([*paths, paths[0]]) == Reply(0)
    name = f"{os.O_PATH | os.O_NOFOLLOW:o}"
    lookups = [line for file in ("a", "b", "a") for line in (f"open {file} {name}", "fid", "close")]
    whole = (0).to_bytes(8, "little") + b"\xff" * 8
    sent = struct.pack("=IIQII", 11, 0, 0, 2, 0) + b"".join(
        struct.pack("=QII", 0x200000402, oid, 0) + whole for oid in (0x1171, 0x1172)
    )
    folder = f"open fsx {os.O_NONBLOCK | os.O_DIRECTORY:o}"
    assert machine.asked() == [*lookups, folder, f"ioctl fsx 401866d9 {sent.hex()}", "close"]


async def test_a_request_through_a_symlinked_folder_goes_to_the_mount_behind_it(machine: Machine) -> None:
    path = machine.file("a")
    link = machine.mount.parent / "link"
    link.symlink_to(machine.mount)
    async with machine.hsm() as hsm:
        assert await hsm.restore([os.fsencode(link / "a")]) == Reply(0)
    assert path
    assert any(line.startswith("ioctl fsx 401866d9") for line in machine.asked())


async def test_what_is_no_regular_file_is_never_sent(machine: Machine) -> None:
    path = machine.file("a")
    (machine.mount / "link").symlink_to("a")
    (machine.mount / "sub").mkdir()
    os.mkfifo(machine.mount / "fifo")
    async with machine.hsm() as hsm:
        for name, expected in (("link", errno.ELOOP), ("sub", errno.EINVAL), ("fifo", errno.EINVAL), ("no", 2)):
            reply = await hsm.restore([path, os.fsencode(machine.mount / name)])
            assert reply.errno == expected
            assert name in reply.text
        assert (await hsm.restore([b"/etc/hostname"])).errno != 0
    assert not any("401866d9" in line for line in machine.asked())


# ---- what hangs ----------------------------------------------------------------------------------------------------


async def test_a_look_that_hangs_costs_its_own_file_alone(machine: Machine) -> None:
    paths = [machine.file(name) for name in ("a", "hang", "z")]
    async with machine.hsm(deadline=1.5) as hsm:
        first, hung, last = await hsm.states(paths)
        assert (first, last) == (Flags(0), Flags(0))
        assert isinstance(hung, Trouble)
        assert (hung.path, hung.errno) == (paths[1], errno.ETIMEDOUT)
        assert hsm.abandoned == 0, "it could be killed"


async def test_a_request_that_hangs_holds_up_no_other_and_its_end_is_told(sim_fsx: SimFsx) -> None:
    fsx = sim_fsx("--files", "6", "--size", "64KiB", "--mdts", "1")
    hanging, other, *_ = files(fsx)
    fsx.control("coordinator", control="disabled")
    async with native(fsx, deadline=1.5) as hsm:
        assert await hsm.restore([hanging]) == Reply(0)
        with pytest.raises(CallHungError) as duplicate:
            await hsm.restore([hanging])
        assert hsm.abandoned == 1
        assert await hsm.states([hanging, other]) == [RELEASED, RELEASED]
        assert await hsm.actions([hanging]) == [Action(Verb.RESTORE)]
        assert await hsm.restore([other]) == Reply(0)
        ended = duplicate.value.ended
        assert ended is not None
        fsx.control("coordinator", control="enabled")
        assert await asyncio.wait_for(ended, 20) == Reply(0)
        assert hsm.abandoned == 0


async def test_too_many_that_hang_are_the_end(machine: Machine) -> None:
    hung = Machine(machine.mount.parent, "hang")
    path = hung.file("a")
    async with hung.hsm(deadline=1.0, max_hanging=2) as hsm:
        for _ in range(2):
            with pytest.raises(CallHungError):
                await hsm.restore([path])
        with pytest.raises(FsxwarmError, match="2 requests hang") as error:
            await hsm.restore([path])
        assert error.value.exit is Exit.CANNOT


async def test_a_request_is_never_sent_twice(machine: Machine) -> None:
    dying = Machine(machine.mount.parent, "die")
    path = dying.file("a")
    async with dying.hsm() as hsm:
        reply = await hsm.restore([path])
        assert reply.errno == errno.EIO
        assert "ended before" in reply.text
    assert sum("401866d9" in line for line in dying.asked()) == 1


async def test_what_goes_wrong_after_whoever_asked_has_gone_is_no_noise(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    path = machine.file("a")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with machine.hsm() as hsm:
        asking = asyncio.create_task(hsm.restore([path]))
        await asyncio.sleep(0)  # it has begun
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no helper can be started
        try:
            asking.cancel()
            while len(asyncio.all_tasks()) > 1:
                await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert asking.cancelled()
    del asking
    gc.collect()  # whose end nobody has heard of is told of when it goes
    assert "never retrieved" not in caplog.text


async def test_a_look_is_done_again_when_its_process_dies(sim_fsx: SimFsx) -> None:
    fsx = sim_fsx("--files", "3", "--size", "64KiB")
    paths = files(fsx)
    fsx.control("break", call="state", fault="hang", times=1)
    async with native(fsx) as hsm:
        await hsm.actions(paths)  # so that the helpers are there
        looking = asyncio.ensure_future(hsm.states(paths))
        await asyncio.sleep(0.2)
        for pid in helpers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        assert await asyncio.wait_for(looking, 20) == [RELEASED] * 3


def helpers_of(pid: int) -> list[int]:
    """The native helpers that a process has started."""
    own = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in own if b"native_helper" in Path(f"/proc/{one}/cmdline").read_bytes()]


# ---- rights --------------------------------------------------------------------------------------------------------


@pytest.fixture
def public_fsx() -> Iterator[SimulatedFsx]:
    """A simulated FSx in a folder that any user may enter, which pytest's are not."""
    with TemporaryDirectory() as folder:
        top = Path(folder)
        top.chmod(0o755)
        with start(top / "fsx", "--files", "2", "--size", "64KiB", "--latency", "0ms") as fsx:
            yield fsx


async def test_without_read_permission_the_layout_tells(public_fsx: SimulatedFsx) -> None:
    fsx = public_fsx
    path = files(fsx)[0]
    os.chmod(path, 0o600)  # noqa: PTH101 - bytes
    async with native(fsx, uid=12345) as hsm:
        (state,), (action,) = await hsm.states([path]), await hsm.actions([path])
        assert isinstance(state, Trouble)
        assert isinstance(action, Trouble)
        assert (state.errno, action.errno) == (errno.EACCES, errno.EACCES)
        assert await hsm.released([path]) == [True]
        assert await hsm.restore([path]) == Reply(0), "a restore needs no rights"
        (pinned,) = await hsm.pin([path], on=True)
        assert pinned is not None
        assert pinned.errno == errno.EACCES


# ---- real system calls, where there is no Lustre -------------------------------------------------------------------


async def test_the_kernels_own_calls_say_what_is_not_lustre(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    names = ["a", "link", ".", "gone", "a/b", "x" * 300, "nul\0"]
    paths = [os.fsencode(tmp_path / name) for name in names]
    hsm = NativeHsm(LfsHsm(Children("/nowhere/lfs", {})), environ={})
    try:
        found = [answer.errno for answer in await hsm.states(paths) if isinstance(answer, Trouble)]
        assert found == [
            errno.ENOTTY, errno.ELOOP, errno.ENOTTY, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL
        ]  # fmt: skip
        assert (await hsm.restore(paths[:1])).errno in {errno.ENODATA, errno.EOPNOTSUPP}
        assert await hsm.probe(os.fsencode(tmp_path))
    finally:
        await hsm.close()


def test_its_helpers_start_bare() -> None:
    program = Path(native_helper.__file__)
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(program), "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"ctypes", "fsxwarm.lustre.abi", "fsxwarm.lustre.helper"} <= imported
    assert not imported & {
        "asyncio",
        "dataclasses",
        "pathlib",
        "site",
        "socket",
        "typing",
        "fsxwarm.model",
        "fsxwarm.errors",
    }


# ---- the choice ----------------------------------------------------------------------------------------------------


def chosen(machine: Machine, wish: Backend, environ: dict[str, str]) -> AbstractAsyncContextManager[ChosenHsm]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[ChosenHsm]:
        program = machine.mounts.with_name("lfs")
        program.write_text("#!/bin/sh\n[ $1 = --version ] && echo lfs 2.15.8\n")  # and nothing else works
        program.chmod(0o755)
        lfs = LfsHsm(Children(str(program), {}))
        mounts = str(machine.mounts)
        hsm = ChosenHsm(wish, NativeHsm(lfs, mounts, environ=environ), lfs, mounts)
        try:
            yield hsm
        finally:
            await hsm.close()

    return opened()


async def test_auto_takes_lfs_where_native_calls_fail(machine: Machine) -> None:
    path = machine.file("a")
    async with chosen(machine, Backend.AUTO, {}) as hsm:
        assert hsm.choice is None
        await hsm.states([path])
        assert hsm.choice is not None
        assert hsm.choice.backend is Backend.LFS
        assert str(machine.mount) in hsm.choice.why


async def test_native_is_never_silently_something_else(machine: Machine) -> None:
    path = machine.file("a")
    async with chosen(machine, Backend.NATIVE, {}) as hsm:
        with pytest.raises(FsxwarmError, match="native calls do not work"):
            await hsm.states([path])


async def test_auto_takes_native_calls_where_they_work(sim_fsx: SimFsx) -> None:
    fsx = sim_fsx("--files", "2", "--size", "64KiB")
    environ = fsx.environ(os.environ, uid=0)
    lfs = LfsHsm(Children("/nowhere/lfs", {}))
    mounts = environ["FSXWARM_MOUNTS"]
    hsm = ChosenHsm(Backend.AUTO, NativeHsm(lfs, mounts, environ=environ), lfs, mounts)
    try:
        assert await hsm.states(files(fsx)) == [RELEASED, RELEASED]
        assert hsm.choice is not None
        assert hsm.choice.backend is Backend.NATIVE
    finally:
        await hsm.close()


async def test_no_process_is_started_for_lfs(machine: Machine) -> None:
    path = machine.file("a")
    async with chosen(machine, Backend.LFS, machine.environ) as hsm:
        assert hsm.choice is not None
        await hsm.states([path])
        assert not machine.log.exists()
