"""Whatever happens to the processes, each file's answer is the truth of that file."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre.child import Children
from fsxwarm.lustre.lfs import LfsHsm
from fsxwarm.lustre.replies import Output
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Flags
from lfs_words import absolute_paths, action_line, actions, errnos, said, state_line, states


class Scripted(Children):
    """Prints what lfs would, without a process; `cuts` says at which byte the first calls are killed, if at all."""

    def __init__(self, world: Mapping[bytes, object], cuts: Sequence[int | None], *, goes_on: bool) -> None:
        super().__init__("lfs", {})
        self.world = world
        self.goes_on = goes_on
        self.cuts = iter(cuts)
        self.calls = 0

    async def run(self, command: str, arguments: Sequence[bytes], *, spare: bool = False) -> Output:
        del spare
        self.calls += 1
        asked = {path: self.world[path] for path in arguments if path in self.world}
        output = self.answer(command, asked)
        cut = next(self.cuts, None)
        return output if cut is None else Output(-9, output.stdout[:cut], output.stderr[:cut])

    def answer(self, command: str, asked: Mapping[bytes, object]) -> Output:
        bad = {path: truth for path, truth in asked.items() if isinstance(truth, int) and not isinstance(truth, Flags)}
        status = next(iter(bad.values()), 0)
        if command == "find":
            found = b"".join(path + b"\0" for path, truth in asked.items() if isinstance(truth, Flags) and truth & 4)
            lines = (b"lfs: failed for '%s': %s\n" % (path, os.strerror(code).encode()) for path, code in bad.items())
            return Output(status, found, b"".join(lines))
        if command == "path2fid":
            lines = (
                b"lfs path2fid: cannot get fid for '%s': %s\n" % (p, os.strerror(c).encode()) for p, c in bad.items()
            )
            return Output(status, b"", b"".join(lines))
        if command == "hsm_state":
            return said(asked, state_line, b"state", goes_on=self.goes_on)
        return said(asked, action_line, b"action", goes_on=self.goes_on)


def plain(answers: Sequence[object]) -> list[object]:
    return [answer.errno if isinstance(answer, Trouble) else answer for answer in answers]


cuts = st.lists(st.none() | st.integers(0, 300), max_size=2)
worlds = st.dictionaries(absolute_paths, states | errnos, min_size=2, max_size=12)


def soon_done(calls: int, world: Mapping[bytes, object], killed: Sequence[int | None]) -> bool:
    return calls <= 4 * len(world) + 4 * len(killed) + 4


@given(worlds, cuts, st.booleans())
def test_states(world: dict[bytes, object], killed: list[int | None], goes_on: bool) -> None:  # noqa: FBT001 - drawn
    children = Scripted(world, killed, goes_on=goes_on)
    answers = asyncio.run(LfsHsm(children).states(list(world)))
    assert [path for path, answer in zip(world, answers, strict=True) if isinstance(answer, Trouble)] == [
        path for path, truth in world.items() if not isinstance(truth, Flags)
    ]
    assert plain(answers) == list(world.values())
    assert soon_done(children.calls, world, killed)


@given(st.dictionaries(absolute_paths, actions | errnos, max_size=8), st.booleans())
def test_actions(world: dict[bytes, object], goes_on: bool) -> None:  # noqa: FBT001 - drawn
    children = Scripted(world, [], goes_on=goes_on)
    assert plain(asyncio.run(LfsHsm(children).actions(list(world)))) == list(world.values())
    assert soon_done(children.calls, world, [])


@given(worlds)
def test_released(world: dict[bytes, object]) -> None:
    children = Scripted(world, [], goes_on=False)
    truth = [bool(truth & 4) if isinstance(truth, Flags) else truth for truth in world.values()]
    assert plain(asyncio.run(LfsHsm(children).released(list(world)))) == truth
    assert soon_done(children.calls, world, [])
