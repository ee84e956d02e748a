"""The command line itself: help, version, and one clear line for each misuse."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fsxwarm.cli.commands import COMMANDS


def _run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "COLUMNS": "100", **variables}
    return subprocess.run(
        [sys.executable, "-m", "fsxwarm", *arguments],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        stdin=subprocess.DEVNULL,
        env=environ,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["status", "release", "pin", "unpin", "doctor"])
def test_each_command_explains_itself(command: str) -> None:
    done = _run(command, "--help")
    assert done.returncode == 0
    assert f"fsxwarm {command}" in done.stdout
    assert "--json" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "command", [[], *([name] for name in COMMANDS), ["jobs", "wait"], ["report", "merge"], ["slurm", "submit"]]
)
def test_help_shows_no_types(command: list[str]) -> None:
    done = _run(*command, "--help", COLUMNS="80")
    assert done.returncode == 0
    assert re.findall(r"<(?:bool|list|str|int|float|path|file|dir)\S*", done.stdout) == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "sim"])
def test_help_is_readable_on_a_narrow_terminal(command: str) -> None:
    """What an option takes is one short word, so that there is room for what it does."""
    lines = _run(command, "--help", COLUMNS="80").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 140
    assert [line for line in lines if "<=" in line or re.search(r"<\w+\|", line)] == []


def test_release_warns_that_open_files_are_released() -> None:
    assert "open" in _run("release", "--help").stdout


def test_the_version_is_printed() -> None:
    done = _run("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "fsxwarm")


def test_without_a_command_the_help_is_shown_and_the_status_is_usage() -> None:
    done = _run()
    assert done.returncode == 2
    assert "Usage: fsxwarm" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["--bogus"], "--bogus"),
        (["status", "--bogus", "/"], "--bogus"),
        (["status"], "name a PATH"),
        (["status", ""], "empty PATH"),
        (["status", "--by-folder", "deep", "/"], "--by-folder"),
        (["status", "--by-folder", "-1", "/"], "--by-folder"),
        (["jobs", "priority", "1", "500"], "'500' is no whole number from 0 to 100"),
        (["preload", "--attempts", "0", "/"], "'0' is no whole number from 1 to 100"),
        (["preload", "--window", "\u0661", "/"], "is no whole number from 1 to 100,000"),
        (["preload", "--tier", "glacial", "/"], "Invalid value for '--tier': 'glacial' is not one of"),
        (["status", "-0", "/"], "--files-from"),
        (["status", "/", "--include", "[a"], "--include: "),
        (["status", "--files-from", "/nowhere/list"], "/nowhere/list"),
        (["status", "/nowhere/at/all"], "/nowhere/at/all"),
        (["status", "--braces", "/{0..99999}{0..99999}"], "more than 1,000,000 names"),
        (["release", "/", "--yes", "--older-than", "5 parsecs"], "'5 parsecs' is no duration"),
        (["release", "/", "--yes", "--until-free", "much"], "'much' is no size"),
        (["release", "/", "--yes", "--until-free", "120%"], "more than everything"),
        (["release", "/"], "add --yes or --dry-run"),
        (["release", "--until-free", "1GB", "--files-from", "-", "--yes"], "leave --files-from out"),
        (["pin"], "name a PATH"),
    ],
)
def test_misuse_is_one_line_and_status_2(arguments: list[str], says: str) -> None:
    done = _run(*arguments)
    assert done.returncode == 2, done
    assert says in done.stderr
    assert done.stderr.startswith("fsxwarm: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--bogus"], "fsxwarm"),
        (["bogus"], "fsxwarm"),
        (["status", "--by-folder"], "fsxwarm status"),
        (["status", "--bogus", "/"], "fsxwarm status"),
        (["preload", "--report"], "fsxwarm preload"),
        (["preload", "/jobs", "wait", "--attempts"], "fsxwarm preload"),
        (["jobs", "wait", "1", "--report"], "fsxwarm jobs wait"),
        (["jobs", "--json", "wait", "1", "--report"], "fsxwarm jobs wait"),
        (["jobs", "bogus"], "fsxwarm jobs"),
        (["jobs", "priority", "1"], "fsxwarm jobs priority"),
        (["jobs", "show", "x"], "fsxwarm jobs show"),
        (["slurm", "submit", "--warm-options"], "fsxwarm slurm submit"),
        (["report", "merge", "--into"], "fsxwarm report merge"),
        (["status", "/", "--include", "[a"], "fsxwarm status"),
        (["wait", "/", "--timeout", "soon"], "fsxwarm wait"),
    ],
)
def test_misuse_is_sent_to_the_help_of_its_command(arguments: list[str], command: str) -> None:
    assert _run(*arguments).stderr.endswith(f"(see `{command} --help`)\n")


def test_a_bad_variable_is_usage_too() -> None:
    done = _run("status", "/", FSXWARM_ATTEMPTS="some")
    assert done.returncode == 2
    assert "FSXWARM_ATTEMPTS" in done.stderr


def test_a_mount_table_that_is_not_there_is_said() -> None:
    done = _run("status", "/", FSXWARM_MOUNTS="/nowhere/mounts")
    assert done.returncode == 2
    assert "cannot read the mount table /nowhere/mounts: No such file or directory" in done.stderr
    assert "FSXWARM_MOUNTS" in done.stderr


@pytest.mark.parametrize("unbuffered", [[], ["-u"]], ids=str)
def test_a_disk_that_is_full_is_told_of_what_was_written(unbuffered: list[str]) -> None:
    command = [sys.executable, *unbuffered, "-m", "fsxwarm", "config", "show"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env={"PATH": "/usr/bin"}
        )
    assert (done.returncode, done.stderr) == (1, "fsxwarm: cannot write to standard output: No space left on device\n")


def test_wait_for_nothing_is_one_line() -> None:
    done = _run("wait")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is nothing to do" in done.stderr


def test_a_path_elsewhere_is_told_what_it_is_on() -> None:
    done = _run("status", "/proc")
    assert done.returncode == 5
    assert done.stderr.startswith("fsxwarm: /proc is not on FSx for Lustre but on proc")
    assert done.stderr.count("\n") == 1


def test_an_unknown_option_value_with_control_bytes_cannot_reach_the_terminal() -> None:
    done = _run("status", "/nowhere/\x1b[31mred\nline")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_json_errors_are_one_object_too() -> None:
    done = _run("status", "--json", "/nowhere")
    assert done.returncode == 2
    assert done.stdout.startswith('{"schema": "fsxwarm.error/1", "exit": 2')


def test_a_reader_that_leaves_is_not_complained_about() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "fsxwarm", "release", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
        assert child.wait(timeout=60) == 1


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_change_no_exit_status(closed: str) -> None:
    script = f'exec "$@" {closed}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "fsxwarm", "status", "/no/such/path"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 2
