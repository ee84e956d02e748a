"""The line that tells how far a command is, on a terminal and in a log."""

from __future__ import annotations

import asyncio
import io
from contextlib import redirect_stderr

from fsxwarm.cli.live import ticking
from fsxwarm.cli.output import complain
from fsxwarm.sim.vloop import run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(where: io.StringIO, in_log: float | None, said: str = "", line: str = "so far") -> str:
    async def work() -> None:
        async with ticking(lambda: line, in_log=in_log):
            await asyncio.sleep(150)
            if said:
                complain(said)

    with redirect_stderr(where):
        run(work())
    return where.getvalue()


def test_a_log_has_a_line_now_and_then() -> None:
    assert shown(io.StringIO(), 60.0) == "fsxwarm: so far\n" * 2
    assert shown(io.StringIO(), None) == ""


def test_a_terminal_has_one_line_that_is_gone_at_the_end() -> None:
    said = shown(Terminal(), 60.0)
    assert "\n" not in said
    assert said.count("so far") > 100
    assert said.endswith("\r\x1b[K")


def test_what_is_said_meanwhile_has_a_line_of_its_own() -> None:
    assert shown(Terminal(), None, "wait").endswith("so far\r\x1b[Kfsxwarm: wait\n\r\x1b[K")
    assert shown(io.StringIO(), None, "wait") == "fsxwarm: wait\n"


def test_a_line_that_is_too_long_for_the_terminal_is_cut_and_stays_one() -> None:
    lines = shown(Terminal(), None, line="x" * 200).split("\r\x1b[K")
    assert set(lines) == {"", "x" * 79}
