"""The simulated `lfs` prints what a real Lustre 2.15.8 printed, byte for byte, in the same condition of the files."""

from __future__ import annotations

from typing import Final

import pytest

from fsxwarm.lustre.replies import Output, parse_actions, parse_states
from fsxwarm.model.entry import Trouble
from fsxwarm.model.hsm import Action, Flags
from golden.cases import Case, load
from golden.conditions import of
from golden.lustre import BLOCKED, Lustre

COMMANDS: Final = {
    "hsm_state",
    "hsm_action",
    "hsm_restore",
    "hsm_release",
    "hsm_cancel",
    "hsm_set",
    "find",
    "df",
    "path2fid",
    "--version",
    "hsm_archive",
    "getname",
}
CALLS: Final = [case for case in load() if case.command in COMMANDS]
LOOKS: Final = [case for case in CALLS if case.command in ("hsm_state", "hsm_action")]


def first_line(text: bytes) -> bytes:
    return text.partition(b"\n")[0] + b"\n"


def by_id(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", CALLS, ids=by_id)
def test_simulated_lfs_answers_as_the_real_one(case: Case) -> None:
    outcome = Lustre(of(case.id)).run(case.argv, case.user)
    if case.timed_out:
        assert outcome is BLOCKED
        return
    assert outcome is not BLOCKED
    stderr = first_line(outcome.stderr) if case.usage_cut else outcome.stderr
    assert (outcome.stdout, stderr, outcome.exit) == (case.stdout, case.stderr, case.exit)


@pytest.mark.parametrize("case", LOOKS, ids=by_id)
def test_the_parser_reads_what_lfs_printed_as_the_servers_know_it(case: Case) -> None:
    """What the parser makes of the real output is what the simulated servers hold, or a trouble, or unknown."""
    assert case.exit is not None
    lustre = Lustre(of(case.id))
    paths = list(dict.fromkeys(case.argv[2:]))
    output = Output(case.exit, case.stdout, case.stderr)
    parse = parse_states if case.command == "hsm_state" else parse_actions
    known: dict[bytes, Flags | Action | Trouble] = dict(parse(paths, output).known)  # type: ignore[arg-type]
    if case.exit == 0 and len(paths) == len(case.argv) - 2:
        assert set(known) == set(paths)
    for path, answer in known.items():
        if isinstance(answer, Trouble):
            assert answer.errno == case.exit
        else:
            assert answer == lustre.truth(path, case.command)


def test_all_recorded_calls_of_the_commands_are_here() -> None:
    assert len(CALLS) == 366
