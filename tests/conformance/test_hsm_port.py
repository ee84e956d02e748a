"""What every implementation of the Hsm port does, on a simulated and on a real Lustre alike."""

import errno

import pytest

from conformance.lab import KNOWN, Lab
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags

PLAIN = Flags(0)
CLEAN = Flags.EXISTS | Flags.ARCHIVED
DIRTY = CLEAN | Flags.DIRTY
RELEASED = CLEAN | Flags.RELEASED
PINNED = CLEAN | Flags.NORELEASE
LOST = RELEASED | Flags.LOST

ODD = [
    b"a b",
    b"-dash",
    b"--help",
    b"--",
    b"new\nline",
    b"tab\tcr\resc\x1b[31m",
    b"bad\xff\xfe\x80name",
    "h\xe9llo-漢字-😀".encode(),
    b"q'\"`$(x)\\",
    b"%s%n%d",
    b"*?[a]",
    b"a: (0x00000000)",
    b"a: NOOP",
    b"x: (0x0000000d) released exists archived, archive_id:1\ny",
    b"x: (0x00000009) exists archived, archive_id:1\n",
    b"\n",
    b"#",
    b"n" * 255,
]


def plainly(answers: list[Flags | Trouble]) -> list[Flags | int]:
    """Flags that all versions know, errnos for troubles."""
    return [answer.errno if isinstance(answer, Trouble) else answer & KNOWN for answer in answers]


async def look(lab: Lab, paths: list[bytes]) -> list[Flags | int]:
    return plainly(await lab.hsm.states(paths))


async def idle(lab: Lab, paths: list[bytes]) -> bool:
    return await lab.hsm.actions(paths) == [Action()] * len(paths)


# -- looking ----------------------------------------------------------------------------------------------------------


async def test_each_kind_of_file_has_its_flags(lab: Lab) -> None:
    plain, clean = await lab.plain(b"plain"), await lab.archived(b"clean", b"pinned")
    dirty, released = await lab.dirty(b"dirty"), await lab.released(b"released", b"lost")
    assert await lab.hsm.pin(clean[1:], on=True) == [None]
    await lab.lose(released[1])
    asked = [released[0], *plain, *dirty, *clean, released[1]]
    assert await look(lab, asked) == [RELEASED, PLAIN, DIRTY, CLEAN, PINNED, LOST]
    assert await idle(lab, asked)


async def test_nothing_asked_nothing_answered(lab: Lab) -> None:
    assert await lab.hsm.states([]) == []
    assert await lab.hsm.actions([]) == []
    assert await lab.hsm.released([]) == []
    assert await lab.hsm.pin([], on=True) == []


async def test_errors_are_of_one_file_alone(lab: Lab) -> None:
    (first, last), folder = await lab.plain(b"first", b"last"), await lab.mkdir(b"folder")
    gone, below = lab.path(b"gone"), first + b"/below"
    asked = [gone, first, folder, gone, below, last, lab.path(b"x" * 300)]
    wrong = [errno.ENOENT, PLAIN, errno.ENOTTY, errno.ENOENT, errno.ENOTDIR, PLAIN, errno.ENAMETOOLONG]
    states = await lab.hsm.states(asked)
    assert plainly(states) == wrong
    assert [answer.path for answer in states if isinstance(answer, Trouble)] == [gone, folder, gone, below, asked[-1]]
    actions = await lab.hsm.actions(asked)
    assert [answer.errno if isinstance(answer, Trouble) else answer for answer in actions] == [
        Action() if answer is PLAIN else answer for answer in wrong
    ]


async def test_many_files_with_gaps(lab: Lab) -> None:
    names = [b"%d" % number for number in range(200)]
    there = set(await lab.plain(*(name for name in names if not name.endswith(b"9"))))
    asked = [lab.path(name) for name in names]
    assert await look(lab, asked) == [PLAIN if path in there else errno.ENOENT for path in asked]


async def test_a_file_asked_for_twice_is_answered_twice(lab: Lab) -> None:
    (path,) = await lab.plain(b"a")
    gone = lab.path(b"gone")
    assert await look(lab, [path, gone, path]) == [PLAIN, errno.ENOENT, PLAIN]


async def test_no_name_is_misread(lab: Lab) -> None:
    paths = await lab.archived(*ODD)
    assert (await lab.hsm.release(paths[::2])).errno == 0
    truth = [CLEAN if place % 2 else RELEASED for place in range(len(ODD))]
    assert await look(lab, paths) == truth
    assert await idle(lab, paths)
    assert await lab.hsm.released(paths) == [flags is RELEASED for flags in truth]
    deceived = [lab.path(b"x"), *paths, lab.path(b"a")]
    assert await look(lab, deceived) == [errno.ENOENT, *truth, errno.ENOENT]
    assert (await lab.hsm.restore(paths)).errno == 0
    await lab.until_resident(paths)
    assert await look(lab, paths) == [CLEAN] * len(paths)


async def test_released_tells_files_apart_without_their_flags(lab: Lab) -> None:
    (cold,), (warm,), (plain,) = await lab.released(b"cold"), await lab.archived(b"warm"), await lab.plain(b"plain")
    gone = lab.path(b"gone")
    answers = await lab.hsm.released([warm, cold, gone, plain])
    assert [answer.errno if isinstance(answer, Trouble) else answer for answer in answers] == [
        False, True, errno.ENOENT, False
    ]  # fmt: skip
    assert await lab.hsm.released([cold, plain]) == [True, False]


async def test_all_names_of_a_file_show_one_state(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    link = await lab.link(path, b"b")
    assert await look(lab, [path, link]) == [RELEASED, RELEASED]
    assert (await lab.hsm.restore([link])).errno == 0
    await lab.until_resident([path])
    assert await look(lab, [path, link]) == [CLEAN, CLEAN]


# -- restoring --------------------------------------------------------------------------------------------------------


async def test_a_restored_file_is_resident_and_clean(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    assert (await lab.hsm.restore([path])).errno == 0
    (action,) = await lab.hsm.actions([path])
    assert isinstance(action, Action)
    assert action.idle or action.restoring
    await lab.until_resident([path])
    await lab.until_idle([path])
    assert await look(lab, [path]) == [CLEAN]


async def test_fifty_go_in_one_request_and_no_more_than_the_server_takes(lab: Lab) -> None:
    paths = await lab.released(*(b"%d" % number for number in range(53)))
    assert (await lab.hsm.restore(paths)).errno == errno.E2BIG
    assert await idle(lab, paths)
    assert (await lab.hsm.restore(paths[:50])).errno == 0
    await lab.until_resident(paths[:50])
    assert await look(lab, paths) == [CLEAN] * 50 + [RELEASED] * 3


async def test_a_vanished_file_keeps_a_request_from_being_sent(lab: Lab) -> None:
    first, last = await lab.released(b"first", b"last")
    assert (await lab.hsm.restore([first, lab.path(b"gone"), last])).errno == errno.ENOENT
    assert await idle(lab, [first, last])
    assert await look(lab, [first, last]) == [RELEASED, RELEASED]


@pytest.mark.parametrize("kind", ["lost", "dirty"])
async def test_a_refused_file_cuts_a_request_in_two(lab: Lab, kind: str) -> None:
    first, last = await lab.released(b"first", b"last")
    if kind == "lost":
        (bad,) = await lab.released(b"bad")
        await lab.lose(bad)
    else:
        (bad,) = await lab.dirty(b"bad")
    assert (await lab.hsm.restore([first, bad, last])).errno == errno.EPERM
    await lab.until_resident([first])
    assert await idle(lab, [bad, last])
    assert await look(lab, [first, bad, last]) == [CLEAN, LOST if kind == "lost" else DIRTY, RELEASED]


async def test_there_is_no_harm_in_restoring_what_is_resident(lab: Lab) -> None:
    (clean,), (plain,), (cold,) = await lab.archived(b"clean"), await lab.plain(b"plain"), await lab.released(b"cold")
    assert (await lab.hsm.restore([clean, plain, cold])).errno == 0
    await lab.until_resident([cold])
    assert await look(lab, [clean, plain, cold]) == [CLEAN, PLAIN, CLEAN]


async def test_a_symlink_is_not_restored(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    link = await lab.symlink(path, b"link")
    assert (await lab.hsm.restore([link])).errno != 0
    assert await idle(lab, [path])
    assert await look(lab, [path]) == [RELEASED]


async def test_a_cancelled_file_can_be_restored_again(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    assert (await lab.hsm.cancel([path])).errno == 0, "nothing to cancel"
    assert (await lab.hsm.restore([path])).errno == 0
    assert (await lab.hsm.cancel([path])).errno == 0
    await lab.until_idle([path])
    assert await look(lab, [path]) in ([RELEASED], [CLEAN])
    assert (await lab.hsm.restore([path])).errno == 0
    await lab.until_resident([path])


# -- releasing and pinning --------------------------------------------------------------------------------------------


async def test_releasing_what_may_be_released(lab: Lab) -> None:
    paths = await lab.archived(b"a", b"b")
    assert (await lab.hsm.release(paths[:1])).errno == 0
    assert await look(lab, paths) == [RELEASED, CLEAN]
    assert (await lab.hsm.release(paths)).errno == 0, "already released is no refusal"
    assert await look(lab, paths) == [RELEASED, RELEASED]


@pytest.mark.parametrize("kind", ["dirty", "plain", "pinned", "lost"])
async def test_a_refusal_ends_a_release_in_the_middle(lab: Lab, kind: str) -> None:
    first, last = await lab.archived(b"first", b"last")
    if kind == "dirty":
        (bad,) = await lab.dirty(b"bad")
    elif kind == "plain":
        (bad,) = await lab.plain(b"bad")
    else:
        (bad,) = await lab.archived(b"bad")
        if kind == "lost":
            await lab.lose(bad)
        else:
            assert await lab.hsm.pin([bad], on=True) == [None]
    (before,) = await look(lab, [bad])
    assert (await lab.hsm.release([first, bad, last])).errno == errno.EPERM
    assert await look(lab, [first, bad, last]) == [RELEASED, before, CLEAN]


async def test_a_vanished_file_keeps_a_release_from_beginning(lab: Lab) -> None:
    (path,) = await lab.archived(b"a")
    assert (await lab.hsm.release([path, lab.path(b"gone")])).errno == errno.ENOENT
    assert await look(lab, [path]) == [CLEAN]


async def test_a_pin_holds_until_it_is_taken_away(lab: Lab) -> None:
    (path,) = await lab.archived(b"a")
    assert await lab.hsm.pin([path], on=True) == [None]
    assert await lab.hsm.pin([path], on=True) == [None]
    assert (await lab.hsm.release([path])).errno == errno.EPERM
    assert await look(lab, [path]) == [PINNED]
    assert await lab.hsm.pin([path], on=False) == [None]
    assert (await lab.hsm.release([path])).errno == 0
    assert await look(lab, [path]) == [RELEASED]


async def test_pins_go_on_behind_a_missing_file(lab: Lab) -> None:
    first, last = await lab.plain(b"first", b"last")
    gone = lab.path(b"gone")
    answers = await lab.hsm.pin([first, gone, last], on=True)
    assert [answer and answer.errno for answer in answers] == [None, errno.ENOENT, None]
    assert await look(lab, [first, last]) == [Flags.NORELEASE, Flags.NORELEASE]
    assert await lab.hsm.pin([first, last], on=False) == [None, None]
    assert await look(lab, [first, last]) == [PLAIN, PLAIN]


# -- the file system --------------------------------------------------------------------------------------------------


async def test_space_is_told_in_total_and_by_ost(lab: Lab) -> None:
    space = await lab.hsm.space(lab.mount)
    assert not isinstance(space, Trouble)
    assert 0 < space.free <= space.total
    assert space.osts
    assert len({ost.name for ost in space.osts}) == len(space.osts)
    assert all(0 <= ost.free <= ost.total for ost in space.osts)
    assert space.fullest in space.osts


async def test_space_elsewhere_is_a_trouble(lab: Lab) -> None:
    space = await lab.hsm.space(lab.foreign)
    assert isinstance(space, Trouble)
    assert space.errno != 0


async def test_the_version_is_one_of_lustre(lab: Lab) -> None:
    version = await lab.hsm.version()
    assert not isinstance(version, Trouble)
    assert version >= (2, 10)


async def test_no_call_was_abandoned(lab: Lab) -> None:
    await lab.hsm.states([lab.path(b"gone")])
    assert lab.hsm.abandoned == 0
