from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.machine import Done
from daemon.live import Live, living


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living() as running:
        yield running


def environ(live: Live) -> dict[str, str]:
    return {**live.fsx.environ(os.environ), "FSXWARM_CONFIG": str(live.config)}


def fsxwarm(live: Live, *arguments: str | Path, stdin: bytes = b"") -> Done:
    command = [sys.executable, "-m", "fsxwarm", *arguments]
    done = subprocess.run(
        command, env=environ(live), input=stdin, capture_output=True, check=False, timeout=60, cwd=live.mount
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def cold(live: Live, name: str) -> Path:
    return live.file(name, uid=os.geteuid())


def test_preload_asks_the_daemon_and_says_so(live: Live) -> None:
    path = cold(live, "one/file")
    done = fsxwarm(live, "preload", path.parent)
    assert (done.status, "the daemon has it as job" in done.err) == (0, True)
    assert "restored" in done.out
    assert not live.released(path)


def test_preload_works_here_when_told_to(live: Live) -> None:
    path = cold(live, "two/file")
    jobs = len(fsxwarm(live, "jobs", "list", "--all", "--json").json["jobs"])
    assert fsxwarm(live, "preload", "--local", path).status == 0
    assert len(fsxwarm(live, "jobs", "list", "--all", "--json").json["jobs"]) == jobs
    assert not live.released(path)


def test_lists_and_relative_names_go_along(live: Live) -> None:
    path = cold(live, "three/file")
    assert fsxwarm(live, "preload", "three/file").status == 0
    assert fsxwarm(live, "preload", "--files-from", "-", stdin=b"three/file\nthree/missing\n").status == 3
    assert not live.released(path)


@pytest.mark.parametrize("option", [("--window", "5"), ("--backend", "lfs"), ("--attempts", "1"), ("--reserve", "5%")])
def test_the_daemons_own_business_is_refused(live: Live, option: tuple[str, str]) -> None:
    done = fsxwarm(live, "preload", live.mount, *option)
    assert done.status == 2
    assert option[0] in done.err


@pytest.mark.parametrize(
    "options",
    [("--files-from", "-", "--retry-failed", "r"), ("--rate", "1GB/s"), ("--no-wait", "--ready", "0.2"), ("-0",)],
)
def test_what_does_not_go_together_is_refused_here_too(live: Live, options: tuple[str, ...]) -> None:
    done = fsxwarm(live, "preload", live.mount, *options)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "the daemon has it" not in done.err


def test_the_exit_status_is_that_of_the_work(live: Live) -> None:
    assert fsxwarm(live, "preload", live.mount / "nowhere").status == 2
    assert fsxwarm(live, "preload", "/etc").status == 5
    assert fsxwarm(live, "preload", "--daemon", "--local", live.mount).status == 2


def test_a_report_is_written_here(live: Live, tmp_path: Path) -> None:
    path = cold(live, "four/file")
    report = tmp_path / "report.jsonl"
    done = fsxwarm(live, "preload", path, "--files-from", "-", "--report", report, stdin=b"four/missing\n")
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert done.status == 3
    assert lines[0]["schema"] == "fsxwarm.report/1"
    assert [line["path"] for line in lines[1:-1]] == [str(path.parent / "missing")]
    assert lines[-1]["summary"]["exit"] == 3


def test_an_unfinished_report_is_said_to_be_one_here_too(live: Live, tmp_path: Path) -> None:
    path = cold(live, "retried/file")
    report = tmp_path / "report.jsonl"
    lines = [{"schema": "fsxwarm.report/1"}, {"path": str(path), "outcome": "failed"}]
    report.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = fsxwarm(live, "preload", "--retry-failed", report)
    assert (done.status, f"{report} is unfinished" in done.err) == (0, True)
    assert not live.released(path)
    report.write_text(report.read_text() + '{"summary": {"exit": 3}}\n')
    assert "unfinished" not in fsxwarm(live, "preload", "--retry-failed", report).err


@pytest.mark.parametrize("early", [["--no-wait"], ["--background"], ["--ready", "0.5"]], ids=" ".join)
def test_a_report_is_refused_where_nobody_is_there_to_write_it(live: Live, tmp_path: Path, early: list[str]) -> None:
    report = tmp_path / "report.jsonl"
    done = fsxwarm(live, "preload", live.mount, "--report", report, *early)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "fsxwarm jobs wait JOB --report FILE" in done.err
    assert not report.exists()


def test_a_report_is_written_of_a_job_that_is_waited_for(live: Live, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    arguments = ("preload", "--no-wait", "--json", cold(live, "later/file"), "--files-from", "-")
    job = fsxwarm(live, *arguments, stdin=b"later/missing\n").json["job"]["id"]
    assert fsxwarm(live, "jobs", "wait", job, "--report", report, "--ready").status == 2
    assert not report.exists()
    assert fsxwarm(live, "jobs", "wait", job, "--report", report).status == 3
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["path"] for line in lines[1:-1]] == [str(live.mount / "later" / "missing")]
    assert lines[-1]["summary"]["exit"] == 3


def test_where_a_report_cannot_be_it_is_said_before_the_job_begins(live: Live, tmp_path: Path) -> None:
    done = fsxwarm(live, "preload", live.mount, "--report", tmp_path / "nowhere" / "report.jsonl")
    assert (done.status, "cannot write a report" in done.err, "as job" in done.err) == (2, True, False)
    releasing = fsxwarm(live, "release", "--yes", "--json", cold(live, "given-back/file")).json["job"]["id"]
    assert "only a preload" in fsxwarm(live, "jobs", "wait", releasing, "--report", tmp_path / "report.jsonl").err


def test_a_name_that_is_too_long_fails_by_itself(live: Live, tmp_path: Path) -> None:
    path, report = cold(live, "long/file"), tmp_path / "report.jsonl"
    long = str(live.mount / "/".join(["x" * 200] * 25))
    listed = f"{long}\n{path}\n".encode()
    done = fsxwarm(live, "preload", "--files-from", "-", "--report", report, stdin=listed)
    assert (done.status, "openapi" in done.err) == (3, False)
    assert not live.released(path)
    told = [json.loads(line) for line in report.read_text().splitlines()][1:-1]
    assert [(line["path"], "too long" in json.dumps(line)) for line in told] == [(long, True)]
    alone = fsxwarm(live, "preload", long)
    assert (alone.status, "openapi" in alone.err) == (2, False)


@pytest.mark.parametrize("command", [("show",), ("wait",), ("cancel",), ("priority",)], ids=str)
@pytest.mark.parametrize("job", [b"\xff", b"", b"../1", "\u0661".encode()], ids=repr)
def test_a_job_is_a_number(live: Live, command: tuple[str], job: bytes) -> None:
    done = fsxwarm(live, "jobs", *command, os.fsdecode(job), *(["5"] if command == ("priority",) else []))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is no job: write a number" in done.err


def test_jobs_tell_with_what_status_they_ended(live: Live) -> None:
    listed = ("preload", "--json", "--files-from", "-", cold(live, "status/file"))
    job = fsxwarm(live, *listed, stdin=b"status/missing\n").json["job"]["id"]
    rows = [line for line in fsxwarm(live, "jobs", "--all").out.splitlines() if line.split()[0] == job]
    assert ["  exit 3" in row for row in rows] == [True]


def test_a_job_under_way_is_hurried(live: Live) -> None:
    path = cold(live, "hurried/file")
    live.fsx.control("coordinator", seconds=600.0)
    try:
        job = fsxwarm(live, "preload", "--no-wait", "--json", path).json["job"]["id"]
        assert "priority 60" in fsxwarm(live, "jobs", "priority", job, "60").out
    finally:
        live.fsx.control("coordinator", seconds=0.0)
    assert fsxwarm(live, "jobs", "wait", job).status == 0


def test_json_is_one_object(live: Live) -> None:
    done = fsxwarm(live, "preload", "--json", cold(live, "five/file"))
    assert (done.json["schema"], done.json["exit"], done.json["job"]["phase"]) == ("fsxwarm.job/1", 0, "done")


def test_jobs_are_listed_shown_waited_for_hurried_and_cancelled(live: Live) -> None:
    job = fsxwarm(live, "preload", "--no-wait", "--json", cold(live, "six/file")).json["job"]["id"]
    assert fsxwarm(live, "jobs", "wait", job).status == 0
    shown = fsxwarm(live, "jobs", "show", job)
    assert f"job {job} done" in shown.out
    assert job in fsxwarm(live, "jobs", "list", "--all").out
    hurried = fsxwarm(live, "jobs", "priority", job, "60")
    assert (hurried.status, f"job {job} has ended: its priority no longer matters" in hurried.err) == (5, True)
    assert fsxwarm(live, "jobs", "cancel", job).status == 0
    assert fsxwarm(live, "jobs", "show", "999").status == 2
    assert fsxwarm(live, "jobs").status == 0


def test_what_only_the_command_can_do_is_done_here_and_said(live: Live) -> None:
    path = cold(live, "here/file")
    done = fsxwarm(live, "preload", "--dry-run", path)
    assert (done.status, "working without the daemon, which does not take --dry-run" in done.err) == (0, True)
    assert fsxwarm(live, "preload", "--daemon", "--dry-run", path).status == 2
    assert "without" not in fsxwarm(live, "preload", "--local", "--dry-run", path).err
    assert live.released(path)


def test_jobs_are_told_apart_on_the_narrowest_terminal(live: Live) -> None:
    path = cold(live, "told-apart/a-file-with-a-rather-long-name-that-does-not-fit-into-a-line-of-a-narrow-terminal")
    told = fsxwarm(live, "preload", "--no-wait", path).err
    number = told.split()[-1]
    for columns in ("60", "200"):
        command = [sys.executable, "-m", "fsxwarm", "jobs", "--all"]
        terminal = ["script", "-qec", shlex.join(command), "/dev/null"]
        done = subprocess.run(
            terminal, env={**environ(live), "COLUMNS": columns, "TERM": "dumb"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stdout.split("\n")[2].split()[0] == number
    shown = fsxwarm(live, "jobs", "show", number).out
    assert f"preload {path}" in shown
    assert "asked for by" in shown
    assert fsxwarm(live, "jobs", "wait", number).status == 0
    again = fsxwarm(live, "jobs", "cancel", number)
    assert (again.status, "had ended before" in again.err) == (0, True)


def test_release_goes_through_it_too(live: Live) -> None:
    path = cold(live, "seven/file")
    assert fsxwarm(live, "preload", path).status == 0
    done = fsxwarm(live, "release", "--yes", path)
    assert (done.status, "the daemon has it as job" in done.err) == (0, True)
    assert live.released(path)


def test_what_it_could_not_look_at_or_left_alone_is_named(live: Live) -> None:
    path, link = cold(live, "named/file"), live.mount / "named" / "link"
    link.symlink_to(path)
    listed = b"named/link\nnamed/missing\nnamed/file\n"
    for command in (["preload"], ["release", "--yes"]):
        done = fsxwarm(live, *command, "--files-from", "-", stdin=listed)
        assert done.status == 3
        assert "2 paths could not be looked at:" in done.out
        assert "; 2 paths unreadable; exit 3\n" in done.out
        assert f"{link}: a symlink, which is not followed" in done.out
        assert f"{link.parent / 'missing'}: No such file or directory" in done.out
        number = done.err.split("as job ")[1].split()[0]
        assert f"{link}: could not be looked at: a symlink" in fsxwarm(live, "jobs", "show", number).out
        assert f"{link}: a symlink" in fsxwarm(live, "jobs", "wait", number).out
    assert fsxwarm(live, "preload", path).status == 0
    assert fsxwarm(live, "pin", path).status == 0
    done = fsxwarm(live, "release", "--yes", path)
    assert f"1 file: pinned\n  {path}\n" in done.out
    number = done.err.split("as job ")[1].split()[0]
    assert f"{path}: left alone, pinned" in fsxwarm(live, "jobs", "show", number).out


def test_status_goes_through_it_too(live: Live) -> None:
    path = cold(live, "eight/file")
    done = fsxwarm(live, "status", path.parent)
    assert "asked the daemon" in done.err
    assert done.status == 0
    assert fsxwarm(live, "status", "--check", path.parent).status == 3
    both = [fsxwarm(live, "status", "--json", *where, path.parent).json for where in ([], ["--local"])]
    assert both[0]["released"] == both[1]["released"] == {"files": 1, "bytes": 65536}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--flags", "nine"],
        ["--by-folder", "1", "."],
        ["--by-folder", "0", "--flags", "--files-from", "-"],
        ["--files-from", "-", "--check"],
        ["--check", "nine", "ten"],
        ["--include", "*/a*", "nine"],
        ["--exclude", "*", "--check", "nine"],
        ["--braces", "{nine,ten}"],
        ["gone"],
    ],
    ids=" ".join,
)
def test_status_has_the_same_options_either_way(live: Live, arguments: list[str]) -> None:
    for name in ("nine/a1", "nine/b", "ten/c"):
        if not (live.mount / name).exists():
            cold(live, name)
    listed = b"nine/a1\nnine/missing\n/etc/hostname\n"
    asked = fsxwarm(live, "status", "--daemon", "--json", *arguments, stdin=listed)
    local = fsxwarm(live, "status", "--local", "--json", *arguments, stdin=listed)
    assert asked.status == local.status
    without_backend = {name: value for name, value in local.json.items() if name != "backend"}
    assert {name: value for name, value in asked.json.items() if name != "backend"} == without_backend
    shown = [fsxwarm(live, "status", where, *arguments, stdin=listed).out for where in ("--daemon", "--local")]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("where", ["--daemon", "--local"])
@pytest.mark.parametrize("command", [["preload", "--report", "-r"], ["status"], ["release", "--yes"]], ids=" ".join)
def test_a_listed_link_is_told_and_not_followed(live: Live, command: list[str], where: str) -> None:
    path = cold(live, "linked/file")
    link = path.parent / "link"
    if not link.is_symlink():
        link.symlink_to(path)
    report = live.folder / "links.jsonl"
    arguments = [str(report) if argument == "-r" else argument for argument in command]
    done = fsxwarm(live, *arguments, where, "--files-from", "-", stdin=os.fsencode(link))
    assert done.status == 3
    assert "1 path could not be" in done.out
    assert live.released(path)
    if str(report) in arguments:
        line = next(line for line in map(json.loads, report.read_text().splitlines()) if "outcome" in line)
        assert (line["path"], line["outcome"], "symlink" in line["what"]) == (str(link), "unreadable", True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_let_go_and_say_how_to_come_back(number: signal.Signals) -> None:
    with living("--bandwidth", "1KB") as live:
        report = live.folder / "report.jsonl"
        command = [sys.executable, "-m", "fsxwarm", "preload", str(live.mount), "--report", str(report)]
        with subprocess.Popen(command, env=environ(live), stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            lines = [process.stderr.readline()]
            process.send_signal(number)
            lines += process.stderr.readlines()
            assert process.wait(30) == 130
        assert any("`fsxwarm jobs wait 1` waits again" in line for line in lines)
        assert any("`fsxwarm jobs wait 1 --report FILE` writes it" in line for line in lines)
        assert len(fsxwarm(live, "jobs", "list", "--json").json["jobs"]) == 1


def test_without_a_daemon_it_can_be_insisted_on(live: Live, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fsxwarm", "preload", "--daemon", str(live.mount)]
    nowhere = {**environ(live), "FSXWARM_DAEMON_SOCKET": str(tmp_path / "nowhere")}
    done = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 5
    assert "no daemon" in done.stderr


def test_following_survives_a_restart(live: Live) -> None:
    """What follows a job waits while the daemon is started anew."""
    del live
    with living("--bandwidth", "600KB") as one:
        from daemon.live import end, start  # noqa: PLC0415 - needed here alone

        command = [sys.executable, "-m", "fsxwarm", "preload", str(one.mount)]
        with subprocess.Popen(
            command, env=environ(one), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as following:
            assert following.stderr is not None
            assert b"the daemon has it" in following.stderr.readline()
            end(one.process)
            told = iter(following.stderr)
            assert b"waiting up to 2m for it to come back" in next(line for line in told if b"waiting" in line)
            one.systemd.forget()
            one.process = start(one.folder, one.fsx, one.systemd, {})
            one.systemd.wait_for("READY=1")
            assert b"fsxwarm: the daemon is back\n" in told
            following.stderr.read()
            assert following.wait(90) == 0


def test_the_daemon_is_not_waited_for_longer_than_one_has_time(live: Live) -> None:
    del live
    with living("--bandwidth", "60KB") as one:
        from daemon.live import end  # noqa: PLC0415 - needed here alone

        job = fsxwarm(one, "preload", "--no-wait", "--json", one.mount).json["job"]["id"]
        command = [sys.executable, "-m", "fsxwarm", "wait", str(one.mount), "--timeout", "3s"]
        with subprocess.Popen(command, env=environ(one), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
            assert waiting.stderr is not None
            assert f"waiting for job {job}".encode() in waiting.stderr.readline()
            end(one.process)
            assert waiting.wait(30) == 4
