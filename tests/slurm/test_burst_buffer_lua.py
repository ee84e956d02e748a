"""burst_buffer.lua under plain Lua, with the signatures of each Slurm and an asker on paper."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurm.cluster import lacking
from slurm.site import HOOKS

STAGE = Path(__file__).with_name("burst_buffer_stage.lua")
REQUIRED = {
    "job_process", "pools", "job_teardown", "setup", "data_in", "test_data_in", "real_size", "paths", "pre_run",
    "post_run", "data_out", "test_data_out", "get_status",
}  # fmt: skip
"""What 24.05 and later want to be there."""
BEFORE = ("7", "SCRIPT")
SINCE_23_02 = ("7", "SCRIPT", "1001", "1001", "info")


@dataclass
class Stage:
    """The script, beside an ask.sh that answers line by line from `answers` and notes what it was asked."""

    lua: str
    folder: Path

    def answers(self, *lines: str) -> None:
        """`STATUS TEXT` each; the last is given again and again."""
        (self.folder / "answers").write_text("\n".join(lines) + "\n")

    @property
    def asked(self) -> list[str]:
        noted = self.folder / "asked"
        return noted.read_text().splitlines() if noted.exists() else []

    def call(self, name: str, *arguments: str, version: str = "22.05") -> tuple[list[str], list[str]]:
        """What a function returns, and what it logs."""
        words = [str(self.folder / "script") if word == "SCRIPT" else word for word in arguments]
        done = subprocess.run(
            [self.lua, STAGE, self.folder / "burst_buffer.lua", version, f"slurm_bb_{name}", *words],
            capture_output=True, text=True, check=True, timeout=30, env={"PATH": f"{self.folder}:/usr/bin:/bin"},
        )  # fmt: skip
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        returned = next(line[1:] for line in lines if line[0] == "returned")
        return returned, [line[1] for line in lines if line[0] == "log"]


ASKER = """#!/bin/sh
cd "${0%/*}/.."
echo "$* $(cat)" >> asked
line=$(head -n 1 answers)
[ $(wc -l < answers) -le 1 ] || sed -i 1d answers
echo "${line#* }"
exit ${line%% *}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    lua = shutil.which("lua5.4") or shutil.which("lua5.1") or lacking("lua5.4")
    folder = tmp_path / "it's here"
    (folder / "fsxwarm").mkdir(parents=True)
    shutil.copy(HOOKS / "burst_buffer.lua", folder)
    for name, text in {
        "fsxwarm/ask.sh": ASKER,
        "sleep": "#!/bin/sh\nexit 0\n",
        "scontrol": "#!/bin/sh\necho JobId=7 JobName=UserId=x UserId=alice\\(1001\\) GroupId=a\\(5\\)\n",
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "script").write_text("#FSXWARM preload=/a\n")
    return Stage(lua, folder)


def test_all_that_any_slurm_calls_is_there(stage: Stage) -> None:
    stage.answers("0 none - x")
    defined = (stage.folder / "burst_buffer.lua").read_text()
    assert {name for name in REQUIRED if f"function slurm_bb_{name}(" in defined} == REQUIRED
    for name in ("job_process", "pools", "setup", "real_size", "paths", "pre_run", "post_run", "test_data_out"):
        assert stage.call(name, *SINCE_23_02)[0][0] == "0"
    assert stage.asked == []


@pytest.mark.parametrize("arguments", [BEFORE, SINCE_23_02])
def test_the_job_s_owner_is_asked_for(stage: Stage, arguments: tuple[str, ...]) -> None:
    stage.answers("0 ready 3 all is there")

    assert stage.call("data_in", *arguments) == (["0", ""], ["fsxwarm: job 7: all is there"])
    assert stage.asked == ["begin 7 1001 script 50  #FSXWARM preload=/a"]


def test_it_is_waited_for_as_long_as_it_takes(stage: Stage) -> None:
    stage.answers("0 warming 3 a bit", "2 the daemon cannot be reached", "0 warming 3 more", "0 ready 3 all")

    assert stage.call("data_in", *BEFORE)[0] == ["0", ""]
    assert [line.split(" #")[0] for line in stage.asked] == ["begin 7 1001 script 50 "] + [
        "begin 7 1001 script 50 3"
    ] * 3


@pytest.mark.parametrize("answer", ["0 failed 3 two files: it's gone", "1 line 2, column 10: unknown key"])
@pytest.mark.parametrize("version", ["22.05", "24.05"])
def test_what_cannot_be_had_holds_the_job(stage: Stage, answer: str, version: str) -> None:
    stage.answers(answer)

    returned, _ = stage.call("test_data_in" if version == "24.05" else "data_in", *SINCE_23_02, version=version)
    assert returned == ["-1", "fsxwarm: " + answer.removeprefix("0 failed 3 ").removeprefix("1 ")]


def test_without_a_daemon_the_job_runs_in_the_end(stage: Stage) -> None:
    stage.answers("2 the daemon cannot be reached")

    returned, logged = stage.call("data_in", *BEFORE)
    assert returned == ["0", ""]
    assert logged == ["fsxwarm: job 7: runs as it is: the daemon cannot be reached"]
    assert len(stage.asked) == 61  # two minutes


def test_from_24_05_on_it_is_polled(stage: Stage) -> None:
    stage.answers("0 warming 3 a bit", "0 ready 3 all")

    assert stage.call("data_in", *SINCE_23_02, version="24.05")[0] == ["0", ""]
    assert stage.asked == []
    assert stage.call("test_data_in", *SINCE_23_02, version="24.05")[0] == ["0", "BUSY"]
    assert stage.call("test_data_in", *SINCE_23_02, version="24.05")[0] == ["0", ""]
    assert stage.asked == ["begin 7 1001 script 0  #FSXWARM preload=/a"] * 2


def test_the_end_says_whether_the_job_ran(stage: Stage) -> None:
    stage.answers("0 ended - x")

    assert stage.call("data_out", *BEFORE)[0] == ["0", ""]
    assert stage.call("job_teardown", "7", "SCRIPT", "nil", "1001", "1001")[0] == ["0", ""]
    assert [line.split(" #")[0] for line in stage.asked] == ["end 7 1001 script true", "end 7 1001 script false"]


def test_whatever_is_answered_nothing_breaks(stage: Stage) -> None:
    for answer in ("0 ", "0 rubbish", "1 ", "7 what"):
        stage.answers(answer)
        assert stage.call("job_teardown", "7", "SCRIPT", "nil")[0] == ["0", ""]
        assert stage.call("data_in", *BEFORE)[0][0] in {"0", "-1"}


def test_a_script_that_is_gone_breaks_nothing(stage: Stage) -> None:
    (stage.folder / "script").unlink()
    stage.answers("0 none - x")

    assert stage.call("job_teardown", *BEFORE, "nil")[0] == ["0", ""]
    assert stage.call("data_in", *BEFORE)[0][0] in {"0", "-1"}
