"""What the recorded calls tell holds for others of their kind: any flags, any name, the bad file in any place."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.hsm import Action, Flags, Verb
from fsxwarm.sim.lfs import Outcome
from golden.conditions import (
    ARCHIVED,
    DIRTY,
    PLAIN,
    RELEASED,
    Condition,
    File,
    Folder,
    G,
    Link,
    Special,
    Thing,
    archived,
    dirty,
    plain,
    released,
    waiting,
)
from golden.lustre import BLOCKED, Lustre

WORDS = [
    (0x04, b"released"),
    (0x01, b"exists"),
    (0x02, b"dirty"),
    (0x08, b"archived"),
    (0x10, b"never_release"),
    (0x20, b"never_archive"),
    (0x40, b"lost_from_hsm"),
]
NAMES = st.binary(min_size=1, max_size=255).filter(
    lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..")
)


def folder(**things: Thing) -> Condition:
    return Condition(G, {G + b"/" + name.encode(): thing for name, thing in things.items()})


def run(condition: Condition, *argv: bytes, user: str = "root", version: tuple[int, ...] = (2, 15, 8)) -> Outcome:
    outcome = Lustre(condition, version).run((b"lfs", *argv), user)
    assert outcome is not BLOCKED
    return outcome


@given(flags=st.integers(0, 0x1FF), archive_id=st.integers(1, 2**32 - 1), name=NAMES)
def test_any_flags_on_any_name(flags: int, archive_id: int, name: bytes) -> None:
    lustre = Lustre(Condition(G, {G + b"/" + name: File(Flags(flags), archive_id=archive_id)}))
    outcome = lustre.run((b"lfs", b"hsm_state", name), "root")
    words = b"".join(b" " + word for bit, word in WORDS if flags & bit)
    archive = b", archive_id:%d" % archive_id if flags & Flags.EXISTS else b""
    assert outcome == Outcome(b"%b: (0x%08x)%b%b\n" % (name, flags, words, archive), b"", 0)


BAD: list[tuple[bytes, int]] = [
    (b"missing", errno.ENOENT),
    (b"folder", errno.ENOTTY),
    (b"fifo", errno.ENOTTY),
    (b"a/below", errno.ENOTDIR),
    (b"/etc/hostname", errno.ENOTTY),
    (b"x" * 256, errno.ENAMETOOLONG),
    (b"", errno.ENOENT),
    (b"loop", errno.ELOOP),
    (b"folder/", errno.ENOTTY),
    (b"a/", errno.ENOTDIR),
    (b"x/" * 2048, errno.ENAMETOOLONG),
    (b"folder/../missing", errno.ENOENT),
]
FILES = folder(a=archived, b=released, c=dirty, folder=Folder(), fifo=Special("p"), loop=Link(b"loop"))


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(("bad", "number"), BAD)
def test_hsm_state_stops_at_the_bad_file_wherever_it_stands(bad: bytes, number: int, place: int) -> None:
    paths = [b"a", b"b", b"c"]
    paths.insert(place, bad)
    outcome = run(FILES, b"hsm_state", *paths)
    assert outcome.stdout == run(FILES, b"hsm_state", *paths[:place]).stdout if place else outcome.stdout == b""
    assert outcome.stderr == b"can't get hsm state for %b: %b\n" % (bad, os.strerror(number).encode())
    assert outcome.exit == number


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(("bad", "number"), BAD)
def test_from_2_16_on_hsm_state_goes_on_behind_it(bad: bytes, number: int, place: int) -> None:
    paths = [b"a", b"b", b"c"]
    paths.insert(place, bad)
    outcome = run(FILES, b"hsm_state", *paths, version=(2, 16, 1))
    assert outcome.stdout == run(FILES, b"hsm_state", b"a", b"b", b"c").stdout
    assert outcome.stderr.count(b"\n") == 1
    assert outcome.exit == number


@pytest.mark.parametrize("place", range(3))
def test_nothing_is_sent_when_one_name_is_bad(place: int) -> None:
    for bad, number in [(b"missing", errno.ENOENT), (b"folder", 4), (b"/etc/hostname", None)]:
        paths = [b"b", b"d"]
        paths.insert(place, bad)
        lustre = Lustre(folder(b=released, d=released, folder=Folder()))
        outcome = lustre.run((b"lfs", b"hsm_restore", *paths), "root")
        assert isinstance(outcome, Outcome)
        assert outcome.exit in ({number} if number else {errno.EINVAL, errno.ENODATA})
        assert lustre.world.restoring == 0


@pytest.mark.parametrize("place", range(3))
def test_what_stands_before_a_refused_file_is_queued_and_the_first_name_is_blamed(place: int) -> None:
    paths = [b"b", b"d"]
    paths.insert(place, b"c")
    lustre = Lustre(folder(b=released, c=dirty, d=released))
    outcome = lustre.run((b"lfs", b"hsm_restore", *paths), "root")
    blamed = b"Cannot send HSM request (use of %b): Operation not permitted\n" % paths[0]
    assert outcome == Outcome(b"", blamed, 1)
    for number, path in enumerate(paths):
        assert lustre.truth(path, "hsm_action").restoring == (number < place)  # type: ignore[union-attr]  # an Action


@pytest.mark.parametrize("verb", [b"hsm_restore", b"hsm_release"])
@pytest.mark.parametrize("place", range(3))
def test_a_file_in_flight_blocks_up_to_2_15_and_is_skipped_from_2_16_on(verb: bytes, place: int) -> None:
    paths = [b"b", b"d"]
    paths.insert(place, b"q")
    condition = folder(b=released, d=released, q=waiting)
    assert Lustre(condition).run((b"lfs", verb, *paths), "root") is BLOCKED
    if verb == b"hsm_restore":
        assert run(condition, verb, *paths, version=(2, 16, 1)) == Outcome(b"", b"", 0)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action(), b"NOOP"),
        (Action(Verb.RESTORE), b"RESTORE waiting (from 0 to EOF)"),
        (Action(Verb.ARCHIVE), b"ARCHIVE waiting (from 0 to EOF)"),
        (Action(Verb.REMOVE), b"REMOVE waiting (from 0 to EOF)"),
        (Action(Verb.RESTORE, running=True, moved=3 << 20), b"RESTORE running (3145728 bytes moved)"),
        (Action(Verb.ARCHIVE, running=True), b"ARCHIVE running (0 bytes moved)"),
        (Action(Verb.RESTORE, running=True, moved=2**64 - 1), b"RESTORE running (18446744073709551615 bytes moved)"),
    ],
)
def test_any_action(action: Action, words: bytes) -> None:
    condition = folder(f=File(RELEASED, doing=action), g=plain)
    assert run(condition, b"hsm_action", b"f", b"g") == Outcome(b"f: %b\ng: NOOP\n" % words, b"", 0)


@pytest.mark.parametrize("flag", ["norelease", "noarchive", "dirty", "exists", "archived", "lost"])
def test_hsm_clear_undoes_hsm_set(flag: str) -> None:
    lustre = Lustre(folder(f=File(ARCHIVED)))
    option = f"--{flag}".encode()
    bit = Flags[flag.upper()]
    assert lustre.run((b"lfs", b"hsm_set", option, b"f"), "root") == Outcome(b"", b"", 0)
    assert bit in lustre.truth(b"f", "hsm_state")  # type: ignore[operator]  # flags
    assert lustre.run((b"lfs", b"hsm_clear", option, b"f"), "root") == Outcome(b"", b"", 0)
    assert bit not in lustre.truth(b"f", "hsm_state")  # type: ignore[operator]  # flags


@pytest.mark.parametrize(
    ("flags", "command", "options", "exit_status"),
    [
        (Flags.EXISTS, b"hsm_set", [b"--dirty"], 0),
        (Flags.EXISTS, b"hsm_set", [b"--lost"], errno.EINVAL),
        (PLAIN, b"hsm_set", [b"--exists", b"--dirty"], 0),
        (PLAIN, b"hsm_set", [b"--archived", b"--lost"], 0),
        (RELEASED, b"hsm_clear", [b"--archived"], errno.EINVAL),
        (ARCHIVED | Flags.LOST, b"hsm_clear", [b"--archived"], errno.EINVAL),
    ],
)
def test_flags_must_go_together(flags: Flags, command: bytes, options: list[bytes], exit_status: int) -> None:
    outcome = run(folder(f=File(flags)), command, *options, b"f")
    assert outcome.exit == exit_status
    assert outcome.stderr == (b"Can't change hsm flags for f: Invalid argument\n" if exit_status else b"")


def test_users_may_pin_their_own_files_but_not_mark_them_as_lost() -> None:
    condition = folder(f=File(DIRTY, owner=1001))
    assert run(condition, b"hsm_set", b"--norelease", b"f", user="alice").exit == 0
    assert run(condition, b"hsm_set", b"--lost", b"f", user="alice").exit == errno.EPERM


@pytest.mark.parametrize(
    ("items", "data", "exit_status"), [(52, 17, 0), (52, 18, 7), (51, 49, 0), (51, 50, 7), (1, 1649, 0)]
)
def test_a_request_has_room_for_1705_bytes(items: int, data: int, exit_status: int) -> None:
    names = {f"s{number}": released for number in range(items)}
    outcome = run(folder(**names), b"hsm_restore", b"-D", b"x" * data, *(name.encode() for name in names))
    assert outcome.exit == exit_status


def test_find_reports_a_folder_that_it_may_not_read_and_exits_with_its_errno() -> None:
    condition = Condition(
        G, {G + b"/a/f": released, G + b"/priv": Folder(mode=0o700), G + b"/priv/f": released, G + b"/z/f": released}
    )
    outcome = run(condition, b"find", b".", b"-L", b"released", user="bob")
    assert outcome.stdout == b"./a/f\n./z/f\n"
    assert outcome.stderr == (
        b"lfs find: llapi_semantic_traverse: Failed to open './priv': Permission denied (13)\n"
        b"lfs: failed for '.': Permission denied\n"
    )
    assert outcome.exit == errno.EACCES


def test_find_tests_types_and_depth() -> None:
    condition = Condition(
        G, {G + b"/f": plain, G + b"/d/g": released, G + b"/d/e/h": released, G + b"/p": Special("p")}
    )
    assert run(condition, b"find", b".", b"-type", b"d").stdout == b".\n./d\n./d/e\n"
    assert run(condition, b"find", b".", b"!", b"-type", b"d").stdout == b"./f\n./d/g\n./d/e/h\n./p\n"
    assert run(condition, b"find", b".", b"-maxdepth", b"2", b"-L", b"released").stdout == b"./d/g\n"
    assert run(condition, b"find", b"--type", b"p", b".", b"-print0").stdout == b"./p\0"
    assert run(condition, b"find", b".", b"-name", b"[gh]").stdout == b"./d/g\n./d/e/h\n"
    assert run(condition, b"find", b".", b"-type", b"f", b"!", b"-name", b"g*").stdout == b"./f\n./d/e/h\n"
    assert run(condition, b"find", b"nowhere", b"f").exit == errno.ENOENT


@pytest.mark.parametrize(
    ("mount", "stderr"),
    [
        (b"/etc", b"Cannot send HSM request (use of /etc): No such device\n"),
        (
            b"/gone",
            (
                b"Could not find path '/gone': No such file or directory\n"
                b"Cannot send HSM request (use of /gone): No such device\n"
            ),
        ),
    ],
)
def test_a_request_by_fid_needs_a_lustre_mount(mount: bytes, stderr: bytes) -> None:
    outcome = run(FILES, b"hsm_restore", b"--mntpath", mount, b"[0x200000402:0x1:0x0]")
    assert outcome == Outcome(b"", stderr, errno.ENODEV)


@pytest.mark.parametrize("fid", [b"[0x200000402:0x7:0x0]", b"0x200000402:0x7:0x0", b"0x200000402:7:0"])
def test_fids_are_read_with_or_without_brackets(fid: bytes) -> None:
    condition = folder(f=File(RELEASED, fid="[0x200000402:0x7:0x0]"))
    assert run(condition, b"hsm_restore", b"--mntpath", b"/mnt/lustre", fid) == Outcome(b"", b"", 0)


@pytest.mark.parametrize("text", [b"f", b"", b"20g:0xa:0x0", b"0x1:0x2", b"[0x1:0x2:0x3]x", b"0x1:0x2:0x3:0x4"])
def test_what_is_no_fid_is_refused(text: bytes) -> None:
    outcome = run(FILES, b"hsm_restore", b"--mntpath", b"/mnt/lustre", text)
    assert outcome == Outcome(b"", b"hsm: '%b' is not a valid FID\n" % text, errno.EINVAL)


def test_an_archive_request_names_its_archive() -> None:
    lustre = Lustre(folder(f=plain))
    assert lustre.run((b"lfs", b"hsm_archive", b"--archive", b"2", b"f"), "root") == Outcome(b"", b"", 0)
    words = b"f: (0x00000001) exists, archive_id:2\n"
    assert lustre.run((b"lfs", b"hsm_state", b"f"), "root") == Outcome(words, b"", 0)
    assert run(folder(f=plain), b"hsm_archive", b"f", user="bob").exit == errno.EPERM


def test_the_first_bad_option_is_the_one_complained_of() -> None:
    outcome = run(FILES, b"hsm_restore", b"-a", b"1", b"--nosuch", b"b")
    assert outcome.stderr.startswith(b"error: -a is supported only when archiving or removing\n")
