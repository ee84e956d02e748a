"""Everything that the daemon logs is in its vocabulary, and everything in the vocabulary is logged somewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fsxwarm
from fsxwarm.daemon.vocabulary import LINES, Line, table
from fsxwarm.model.job import Phase
from fsxwarm.model.messages import Word
from fsxwarm.model.outcome import Outcome

SOURCE = Path(fsxwarm.__file__).parent
README = Path(__file__).parents[2] / "README.md"
# What the engine makes of its own enumerations: a job's phase, a file's outcome.
MADE = {
    **{f"job_{phase}": "job_{…}" for phase in Phase},
    **{f"file_{outcome}": "file_{…}" for outcome in Outcome},
    **{word.value: "Word" for word in Word},
}


def calls(name: str) -> Iterator[ast.Call]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = node.func
                if (isinstance(called, ast.Name) and called.id == name) or (
                    isinstance(called, ast.Attribute) and called.attr == name
                ):
                    yield node


def texts(node: ast.expr) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def told_by_the_engine() -> set[str]:
    """Literal names among the first arguments of `_tell`."""
    named = {"made_room", "would_make_room"}  # chosen by a variable
    for call in calls("_tell"):
        if call.args and isinstance(call.args[0], ast.Constant | ast.IfExp):
            named |= texts(call.args[0])
    return {name for name in named if name.isidentifier()}


def logged_by_the_daemon() -> set[str]:
    return {
        Line[call.args[0].attr].value
        for name in ("log", "_log")
        for call in calls(name)
        if call.args
        and isinstance(call.args[0], ast.Attribute)
        and isinstance(call.args[0].value, ast.Name)
        and call.args[0].value.id == "Line"
    }


def test_all_that_is_logged_is_in_the_vocabulary() -> None:
    said = told_by_the_engine() | logged_by_the_daemon() | set(MADE)
    assert "job_queued" in said
    assert "ready" in said
    assert {name for name in said if name not in set(Line)} == set()


def test_all_of_the_vocabulary_is_logged() -> None:
    said = told_by_the_engine() | logged_by_the_daemon() | set(MADE)
    assert [line for line in Line if line not in said] == []


def test_each_line_is_described_once() -> None:
    assert list(LINES) == list(Line)


def test_nobody_logs_past_the_vocabulary() -> None:
    found = [path.name for path in SOURCE.rglob("*.py") if path.name != "logs.py" and "structlog" in path.read_text()]
    assert found == []


def test_the_readme_has_the_table() -> None:
    assert table() in README.read_text()
