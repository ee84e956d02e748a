"""One process of lfs: bounded, given up when it hangs, never left behind."""

import asyncio
import errno
import gc
import signal
import stat
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.lustre import child as child_module
from fsxwarm.lustre.child import Children, OverdueError

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Make an executable stand-in for lfs out of lines for sh; `$1` is the sub-command."""

    def make(lines: str, *, interpreter: str = "#!/bin/sh\n") -> str:
        path = tmp_path / f"lfs{len(list(tmp_path.iterdir()))}"
        path.write_text(interpreter + lines + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@asynccontextmanager
async def children(program: str, **options: float) -> AsyncIterator[Children]:
    crew = Children(program, PATH, **options)  # type: ignore[arg-type]  # whole numbers are numbers
    try:
        yield crew
    finally:
        await crew.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def known_to_the_kernel(pids: str) -> list[str]:
    return [pid for pid in pids.split() if Path("/proc", pid).exists()]


async def until(fact: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not fact():  # noqa: ASYNC110 - a process outside gives no event
            await asyncio.sleep(0.005)


async def test_it_gets_exactly_the_bytes_and_gives_all_back(script: Callable[[str], str]) -> None:
    async with children(script("cat; printf '%s|' \"$@\"; echo oops >&2; echo $LC_ALL >&2; exit 13")) as crew:
        output = await crew.run("hsm_state", [b"/a b", b"/\xff\n", b"/$(x)"])
        assert output == (13, b"hsm_state|/a b|/\xff\n|/$(x)|", b"oops\nC\n")
        assert output.text == "oops / C"
        assert crew.started == {"hsm_state": 1}


async def test_a_death_by_signal_is_told(script: Callable[[str], str]) -> None:
    async with children(script("printf half; kill -9 $$")) as crew:
        assert await crew.run("hsm_state", []) == (-9, b"half", b"")


async def test_never_more_at_a_time_than_allowed(script: Callable[[str], str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with children(script(f"echo + >> {log}; sleep 0.02; echo - >> {log}"), parallel=2) as crew:
        await asyncio.gather(*(crew.run("x", []) for _ in range(8)))
    now = most = 0
    for line in log.read_text().splitlines():
        now += 1 if line == "+" else -1
        most = max(most, now)
    assert most == 2


async def test_first_come_first_served(script: Callable[[str], str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with children(script(f"echo $2 >> {log}"), parallel=1) as crew:
        await asyncio.gather(*(crew.run("x", [b"%d" % number]) for number in range(8)))
    assert log.read_text().split() == list("01234567")


@pytest.mark.parametrize("lines", ["sleep 60", "trap '' TERM; while :; do sleep 60; done", "kill -STOP $$"])
async def test_one_that_hangs_is_ended_at_its_deadline(
    script: Callable[[str], str], tmp_path: Path, lines: str
) -> None:
    note = tmp_path / "pid"
    async with children(script(f"echo $$ > {note}; {lines}"), deadline=0.8, grace=0.6) as crew:
        with pytest.raises(OverdueError) as caught:
            await crew.run("hsm_state", [])
        assert caught.value.seconds == 0.8
        assert crew.abandoned == 0
        assert not alive(int(note.read_text()))


async def test_what_it_started_dies_with_it(script: Callable[[str], str], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with children(script(f"sleep 60 & echo $! > {note}; wait"), deadline=0.8) as crew:
        with pytest.raises(OverdueError):
            await crew.run("hsm_state", [])
        await until(lambda: not alive(int(note.read_text())))


async def test_one_that_does_not_die_in_time_still_tells_its_end(script: Callable[[str], str]) -> None:
    async with children(script("sleep 60"), deadline=0.1, grace=0.0) as crew:  # hardly time to die of the signal
        with pytest.raises(OverdueError) as caught:
            await crew.run("hsm_state", [])
        output = await caught.value.ended
        assert output.exit in {-signal.SIGTERM, -signal.SIGKILL}
        await until(lambda: crew.abandoned == 0)


async def test_a_spared_one_runs_on_and_its_end_can_be_awaited(script: Callable[[str], str], tmp_path: Path) -> None:
    go = tmp_path / "go"
    program = script(f"while ! [ -e {go} ]; do sleep 0.01; done; echo late >&2; exit 3")
    async with children(program, deadline=0.1) as crew:
        with pytest.raises(OverdueError) as caught:
            await crew.run("hsm_restore", [b"/a"], spare=True)
        assert crew.abandoned == 1
        go.touch()
        assert await caught.value.ended == (3, b"", b"late\n")
        await until(lambda: crew.abandoned == 0)


async def test_abandoned_ones_hold_no_place_but_too_many_stop_all(script: Callable[[str], str], tmp_path: Path) -> None:
    go = tmp_path / "go"
    program = script(f"[ $1 = quick ] && exit 0; while ! [ -e {go} ]; do sleep 0.01; done")
    async with children(program, deadline=0.8, parallel=1, max_abandoned=2) as crew:
        for _ in range(2):
            assert (await crew.run("quick", [])).exit == 0
            with pytest.raises(OverdueError):
                await crew.run("hsm_restore", [], spare=True)
        with pytest.raises(FsxwarmError) as caught:
            await crew.run("quick", [])
        assert caught.value.kind is Kind.HUNG
        assert caught.value.exit is Exit.CANNOT
        assert caught.value.data == {"hung": 2}
        go.touch()
        await until(lambda: crew.abandoned == 0)
        assert (await crew.run("quick", [])).exit == 0


async def test_cancelling_ends_the_process_and_frees_its_place(script: Callable[[str], str], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with children(script(f"[ $1 = quick ] && exit 0; echo $$ > {note}; sleep 60"), parallel=1) as crew:
        task = asyncio.create_task(crew.run("hsm_state", []))
        await until(lambda: note.exists() and note.read_text().endswith("\n"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await crew.run("quick", [])).exit == 0
        await until(lambda: not alive(int(note.read_text())))


async def test_cancelling_in_the_middle_of_its_start_ends_it_too(script: Callable[[str], str]) -> None:
    async with children(script("sleep 60"), parallel=1) as crew:
        for steps in range(12):
            task = asyncio.create_task(crew.run("hsm_state", []))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert len(asyncio.all_tasks()) == 1


async def test_closing_leaves_no_process_descriptor_or_thread(script: Callable[[str], str], tmp_path: Path) -> None:
    note = tmp_path / "pids"
    program = script(f"echo $$ >> {note}; [ $1 = quick ] && exit 0; sleep 60")
    async with children(program) as crew:
        await crew.run("quick", [])
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    async with children(program, deadline=1.5) as crew:
        await asyncio.gather(*(crew.run("quick", []) for _ in range(20)))
        hung = (crew.run("hsm_restore", [], spare=True) for _ in range(3))
        assert [type(end) for end in await asyncio.gather(*hung, return_exceptions=True)] == [OverdueError] * 3
        assert crew.abandoned == 3
    await until(lambda: descriptors() == before and threading.active_count() <= threads)
    assert known_to_the_kernel(note.read_text()) == [], "not even a zombie"
    assert len(asyncio.all_tasks()) == 1


async def test_an_endless_output_ends_the_process(
    script: Callable[[str], str],
) -> None:
    async with children(script("yes /very/long/line")) as crew:
        output = await crew.run("find", [])
        assert output.exit == -signal.SIGKILL
        assert len(output.stdout) <= child_module.MAX_OUTPUT


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("lfs", "no program lfs in PATH (/usr/bin:/bin)"),
        ("/nowhere/lfs", "there is no program /nowhere/lfs"),
        ("/", "/ is a folder"),
    ],
)
async def test_no_lfs(program: str, said: str) -> None:
    async with children(program) as crew:
        with pytest.raises(FsxwarmError) as caught:
            await crew.run("hsm_state", [])
        assert caught.value.kind is Kind.NO_LFS
        assert said in caught.value.message


async def test_an_lfs_that_is_no_program(script: Callable[..., str], tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for program in (str(plain), script("\0\1\2", interpreter=""), script("", interpreter="#!/no/such/shell\n")):
        async with children(program) as crew:
            with pytest.raises(FsxwarmError) as caught:
                await crew.run("hsm_state", [])
            assert caught.value.kind is Kind.NO_LFS
            assert program in caught.value.message
            assert crew.started == {}


async def test_an_lfs_whose_library_is_missing(script: Callable[[str], str]) -> None:
    words = "lfs: error while loading shared libraries: liblustreapi.so.1: cannot open shared object file"
    async with children(script(f"echo {words} >&2; exit 127")) as crew:
        with pytest.raises(FsxwarmError, match=r"liblustreapi\.so\.1") as caught:
            await crew.run("hsm_state", [])
        assert caught.value.kind is Kind.NO_LFS


async def test_too_long_a_list_is_told_as_lfs_would(script: Callable[[str], str]) -> None:
    async with children(script("exit 0")) as crew:
        output = await crew.run("hsm_restore", [b"/" + b"x" * 4000] * 4000)
        assert output == (errno.E2BIG, b"", b"Argument list too long")
