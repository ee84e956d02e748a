"""What lfs prints is read exactly, and nothing is read that it did not say."""

import base64
import errno
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre import replies
from fsxwarm.lustre.replies import Output, parse_actions, parse_released, parse_space, parse_states, parse_version
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import WEDGED_MOVED, Action, Flags, Verb
from lfs_words import absolute_paths, action_line, actions, errnos, said, state_line, states

GOLDEN = Path(__file__).parent.parent / "golden" / "cases.jsonl"
HERE = b"/mnt/lustre/g/"


def golden(*commands: bytes) -> Iterable[object]:
    for line in GOLDEN.read_text().splitlines():
        case = json.loads(line)
        argv = [base64.b64decode(word) for word in case["argv"]]
        if len(argv) > 2 and argv[1] in commands and not case["timed_out"]:
            stdout, stderr = (base64.b64decode(case[name]) for name in ("stdout", "stderr"))
            yield pytest.param(argv, Output(case["exit"], stdout, stderr), id=case["case"])


def absolute(names: Sequence[bytes], output: Output) -> tuple[list[bytes], Output]:
    """The recorded call as it looks with absolute paths, which is how fsxwarm asks."""
    paths = [name if name.startswith(b"/") else HERE + name for name in names]
    stdout, rest = b"", output.stdout
    stderr = output.stderr
    for name, path in zip(names, paths, strict=True):
        if rest.startswith(name + b": "):
            end = rest.index(b"\n", len(name)) + 1
            stdout, rest = stdout + path + rest[len(name) : end], rest[end:]
        stderr = stderr.replace(b" for " + name + b": ", b" for " + path + b": ")
    assert rest == b""
    return paths, Output(output.exit, stdout, stderr)


@pytest.mark.parametrize(("argv", "output"), list(golden(b"hsm_state", b"hsm_action")))
def test_recorded_answers_are_read_whole(argv: list[bytes], output: Output) -> None:
    asked = list(dict.fromkeys(argv[2:]))
    if len(asked) < len(argv[2:]):
        asked, output = asked[:1], output._replace(stdout=output.stdout[: len(output.stdout) // 2])
    paths, output = absolute(asked, output)
    parse: Callable[[Sequence[bytes], Output], replies.Parsed[Flags] | replies.Parsed[Action]]
    parse = parse_states if argv[1] == b"hsm_state" else parse_actions
    parsed = parse(paths, output)
    answered = list(parsed.known)
    assert answered == paths[: len(answered)]
    troubles = [answer for answer in parsed.known.values() if isinstance(answer, Trouble)]
    if output.exit == 0:
        assert answered == paths
        assert troubles == []
    else:
        assert [trouble.errno for trouble in troubles] == [output.exit]
        assert troubles[0].path == answered[-1]
        assert parsed.stopped or len(paths) == 1


def test_a_state_is_the_hex_behind_the_name_asked_for() -> None:
    name = b"/l/x: (0x0000000d) released exists archived, archive_id:1\ny"
    parsed = parse_states([name], Output(0, name + b": (0x00000000)\n", b""))
    assert parsed.known == {name: Flags(0)}


def test_bits_of_newer_clients_are_kept() -> None:
    parsed = parse_states([b"/a"], Output(0, b"/a: (0x0000018d) released exists archived, archive_id:1\n", b""))
    assert parsed.known == {b"/a": Flags(0x18D)}
    assert Flags(0x18D).restorable


def test_what_follows_a_bad_file_up_to_2_15_has_not_been_asked() -> None:
    output = Output(13, b"/a: (0x00000009) exists archived\n", b"can't get hsm state for /b: Permission denied\n")
    parsed = parse_states([b"/a", b"/b", b"/c"], output)
    assert parsed.stopped
    assert parsed.known == {b"/a": Flags(9), b"/b": Trouble(b"/b", errno.EACCES, "Permission denied")}


def test_one_gap_in_a_list_that_went_on_is_explained_by_the_exit_status() -> None:
    output = Output(2, b"/a: (0x00000009) exists archived\n/c: (0x00000000)\n", b"something about '/b'\n")
    parsed = parse_states([b"/a", b"/b", b"/c"], output)
    assert not parsed.stopped
    assert parsed.known == {
        b"/a": Flags(9), b"/b": Trouble(b"/b", errno.ENOENT, "something about '/b'"), b"/c": Flags(0)
    }  # fmt: skip


def test_several_gaps_are_explained_by_what_lfs_said_of_each() -> None:
    stderr = b"lfs hsm_state: cannot get '/b': Permission denied\nlfs hsm_state: cannot get '/d': Input/output error\n"
    output = Output(13, b"/a: (0x00000009) exists archived\n/c: (0x00000000)\n", stderr)
    known = parse_states([b"/a", b"/b", b"/c", b"/d", b"/e"], output).known
    assert known[b"/b"] == Trouble(b"/b", errno.EACCES, "Permission denied")
    assert known[b"/d"] == Trouble(b"/d", errno.EIO, "Input/output error")
    assert b"/e" not in known


def test_a_name_that_reads_like_two_answers_is_no_answer_for_others() -> None:
    evil = b"/l/x: (0x0000000d) released exists archived\n/l/z"
    output = Output(2, evil + b": (0x00000009) exists archived\n", b"'/l/x': No such file or directory\nand /l/z\n")
    assert parse_states([b"/l/x", evil, b"/l/z"], output).known == {}


def test_output_that_lfs_would_not_print_for_these_files_is_no_answer() -> None:
    strange = Output(0, b"/b: (0x00000009) exists archived\n/a: (0x0000000d) released exists archived\n", b"")
    assert parse_states([b"/a", b"/b"], strange).known == {}
    assert parse_states([b"/a"], Output(0, b"hello\n/a: (0x00000009)\n", b"")).known == {}
    assert parse_states([b"/a"], Output(0, b"", b"")).known == {}


def test_an_error_of_the_kernel_that_fits_no_exit_status_is_read_from_the_text() -> None:
    output = Output(524 & 0xFF, b"", b"can't get hsm state for /a: Unknown error 524\n")
    assert parse_states([b"/a", b"/b"], output).known == {b"/a": Trouble(b"/a", 524, "Unknown error 524")}


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (1, b"can't get hsm state for /a: Operation not permitted\n", errno.EPERM),
        (1, b"cannot open the file of another user: Operation not permitted\n", errno.EPERM),
        (1, b"lfs: error while loading shared libraries: liblustreapi.so.1\n", errno.EIO),
        (1, b"", errno.EIO),
        (13, b"", errno.EACCES),
        (-9, b"", errno.EIO),
    ],
)
def test_whoever_fails_with_1_has_not_been_forbidden_anything(status: int, said: bytes, code: int) -> None:
    assert replies.errno_of(Output(status, b"", said)) == code
    if status > 0:
        (trouble,) = parse_states([b"/a"], Output(status, b"", said)).known.values()
        assert isinstance(trouble, Trouble)
        assert trouble.errno == code


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (b"NOOP", Action()),
        (b"RESTORE waiting (from 0 to EOF)", Action(Verb.RESTORE)),
        (b"RESTORE waiting (from 0 to 4096)", Action(Verb.RESTORE)),
        (b"RESTORE running (1048576 bytes moved)", Action(Verb.RESTORE, running=True, moved=1 << 20)),
        (b"RESTORE running (18446744073709551615 bytes moved)", Action(Verb.RESTORE, running=True, moved=WEDGED_MOVED)),
        (b"ARCHIVE running (0 bytes moved)", Action(Verb.ARCHIVE, running=True)),
        (b"REMOVE waiting (from 0 to EOF)", Action(Verb.REMOVE)),
    ],
)
def test_actions(text: bytes, action: Action) -> None:
    assert parse_actions([b"/a b"], Output(0, b"/a b: " + text + b"\n", b"")).known == {b"/a b": action}


# -- any names, any truth, any cut ------------------------------------------------------------------------------------


def agree(parsed: replies.Parsed[Flags] | replies.Parsed[Action], world: dict[bytes, object]) -> None:
    for path, answer in parsed.known.items():
        if isinstance(answer, Trouble):
            assert answer.path == path
            assert answer.errno == world[path]
        else:
            assert answer == world[path]


worlds = st.dictionaries(absolute_paths, states | errnos, min_size=1, max_size=8)
busy_worlds = st.dictionaries(absolute_paths, actions | errnos, min_size=1, max_size=8)


@given(worlds, st.booleans())
def test_each_state_reported_is_the_truth(world: dict[bytes, object], goes_on: bool) -> None:  # noqa: FBT001 - drawn
    output = said(world, state_line, b"state", goes_on=goes_on)
    parsed = parse_states(list(world), output)
    agree(parsed, world)
    if output.exit == 0 or (not goes_on and b"\n" not in b"".join(world)):
        assert parsed.known, "a true output tells at least of one file"
    if output.exit == 0:
        assert parsed.known == world


@given(busy_worlds, st.booleans())
def test_each_action_reported_is_the_truth(world: dict[bytes, object], goes_on: bool) -> None:  # noqa: FBT001 - drawn
    output = said(world, action_line, b"action", goes_on=goes_on)
    parsed = parse_actions(list(world), output)
    agree(parsed, world)
    if output.exit == 0:
        assert parsed.known == world


@given(worlds)
def test_up_to_2_15_one_more_process_goes_on_behind_the_bad_file(world: dict[bytes, object]) -> None:
    output = said(world, state_line, b"state", goes_on=False)
    parsed = parse_states(list(world), output)
    if output.exit:
        first = next(i for i, truth in enumerate(world.values()) if not isinstance(truth, Flags))
        assert list(parsed.known) == list(world)[: first + 1]


@given(worlds, st.booleans(), st.integers(0, 2000), st.integers(0, 2000))
def test_a_cut_output_never_gives_a_wrong_state(
    world: dict[bytes, object],
    goes_on: bool,  # noqa: FBT001 - drawn
    out: int,
    err: int,
) -> None:
    whole = said(world, state_line, b"state", goes_on=goes_on)
    agree(parse_states(list(world), Output(-9, whole.stdout[:out], whole.stderr[:err])), world)


@given(st.lists(absolute_paths, min_size=1, max_size=5, unique=True), st.binary(), st.binary(), st.integers(-15, 255))
def test_any_bytes_are_read_without_a_crash(paths: list[bytes], stdout: bytes, stderr: bytes, status: int) -> None:
    output = Output(status, stdout, stderr)
    for parse in (parse_states, parse_actions, parse_released, replies.parse_marks):
        assert set(parse(paths, output).known) <= set(paths)
    assert isinstance(output.text, str)
    parse_version(stdout)
    parse_space(stdout)


@given(st.dictionaries(absolute_paths, st.booleans() | errnos, min_size=1, max_size=6), st.integers(0, 400) | st.none())
def test_released_never_says_false_of_a_released_or_bad_file(world: dict[bytes, object], cut: int | None) -> None:
    stdout = b"".join(path + b"\0" for path, truth in world.items() if truth is True)
    bad = {path: truth for path, truth in world.items() if not isinstance(truth, bool)}
    stderr = b"".join(
        b"lfs find: llapi_semantic_traverse: Failed to open '%s': %s (%d)\n" % (path, os.strerror(code).encode(), code)
        for path, code in bad.items()
        if isinstance(code, int)
    )
    status = next((code for code in bad.values() if isinstance(code, int)), 0)
    whole = Output(status, stdout, stderr)
    output = whole if cut is None else Output(-15, stdout[:cut], stderr)
    parsed = parse_released(list(world), output)
    for path, answer in parsed.known.items():
        truth = world[path]
        assert (answer.errno if isinstance(answer, Trouble) else answer) == truth
    if cut is None and not bad:
        assert parsed.known == world


def test_a_file_that_find_could_not_see_is_not_taken_for_resident() -> None:
    warning = b"lfs find: warning: cb_find_init: /b does not exist: No such file or directory (2)\n"
    assert parse_released([b"/a", b"/b"], Output(0, b"", warning)).known == {b"/a": False}
    (trouble,) = parse_released([b"/b"], Output(0, b"", warning)).known.values()
    assert isinstance(trouble, Trouble)
    assert trouble.errno == errno.ENOENT


def test_a_folder_in_a_files_place_tells_nothing_of_others() -> None:
    output = Output(0, b"/dir/x\0/dir/y\0/b\0", b"")
    assert parse_released([b"/b", b"/dir"], output).known == {b"/b": True, b"/dir": False}


def test_marks_are_set_up_to_the_first_refusal() -> None:
    output = Output(13, b"", b"Can't change hsm flags for /b: Permission denied\n")
    parsed = replies.parse_marks([b"/a", b"/b", b"/c"], output)
    assert parsed.stopped
    assert parsed.known == {b"/a": True, b"/b": Trouble(b"/b", errno.EACCES, "Permission denied")}


DF = b"""\
UUID                   1K-blocks        Used   Available Use% Mounted on
lustre-MDT0000_UUID     15550848        5120    15543680   1% /mnt/lustre[MDT:0]
lustre-MDT0001_UUID     15548928        3200    15543680   1% /mnt/lustre[MDT:1]
lustre-OST0000_UUID     15580160       34816    15543296   1% /mnt/lustre[OST:0]
OST0001             : inactive device
lustre-OST0002_UUID     15570944       25600       43296   1% /mnt/lustre[OST:2] D
lustre-OST0003_UUID : Resource temporarily unavailable

filesystem_summary:     31151104       60416    15586592   1% /mnt/lustre

"""


def test_space_counts_the_osts_that_answer() -> None:
    space = parse_space(DF)
    assert space is not None
    assert (space.total, space.free) == (31151104 << 10, 15586592 << 10)
    assert [(ost.name, ost.free) for ost in space.osts] == [
        ("lustre-OST0000", 15543296 << 10),
        ("lustre-OST0002", 43296 << 10),
    ]
    assert space.fullest == space.osts[1]


def test_space_of_a_mount_point_that_looks_like_a_line() -> None:
    space = parse_space(DF.replace(b"/mnt/lustre", b"/mnt/[OST:7] 1 2 3 4% x"))
    assert space is not None
    assert len(space.osts) == 2
    assert space.free == 15586592 << 10


def test_space_without_a_summary_is_the_sum() -> None:
    space = parse_space(DF[: DF.index(b"filesystem_summary")])
    assert space is not None
    assert space.free == (15543296 + 43296) << 10
    assert parse_space(b"lfs df: '/etc' is not on a mounted Lustre filesystem\n") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"lfs 2.15.8\n", (2, 15, 8)),
        (b"lfs 2.12.8_198_gde6cb2c\n", (2, 12, 8)),
        (b"lfs 2.16.0_RC1\n", (2, 16, 0)),
        (b"/usr/bin/lfs 2.15.8\n", (2, 15, 8)),
        (b"lfs\n", None),
        (b"", None),
        (b"git-lfs/3.3.0 (GitHub; linux amd64; go 1.19.8)\n", None),
        (b"\x8f\x00 8.4 \n\xff1.2.3", None),
        (b"lfs 2.15.8\nand more\n", None),
    ],
)
def test_version(text: bytes, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version
