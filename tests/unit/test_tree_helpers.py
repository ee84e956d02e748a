"""The walk's processes: calls that hang, processes that are stopped or die, consumers that are slow or leave."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.lustre.pool import PROGRAM
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.ports.tree import Batch, Filters, Place, Stat

ALL = Filters()
DEADLINE = 0.8

STUCK = f"""
import importlib.machinery, os, sys, threading

def stuck(wrapped):
    def call(path, *arguments, **options):
        if isinstance(path, bytes) and b"STUCK" in path:
            threading.Event().wait()
        if isinstance(path, bytes) and b"DEADLY" in path:
            os._exit(9)
        return wrapped(path, *arguments, **options)
    return call

os.open, os.lstat = stuck(os.open), stuck(os.lstat)
helper = importlib.machinery.SourceFileLoader("helper", {PROGRAM!r}).load_module()
helper.main()
"""
"""A helper for which the kernel never answers about some names, and for which others are deadly."""


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[HelperTree]:
    tree = HelperTree(**options)
    try:
        yield tree
    finally:
        await tree.close()


@pytest.fixture
def stuck(tmp_path: Path) -> str:
    program = tmp_path / "stuck.py"
    program.write_text(STUCK)
    return str(program)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


def touch(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return os.fsencode(path)


async def place(tree: HelperTree, path: Path) -> Place:
    found = await tree.resolve(os.fsencode(path))
    assert isinstance(found, Place)
    return found


async def walk(tree: HelperTree, root: Path, *, whole: bool = True) -> list[Batch]:
    return [batch async for batch in tree.walk(await place(tree, root), ALL, whole=whole)]


def paths(batches: list[Batch]) -> list[bytes]:
    return [item.path for batch in batches for item in batch.items if isinstance(item, Entry)]


def troubles(batches: list[Batch]) -> list[tuple[bytes, int]]:
    return [(trouble.path, trouble.errno) for batch in batches for trouble in batch.troubles]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def signal_all(tree: HelperTree, number: int) -> int:
    """Send a signal to all that are there; some may be dead by now. Returns how many they were."""
    pids = tree.pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return len(pids)


def states(pid: int) -> set[str]:
    """What a process's threads do: S is waiting."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}


def written(pid: int) -> int:
    """Bytes that a process has written so far."""
    return int(Path(f"/proc/{pid}/io").read_text().split()[3])


async def until(fact: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not fact():  # noqa: ASYNC110 - a process outside gives no event
            await asyncio.sleep(0.005)


async def test_no_process_before_it_is_needed_and_none_after(root: Path) -> None:
    async with opened(helpers=3) as tree:
        assert tree.pids == []
        await walk(tree, root)
        pids = tree.pids
        assert pids
        assert all(map(alive, pids))
    assert not any(map(alive, pids))
    with pytest.raises(FsxwarmError) as caught:
        await tree.stat([b"/"])
    assert caught.value.kind is Kind.INTERRUPTED


async def test_one_process_does_what_is_done_one_after_another(root: Path) -> None:
    names = [touch(root / f"{number}") for number in range(40)]
    async with opened(helpers=3) as tree:
        for name in names:
            await tree.stat([name])
        assert sorted(paths(await walk(tree, root))) == sorted(names)
        assert len(tree.pids) == 1


async def test_there_are_as_many_processes_as_work_that_takes_its_time_and_no_more_than_allowed(
    root: Path, stuck: str
) -> None:
    names = [os.fsencode(root / f"{number}-STUCK") for number in range(9)]
    async with opened(program=stuck, helpers=4) as tree:
        at_once = [asyncio.ensure_future(tree.resolve(name)) for name in names[:2]]
        await until(lambda: len(tree.pids) == 2)
        await asyncio.sleep(0.1)
        assert len(tree.pids) == 2, "a third has nothing to do"
        at_once += [asyncio.ensure_future(tree.resolve(name)) for name in names[2:]]
        await until(lambda: len(tree.pids) == 4)
        await asyncio.sleep(0.1)
        assert len(tree.pids) == 4, "no more are allowed"
    assert len(await asyncio.gather(*at_once, return_exceptions=True)) == 9


async def test_closing_what_never_began_is_nothing() -> None:
    async with opened():
        pass


async def test_a_folder_that_hangs_is_a_trouble_and_the_rest_goes_on(root: Path, stuck: str) -> None:
    wanted = sorted(touch(root / f"d{number}" / "f") for number in range(30))
    touch(root / "d05-STUCK" / "f")
    async with opened(program=stuck, deadline=DEADLINE) as tree:
        (pid,) = (await place(tree, root), tree.pids)[1]
        batches = await walk(tree, root)
        assert paths(batches) == wanted
        assert troubles(batches) == [(os.fsencode(root / "d05-STUCK"), errno.ETIMEDOUT)]
        assert tree.abandoned == 0
        await until(lambda: bool(tree.pids) and pid not in tree.pids)
        await until(lambda: not alive(pid))


async def test_a_path_that_hangs_costs_no_other_its_answer(root: Path, stuck: str) -> None:
    names = [touch(root / f"{number}{'-STUCK' if number in {0, 333} else ''}") for number in range(600)]
    async with opened(program=stuck, deadline=DEADLINE) as tree:
        answers = await tree.stat(names)
        hung = [place for place, answer in enumerate(answers) if isinstance(answer, Trouble)]
        assert hung == [0, 333]
        assert [answer.errno for answer in answers if isinstance(answer, Trouble)] == [errno.ETIMEDOUT] * 2
        assert [answer.ino for answer in answers if isinstance(answer, Stat)] == [
            os.lstat(name).st_ino for name in names if b"STUCK" not in name
        ]


async def test_a_file_system_that_never_answers_is_given_up_in_a_bounded_time(root: Path, stuck: str) -> None:
    names = [os.fsencode(root / f"STUCK{number}") for number in range(100)]
    async with opened(program=stuck, deadline=DEADLINE / 2) as tree, asyncio.timeout(30):
        assert {answer[1] for answer in await tree.stat(names)} == {errno.ETIMEDOUT}
        assert (await tree.resolve(names[0]))[:2] == (names[0], errno.ETIMEDOUT)


async def test_a_list_goes_on_past_what_hangs(root: Path, stuck: str) -> None:
    names = [touch(root / name) for name in ("a", "b-STUCK", "c")]

    async def chunks() -> AsyncIterator[list[bytes]]:
        yield names
        yield names[2:]

    async with opened(program=stuck, deadline=DEADLINE) as tree:
        batches = [batch async for batch in tree.listed(chunks(), ALL, whole=True)]
        assert [paths([batch]) for batch in batches] == [[names[0], names[2]], [names[2]]]
        assert troubles(batches) == [(names[1], errno.ETIMEDOUT)]


async def test_work_that_is_slow_but_moves_is_no_hang(root: Path) -> None:
    """Far more look-ups than are done at a time, behind a walk that waits for its consumer."""
    names = [touch(root / f"{number}") for number in range(6000)]
    async with opened(deadline=DEADLINE) as tree:
        walking = tree.walk(await place(tree, root), ALL, whole=True)
        got = paths([await anext(walking)])
        pids = tree.pids
        for _ in range(6):
            await asyncio.sleep(DEADLINE / 4)
            assert not any(isinstance(answer, Trouble) for answer in await tree.stat(names))
        got += paths([batch async for batch in walking])
        assert sorted(got) == sorted(names)
        assert tree.pids[: len(pids)] == pids, "none was given up"


async def test_processes_that_were_stopped_as_a_whole_lose_nothing(root: Path) -> None:
    wanted = sorted(touch(root / f"d{number}" / "f") for number in range(200))
    async with opened(deadline=DEADLINE) as tree:
        walking = tree.walk(await place(tree, root), ALL, whole=True)
        batches = [await anext(walking)]
        pids = tree.pids
        signal_all(tree, signal.SIGSTOP)
        batches += [batch async for batch in walking]
        assert paths(batches) == wanted
        assert troubles(batches) == []
        assert not {*pids} & {*tree.pids}
        await until(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize("flat", [True, False])
async def test_processes_that_die_lose_and_double_nothing(root: Path, flat: bool) -> None:  # noqa: FBT001 - a parameter
    wanted = [touch(root / (f"{n:05}" if flat else f"d{n % 40:02}/{n:05}")) for n in range(12_000)]
    async with opened() as tree:
        got: list[bytes] = []
        killed = 0
        async for batch in tree.walk(await place(tree, root), ALL, whole=True):
            got += paths([batch])
            assert batch.troubles == []
            if len(got) > 4000 * (killed + 1) and killed < 2:
                killed += 1
                signal_all(tree, signal.SIGKILL)
        assert killed == 2
        assert sorted(got) == sorted(wanted)


async def test_residents_are_counted_once_though_a_process_died(root: Path) -> None:
    for number in range(3000):
        (root / f"{number}").write_bytes(b"x" * 5000)
    os.sync()
    for number in range(3000, 6000):
        touch(root / f"{number}")
    async with opened() as tree:
        files = killed = 0
        async for batch in tree.walk(await place(tree, root), ALL):
            files += sum(item.files if isinstance(item, Resident) else 1 for item in batch.items)
            if not killed:
                killed = signal_all(tree, signal.SIGKILL)
        assert killed == 1
        assert files == 6000


async def test_a_folder_that_changed_while_its_process_died_says_so(root: Path) -> None:
    for number in range(12_000):
        touch(root / f"{number}")
    async with opened() as tree:
        walking = tree.walk(await place(tree, root), ALL, whole=True)
        batches = [await anext(walking)]
        (root / "5").unlink()
        signal_all(tree, signal.SIGKILL)
        batches += [batch async for batch in walking]
        assert troubles(batches) == [(os.fsencode(root), errno.ESTALE)]


async def test_what_kills_every_process_is_given_up(root: Path, stuck: str) -> None:
    wanted = sorted(touch(root / f"d{number}" / "f") for number in range(9))
    touch(root / "d4-DEADLY" / "f")
    async with opened(program=stuck) as tree:
        batches = await walk(tree, root)
        assert [trouble for trouble in troubles(batches) if b"DEADLY" in trouble[0]] == [
            (os.fsencode(root / "d4-DEADLY"), errno.EIO)
        ]
        assert {*paths(batches)} <= {*wanted}
        missing = {path.rpartition(b"/")[0] for path in {*wanted} - {*paths(batches)}}
        assert missing == {path for path, _ in troubles(batches) if b"DEADLY" not in path}, "each is named or told of"


async def test_those_that_do_not_die_are_counted_and_end_it_all(root: Path, stuck: str) -> None:
    names = [os.fsencode(root / f"STUCK{number}") for number in range(3)]
    spared: list[int] = []

    def kill(pid: int, number: int) -> None:
        """As the kernel does with a process that waits uninterruptibly: nothing."""
        assert number == signal.SIGKILL
        spared.append(pid)

    tree = HelperTree(program=stuck, deadline=0.4, max_abandoned=2, helpers=1, kill=kill)
    assert (await tree.resolve(names[0]))[1] == errno.ETIMEDOUT
    await until(lambda: tree.abandoned == 1)
    assert isinstance(await tree.resolve(b"/"), Place), "another has taken its place"
    assert (await tree.resolve(names[1]))[1] == errno.ETIMEDOUT
    await until(lambda: tree.abandoned == 2)
    with pytest.raises(FsxwarmError) as caught:
        await tree.resolve(b"/")
    assert caught.value.kind is Kind.HUNG
    assert caught.value.data == {"hung": 2}
    os.kill(spared[0], signal.SIGKILL)  # the file system has come back
    await until(lambda: tree.abandoned == 1)
    assert isinstance(await tree.resolve(b"/"), Place)
    os.kill(spared[1], signal.SIGKILL)
    await until(lambda: tree.abandoned == 0)
    signal_all(tree, signal.SIGKILL)
    await tree.close()
    assert not any(map(alive, spared))


async def test_waiting_work_ends_when_too_many_hang(root: Path, stuck: str) -> None:
    spared: list[int] = []
    tree = HelperTree(program=stuck, deadline=0.4, max_abandoned=1, helpers=1, kill=lambda pid, _: spared.append(pid))
    names = [os.fsencode(root / f"{number}-STUCK") for number in range(30)]
    answers = await asyncio.gather(*(tree.resolve(name) for name in names), return_exceptions=True)
    hung = [answer for answer in answers if isinstance(answer, FsxwarmError) and answer.kind is Kind.HUNG]
    assert len(hung) == 29
    os.kill(spared[0], signal.SIGKILL)
    await until(lambda: tree.abandoned == 0)
    await tree.close()
    assert not any(map(alive, spared))


async def test_a_walk_ends_when_too_many_hang(root: Path, stuck: str) -> None:
    for number in range(40):
        touch(root / f"d{number:02}{'-STUCK' if number in {3, 20} else ''}" / "f")
    spared: list[int] = []
    tree = HelperTree(program=stuck, deadline=0.4, max_abandoned=1, helpers=1, kill=lambda pid, _: spared.append(pid))
    walking = tree.walk(await place(tree, root), ALL, whole=True)
    while not (await anext(walking)).troubles:
        pass
    await until(lambda: tree.abandoned == 1)
    with pytest.raises(FsxwarmError) as caught:
        [_ async for _ in walking]
    assert caught.value.kind is Kind.HUNG
    signal_all(tree, signal.SIGKILL)
    for pid in spared:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await until(lambda: tree.abandoned == 0)
    await tree.close()


async def test_a_slow_consumer_stops_the_walk(root: Path) -> None:
    for number in range(30_000):
        os.close(os.open(root / f"{number}", os.O_CREAT | os.O_WRONLY))
    async with opened(helpers=1) as tree:
        walking = tree.walk(await place(tree, root), ALL, whole=True)
        first = await anext(walking)
        (pid,) = tree.pids
        await until(lambda: states(pid) <= {"S"})
        assert written(pid) < 10 * len(first.items) * 200, "a few parts, not the whole folder"
        assert len(paths([batch async for batch in walking])) == 30_000 - len(first.items)


async def test_a_consumer_that_leaves_frees_all_threads(root: Path) -> None:
    for number in range(80):
        touch(root / f"d{number % 40}" / f"{number}")
    for number in range(9000):
        os.close(os.open(root / "d0" / f"x{number}", os.O_CREAT | os.O_WRONLY))
    async with opened(helpers=1) as tree:
        for _ in range(50):
            walking = tree.walk(await place(tree, root), ALL, whole=True)
            await anext(walking)
            await walking.aclose()  # type: ignore[attr-defined]  # it is a generator
        (pid,) = tree.pids
        assert len(os.listdir(f"/proc/{pid}/task")) < 40  # noqa: PTH208 - not in a coroutine
        assert len(paths(await walk(tree, root))) == 9080


async def test_walks_and_lookups_at_once_all_come_to_their_end(root: Path) -> None:
    names = [touch(root / f"d{number % 7}" / f"{number}") for number in range(5000)]
    async with opened() as tree:
        walks = [walk(tree, root) for _ in range(8)]
        *walked, stats = await asyncio.gather(*walks, tree.stat(names))
        assert all(sorted(paths(batches)) == sorted(names) for batches in walked)
        assert len(stats) == 5000


async def test_our_own_end_is_theirs() -> None:
    code = (
        "import asyncio, os\n"
        "from fsxwarm.lustre.tree import HelperTree\n"
        "async def main():\n"
        "    tree = HelperTree()\n"
        "    await tree.stat([b'/'])\n"
        "    print(*tree.pids, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    pids = [int(pid) for pid in output.split()]
    assert len(pids) == 1
    await until(lambda: not any(map(alive, pids)))
