"""The Hsm port through lfs: every file gets its own answer, with as few processes as can be."""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.ports.hsm import CallHungError, Hsm, Reply

# A stand-in for lfs. Its world is a folder in which each file, named by the hex of a path, says what that path is:
# "0x0000000d", "NOOP", … or "errno N". Paths without a file are ENOENT. `go-on` makes it continue as 2.16 does.
LFS = """\
import os, sys
world, command = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]
paths = [os.fsencode(arg) for arg in sys.argv[2:] if arg[0] == "/"]
with open(world + "/calls", "a") as log:
    print(command, len(paths), [arg for arg in sys.argv[2:] if arg[0] != "/"], file=log)
has = lambda name: os.path.exists(world + "/" + name)
if has("die"):
    os.unlink(world + "/die"); sys.stdout.write("/half: (0x"); sys.stdout.flush(); os.kill(os.getpid(), 9)
status = 0
for path in paths:
    try:
        text = open(world + "/" + path.hex()).read()
    except OSError:
        text = "errno 2"
    if text.startswith("errno "):
        status = status or int(text[6:])
        what = {"hsm_state": "can't get hsm state for", "hsm_action": "can't get hsm action for",
                "path2fid": "lfs path2fid: cannot get fid for", "find": "lfs find: Failed to open"}
        what = what.get(command, "Can't change hsm flags for")
        goes_on = command in ("find", "path2fid") or has("go-on")
        quote = b"'" if goes_on else b""
        sys.stderr.buffer.write(what.encode() + b" " + quote + path + quote
                                + b": " + os.strerror(int(text[6:])).encode() + b"\\n")
        if not goes_on:
            break
    elif command == "hsm_state":
        sys.stdout.buffer.write(path + b": (" + text.encode() + b")\\n")
    elif command == "hsm_action":
        sys.stdout.buffer.write(path + b": " + text.encode() + b"\\n")
    elif command == "find" and int(text, 16) & 4:
        sys.stdout.buffer.write(path + b"\\0")
sys.exit(status)
"""


class World:
    """The stand-in's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lfs = folder / "lfs"
        self.lfs.write_text(f"#!{sys.executable} -SE\n{LFS}")
        self.lfs.chmod(0o755)

    def put(self, path: bytes, text: str) -> bytes:
        name = self.folder / path.hex()
        name.write_text(text)
        return path

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@asynccontextmanager
async def adapter(world: World, **options: float) -> AsyncIterator[LfsHsm]:
    hsm = LfsHsm(Children(str(world.lfs), os.environ, **options))  # type: ignore[arg-type]  # numbers all
    try:
        yield hsm
    finally:
        await hsm.close()


def shell(world: World, lines: str) -> None:
    world.lfs.write_text("#!/bin/sh\n" + lines)


def test_it_is_an_hsm(world: World) -> None:
    hsm: Hsm = LfsHsm(Children(str(world.lfs), {}))
    assert hsm.abandoned == 0


async def test_nothing_asked_starts_nothing(world: World) -> None:
    async with adapter(world) as hsm:
        assert await hsm.states([]) == []
        assert await hsm.restore([]) == Reply(0)
        assert hsm.started == {}


async def test_five_hundred_with_one_vanished_take_two_processes(world: World) -> None:
    paths = [world.put(b"/l/%d" % number, "0x0000000d") for number in range(500)]
    (world.folder / paths[321].hex()).unlink()
    async with adapter(world) as hsm:
        answers = await hsm.states(paths)
        assert hsm.started == {"hsm_state": 2}
    assert answers[321] == Trouble(paths[321], errno.ENOENT, "No such file or directory")
    assert [answer for answer in answers if answer == Flags(13)] == answers[:321] + answers[322:]


async def test_a_removed_folder_takes_a_handful_of_processes(world: World) -> None:
    paths = [b"/l/%d" % number for number in range(500)]
    left = [world.put(path, "0x0000000d") for path in paths[100:500:100]]
    async with adapter(world) as hsm:
        answers = await hsm.states(paths)
        assert hsm.started == {"hsm_state": 4, "path2fid": 1}
    assert [path for path, answer in zip(paths, answers, strict=True) if answer == Flags(13)] == left
    assert sum(isinstance(answer, Trouble) and answer.errno == errno.ENOENT for answer in answers) == 496


async def test_where_lfs_goes_on_one_process_is_enough(world: World) -> None:
    (world.folder / "go-on").touch()
    paths = [world.put(b"/l/%d" % number, "0x0000000d") for number in range(50)]
    world.put(paths[7], "errno 13")
    world.put(paths[9], "errno 2")
    async with adapter(world) as hsm:
        answers = await hsm.states(paths)
        assert hsm.started == {"hsm_state": 1}
    errnos = [answer.errno for answer in answers if isinstance(answer, Trouble)]
    assert errnos == [errno.EACCES, errno.ENOENT]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_names_made_to_deceive_are_told_apart(world: World, goes_on: bool) -> None:  # noqa: FBT001 - a parameter
    if goes_on:
        (world.folder / "go-on").touch()
    evil = world.put(b"/l/x: (0x0000000d)\n/l/z", "0x00000009")
    worse = world.put(b"/l/x: No such file or directory\ncan't get hsm state for /l/y", "0x00000001")
    fine = world.put(b"/l/\xff", "0x00000000")
    asked = [b"/l/x", evil, b"/l/z", fine, worse, b"/l/y"]
    async with adapter(world) as hsm:
        answers = await hsm.states(asked)
    gone = [Trouble(path, errno.ENOENT, "No such file or directory") for path in (b"/l/x", b"/l/z", b"/l/y")]
    assert answers == [gone[0], Flags(9), gone[1], Flags(0), Flags(1), gone[2]]


async def test_a_killed_process_costs_no_answer(world: World) -> None:
    paths = [world.put(b"/l/%d" % number, "0x00000009") for number in range(10)]
    (world.folder / "die").touch()
    async with adapter(world) as hsm:
        assert await hsm.states(paths) == [Flags(9)] * 10


async def test_one_that_is_killed_alone_is_asked_once_more(world: World) -> None:
    path = world.put(b"/l/a", "0x00000009")
    (world.folder / "die").touch()
    async with adapter(world) as hsm:
        assert await hsm.states([path]) == [Flags(9)]
        shell(world, "kill -9 $$")
        assert await hsm.states([path]) == [Trouble(path, errno.EIO, "lfs hsm_state was killed by signal 9 (Killed)")]
        assert hsm.started == {"hsm_state": 4}


async def test_a_failure_that_is_no_files_is_not_asked_for_again(world: World) -> None:
    shell(world, "echo 'lfs: the mount went away' >&2; exit 108")
    paths = [b"/l/%d" % number for number in range(500)]
    async with adapter(world) as hsm:
        assert await hsm.states(paths) == [Trouble(path, errno.ESHUTDOWN, "lfs: the mount went away") for path in paths]
        assert hsm.started == {"hsm_state": 1}


async def test_the_same_path_twice_is_asked_once_and_answered_twice(world: World) -> None:
    path = world.put(b"/l/a", "0x00000009")
    async with adapter(world) as hsm:
        assert await hsm.states([path, b"/l/b", path]) == [
            Flags(9), Trouble(b"/l/b", errno.ENOENT, "No such file or directory"), Flags(9)
        ]  # fmt: skip
    assert world.calls() == ["hsm_state 2 []"]


async def test_long_names_are_split_by_bytes_and_many_by_number(world: World) -> None:
    long = [world.put(b"/l/" + b"/".join([b"d" * 40] * 2) + b"%d" % n, "0x00000009") for n in range(3)]
    padded = [path + b"/" + b"x" * 4000 for path in long]  # ENOENT all
    async with adapter(world) as hsm:
        answers = await hsm.released([path + b"%d" % n for n in range(20) for path in padded])
        assert hsm.started["find"] == 3
        assert len(answers) == 60
        assert all(isinstance(answer, Trouble) for answer in answers)


async def test_more_than_five_hundred_are_several_processes(world: World) -> None:
    paths = [world.put(b"/%d" % number, "NOOP") for number in range(501)]
    async with adapter(world) as hsm:
        assert await hsm.actions(paths) == [Action()] * 501
    assert world.calls() == ["hsm_action 500 []", "hsm_action 1 []"]


async def test_actions_behind_a_bad_file(world: World) -> None:
    waiting = world.put(b"/w", "RESTORE waiting (from 0 to EOF)")
    running = world.put(b"/r", "RESTORE running (42 bytes moved)")
    async with adapter(world) as hsm:
        answers = await hsm.actions([waiting, b"/gone", running])
    assert answers[0] == Action(Verb.RESTORE)
    assert answers[2] == Action(Verb.RESTORE, running=True, moved=42)


async def test_released_needs_one_process_more_only_for_errors(world: World) -> None:
    cold, warm = world.put(b"/cold", "0x0000000d"), world.put(b"/warm\n", "0x00000009")
    async with adapter(world) as hsm:
        assert await hsm.released([cold, warm]) == [True, False]
        assert hsm.started == {"find": 1}
        assert await hsm.released([cold, b"/gone", warm]) == [
            True, Trouble(b"/gone", errno.ENOENT, "No such file or directory"), False
        ]  # fmt: skip
    assert world.calls()[0] == "find 2 ['-type', 'f', '-L', 'released', '-print0']"


async def test_pins_go_on_behind_a_refused_file(world: World) -> None:
    mine, other, last = world.put(b"/a", ""), world.put(b"/b", "errno 13"), world.put(b"/c", "")
    async with adapter(world) as hsm:
        answers = await hsm.pin([mine, other, last], on=True)
        assert answers == [None, Trouble(other, errno.EACCES, "Permission denied"), None]
        assert await hsm.pin([mine], on=False) == [None]
    assert world.calls() == [
        "hsm_set 3 ['--norelease']", "hsm_set 1 ['--norelease']", "hsm_clear 1 ['--norelease']"
    ]  # fmt: skip


async def test_requests_carry_the_exit_status_and_the_words(world: World) -> None:
    shell(world, 'echo "Cannot send HSM request (use of $2): Operation not permitted" >&2; exit 1')
    async with adapter(world) as hsm:
        reply = Reply(errno.EPERM, "Cannot send HSM request (use of /a): Operation not permitted")
        assert await hsm.restore([b"/a", b"/b"]) == reply
        assert await hsm.cancel([b"/a"]) == reply
        assert await hsm.release([b"/a"]) == reply
        assert hsm.started == {"hsm_restore": 1, "hsm_cancel": 1, "hsm_release": 1}


@pytest.mark.parametrize("call", [LfsHsm.restore, LfsHsm.cancel, LfsHsm.release])
async def test_too_many_for_one_request_are_refused_unasked(world: World, call: Callable[..., object]) -> None:
    async with adapter(world) as hsm:
        reply = await call(hsm, [b"/%d" % number for number in range(51)])  # type: ignore[misc]  # a coroutine
        assert reply == Reply(errno.E2BIG, "51 files in one request; at most 50 are taken")
        assert hsm.started == {}


async def test_a_restore_that_hangs_on_a_duplicate_tells_later_how_it_ended(world: World) -> None:
    go = world.folder / "go"
    shell(world, f"while ! [ -e {go} ]; do sleep 0.01; done; echo no >&2; exit 1")
    async with adapter(world, deadline=0.1) as hsm:
        with pytest.raises(CallHungError) as caught:
            await hsm.restore([b"/a"])
        assert caught.value.what == "lfs hsm_restore"
        assert hsm.abandoned == 1
        go.touch()
        assert caught.value.ended is not None
        assert await caught.value.ended == Reply(errno.EPERM, "no")


async def test_a_reply_that_never_comes_is_called_off_at_the_end(world: World) -> None:
    shell(world, "sleep 60")
    async with adapter(world, deadline=0.1) as hsm:
        with pytest.raises(CallHungError) as caught:
            await hsm.restore([b"/a"])
    ended = caught.value.ended
    assert ended is not None
    assert (await ended).errno == errno.EIO, "killed when the adapter was closed"


async def test_a_look_up_that_hangs_is_ended(world: World) -> None:
    shell(world, "sleep 60")
    async with adapter(world, deadline=0.1) as hsm:
        with pytest.raises(CallHungError) as caught:
            await hsm.states([b"/a"])
        assert caught.value.ended is None
        assert hsm.abandoned == 0


async def test_look_ups_run_beside_each_other(world: World) -> None:
    shell(world, f'case $2 in /a) while ! [ -e {world.folder}/b ]; do sleep 0.01; done;; /b) touch {world.folder}/b;; '
                 'esac; echo "$2: (0x00000009)"')  # fmt: skip
    async with adapter(world, deadline=10) as hsm:
        first, second = await asyncio.gather(hsm.states([b"/a"]), hsm.states([b"/b"]))
        assert first == second == [Flags(9)]


async def test_version_and_space(world: World) -> None:
    shell(world, "[ $1 = --version ] && echo lfs 2.15.8 && exit; echo \"lfs df: '$2' is no Lustre\" >&2; exit 19")
    async with adapter(world) as hsm:
        assert await hsm.version() == (2, 15, 8)
        assert await hsm.space(b"/etc") == Trouble(b"/etc", errno.ENODEV, "lfs df: '/etc' is no Lustre")
    shell(world, "echo hello")
    async with adapter(world) as hsm:
        version = await hsm.version()
        assert isinstance(version, Trouble)
        assert version.errno == errno.EIO
        assert version.text.endswith("lfs --version` printed hello")
