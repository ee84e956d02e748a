"""`fsxwarm preload` as a user runs it, on a simulated FSx."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.machine import Site

LOST = 0x4D


def _report(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_released_files_become_resident(site: Site) -> None:
    done = site.fsxwarm("preload", site.data)
    assert done.status == 0
    assert "restored" in done.out
    assert site.fsxwarm("status", site.data, "--check").status == 0
    assert not any(site.released(path) for path in site.files)


def test_a_warm_tree_is_asked_for_nothing(site: Site) -> None:
    site.restore(*site.files)
    document = site.fsxwarm("preload", site.data, "--json").json
    assert (document["exit"], document["requests"], document["outcomes"]["resident"]["files"]) == (0, 0, 12)


def test_json_is_one_object_and_nothing_else(site: Site) -> None:
    done = site.fsxwarm("preload", site.data, "--json")
    document = done.json
    assert (done.status, done.err) == (0, "")
    assert document["schema"] == "fsxwarm.preload/1"
    assert document["outcomes"]["restored"] == {"files": 12, "bytes": 1_200_000}
    assert document["found"] == {"files": 12, "bytes": 1_200_000}
    assert document["requests"] >= 1
    assert document["scan_complete"]
    assert document["rates"]["files_per_second"] > 0


def test_progress_as_json_lines_goes_beside_it(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    done = site.fsxwarm("preload", site.data, "--json", "--progress", "json", "--deadline", "3s")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert done.json["exit"] == 4
    assert events
    assert all(event["found"]["files"] == 12 for event in events if event["event"] == "progress")


def test_failures_are_told_reported_and_tried_again(site: Site, tmp_path: Path) -> None:
    bad = site.files[3]
    report = tmp_path / "report.jsonl"
    site.fsx.control("fail", paths=[str(bad)], fault="object missing")
    done = site.fsxwarm("preload", site.data, "--attempts", "1", "--report", report)
    assert done.status == 3
    assert "1 file failed: asked for and not restored" in done.out
    assert str(bad) in done.out
    assert f"fsxwarm preload --retry-failed {report}" in done.out
    header, line, summary = _report(report)
    assert header["arguments"][0] == "preload"
    assert (line["path"], line["reason"], line["in_flight"]) == (str(bad), "restore_failed", False)
    assert summary["summary"]["exit"] == 3
    site.fsx.control("mend")
    again = site.fsxwarm("preload", "--retry-failed", report, "--report", report, "--json")
    assert again.status == 0
    assert again.json["outcomes"]["restored"]["files"] == 1
    assert not site.released(bad)
    assert len(_report(report)) == 2


def test_a_report_that_finds_no_room_on_its_disk_is_absent_and_the_run_goes_on(site: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    for path in site.files:
        site.fsx.control("flags", paths=[str(path)], flags=LOST)
    command = [sys.executable, "-m", "fsxwarm", "preload", str(site.data), str(site.fsx.mount / "climate")]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *command, "--report", str(report)],
        env=site.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert len([line for line in done.stderr.splitlines() if "no report" in line]) == 1
    assert list(tmp_path.glob("*report*")) == []
    assert "12 files blocked" in done.stdout
    assert site.fsxwarm("status", site.fsx.mount / "climate", "--check").status == 0


@pytest.mark.parametrize("shard", [[], ["--shard", "1/2"]], ids=["whole", "shard"])
def test_a_report_does_not_go_to_standard_output(site: Site, tmp_path: Path, shard: list[str]) -> None:
    done = site.fsxwarm("preload", site.data, "--report", "-", *shard)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "standard output" in done.err
    output = tmp_path / "output"
    command = [sys.executable, "-m", "fsxwarm", "preload", site.data, "--report"]
    for name in ("/dev/stdout", output):
        with output.open("w") as stream:
            ended = subprocess.run(
                [*command, name], env=site.environ, stdout=stream, stderr=subprocess.PIPE, check=False, timeout=60
            )
            assert (ended.returncode, ended.stderr.count(b"\n")) == (2, 1)
            assert os.path.samestat(output.stat(), os.fstat(stream.fileno()))
    piped = site.fsxwarm("preload", site.data, "--report", "/dev/stdout", *shard)
    assert (piped.status, piped.out, piped.err.count("\n")) == (2, "", 1)
    assert "that is where this command's own output goes" in piped.err
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "Too many levels of symbolic links" in site.fsxwarm("preload", site.data, "--report", loop).err
    assert list(tmp_path.glob("-*")) == []


def test_an_unfinished_report_is_taken_as_far_as_it_goes(site: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    lines = [{"schema": "fsxwarm.report/1"}, {"path": str(site.files[0]), "outcome": "failed"}]
    report.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = site.fsxwarm("preload", "--retry-failed", report, "--json")
    assert "unfinished" in done.err
    assert (done.status, done.json["outcomes"]["restored"]["files"]) == (0, 1)


def test_a_list_gives_the_order_and_missing_entries_are_counted(site: Site) -> None:
    wanted = site.files[:2]
    names = b"\0".join(os.fsencode(path) for path in (*wanted, site.data / "nothing"))
    done = site.fsxwarm("preload", "--files-from", "-", "-0", stdin=names)
    assert done.status == 3
    assert "1 list entry does not exist" in done.out
    assert not any(site.released(path) for path in wanted)
    assert site.released(site.files[2])


def test_filters_and_a_fixed_window(site: Site) -> None:
    name = site.files[0].name
    document = site.fsxwarm(
        "preload", site.data, "--include", name, "--window", "1", "--order", "largest", "--json"
    ).json
    assert document["outcomes"]["restored"]["files"] == 1
    assert document["window"]["size"] == len(document["window"]["targets"])


def test_a_dry_run_asks_for_nothing_and_tells_how_long(site: Site) -> None:
    before = site.fsx.control("counters").get("restore calls", 0)
    document = site.fsxwarm("preload", site.data, "--dry-run", "--rate", "100KB/s", "--json").json
    assert document["released"] == {"files": 12, "bytes": 1_200_000}
    assert (document["seconds"], document["rate_from"], document["room"][0]["fits"]) == (12.0, "given", True)
    assert site.fsx.control("counters").get("restore calls", 0) == before
    assert "no rate is known yet" in site.fsxwarm("preload", site.data, "--dry-run").out


def test_a_dry_run_knows_the_rate_of_earlier_runs(site: Site) -> None:
    assert site.fsxwarm("preload", site.fsx.mount / "climate", site.fsx.mount / "genomes").status == 0
    done = site.fsxwarm("preload", site.data, "--dry-run")
    assert "at what earlier runs here reached" in done.out


def test_what_does_not_fit_is_status_6(site: Site) -> None:
    for extra in ((), ("--dry-run",)):
        done = site.fsxwarm("preload", site.data, "--reserve", "100%", *extra)
        assert done.status == 6
        assert "not enough room" in done.out
    assert site.fsxwarm("preload", site.data, "--reserve", "100%", "--dry-run", "--fit").status == 0
    fit = site.fsxwarm("preload", site.data, "--reserve", "100%", "--fit", "--json")
    assert (fit.status, fit.json["outcomes"]["blocked"]["files"]) == (3, 12)
    assert all(site.released(path) for path in site.files)


def test_who_gave_fit_is_not_advised_to(site: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    for given, advised in (((), True), (("--fit",), False)):
        done = site.fsxwarm("preload", site.data, "--reserve", "100%", "--report", report, *given)
        assert "warm less" in done.out
        assert ("--fit" in done.out) == advised
        line = json.loads(report.read_text().splitlines()[1])
        assert ("--fit" in line["todo"]) == advised
        assert ("--fit" in site.fsxwarm("report", "merge", report).out) == advised


def test_the_deadline_ends_it_with_status_4(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    done = site.fsxwarm("preload", site.data, "--deadline", "1s")
    assert done.status == 4
    assert "still in flight" in done.out
    assert "to resume: fsxwarm preload" in done.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_stop_asking_and_tell_how_to_resume(
    site: Site, tmp_path: Path, number: signal.Signals
) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    report = tmp_path / "report"
    command = [sys.executable, "-m", "fsxwarm", "preload", site.data, "--progress", "json", "--report", report]
    with subprocess.Popen(command, env=site.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        while json.loads(child.stderr.readline()).get("in_flight", 0) < 12:
            pass
        child.send_signal(number)
        out = child.stdout.read().decode()
        assert child.wait(timeout=60) == 130
    assert "12 files, 1.20 MB, still in flight: FSx goes on with what has reached it" in out
    assert "to resume: fsxwarm preload" in out
    assert _report(report)[-1]["summary"]["exit"] == 130
    assert [one.name for one in tmp_path.iterdir() if "report" in one.name] == ["report"]


def test_under_nohup_a_hang_up_is_ignored(site: Site) -> None:
    site.fsx.control("coordinator", seconds=2.0)
    command = ["nohup", sys.executable, "-m", "fsxwarm", "preload", site.data, "--progress", "json"]
    with subprocess.Popen(command, env=site.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        while b"in_flight" not in child.stderr.readline():
            pass
        child.send_signal(signal.SIGHUP)
        child.communicate(timeout=60)
        assert child.returncode == 0


def test_a_terminal_that_goes_does_not_take_the_report_with_it(site: Site, tmp_path: Path) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    report = tmp_path / "report"
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "fsxwarm", "preload", str(site.data), "--report", str(report)]
        os.execve(sys.executable, command, site.environ)  # noqa: S606 - the child of the fork
    seen = b""
    while b"in flight" not in seen:
        seen += os.read(terminal, 65536)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert _report(report)[-1]["summary"]["exit"] == 130


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--ready", "0.2"], "--background"),
        (["--no-wait"], "--background"),
        (["--no-wait", "--ready", "0.2", "--background"], "only one"),
        (["--rate", "1GB/s"], "--dry-run"),
        (["--dry-run", "--report", "r"], "--report"),
        (["--dry-run", "--background"], "only one"),
        (["--ready", "2", "--background"], "--ready"),
        (["--deadline", "soon"], "--deadline"),
        (["--deadline", "0s"], "--deadline"),
        (["--reserve", "5G"], "--reserve"),
        (["--window", "0"], "--window"),
        (["--report", "/nowhere/at/all"], "cannot write a report"),
        (["--report", "/dev/null"], "cannot write a report"),
        (["--retry-failed", "/nowhere"], "cannot read the report"),
        (["--retry-failed", "/etc/passwd"], "line 1"),
        (["--retry-failed", "r", "--files-from", "l"], "both lists"),
    ],
)
def test_bad_options_are_one_clear_line(site: Site, options: list[str], word: str) -> None:
    done = site.fsxwarm("preload", site.data, *options)
    assert (done.status, done.out) == (2, "")
    assert word in done.err
    assert len(done.err.splitlines()) == 1
    assert all(site.released(path) for path in site.files)


def test_a_terminal_gets_bars_and_is_left_clean(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fsxwarm", "preload", site.data, "--deadline", "3s"]
    variables = site.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        drawn = b""
        with suppress(OSError):  # how a terminal says that its last user has gone
            while data := os.read(ours, 4096):
                drawn += data
        os.close(ours)
        assert child.wait(timeout=60) == 4
    text = drawn.decode()
    assert "bytes" in text
    assert "12 in flight" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor is shown again"


def test_a_log_gets_lines(site: Site) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    done = site.fsxwarm("preload", site.data, "--deadline", "7s")
    assert done.status == 4
    assert "0 of 12 files" in done.err
    assert "\x1b" not in done.err
    assert site.fsxwarm("preload", site.data, "--deadline", "7s", "--progress", "none").err == ""


def test_help_explains_every_option(site: Site) -> None:
    done = site.fsxwarm("preload", "--help", COLUMNS="100")
    assert done.status == 0
    for option in ("--ready", "--retry-failed", "--reserve", "--order", "--background"):
        assert option in done.out


def test_an_error_of_a_look_is_named_with_what_was_said(site: Site, tmp_path: Path) -> None:
    broken = tmp_path / "lfs"
    broken.write_text("#!/bin/sh\n[ $1 = --version ] && echo lfs 2.15.8 && exit\nexit 19\n")
    broken.chmod(0o755)
    arguments = ("preload", "--backend", "lfs", site.data, "--progress", "none")
    done = site.fsxwarm(*arguments, FSXWARM_LFS=str(broken))
    assert done.status == 3
    assert "12 files failed: looking at it gave an error" in done.out
    assert "  ENODEV (No such device): lfs hsm_" in done.out
    document = site.fsxwarm(*arguments, "--json", FSXWARM_LFS=str(broken)).json
    assert [cold["errnos"] for cold in document["cold"]] == [{"ENODEV": 12}]


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("kill -9 $$", "EIO (Input/output error): lfs hsm_restore was killed by signal 9 (Killed)"),
        ("echo 'hsm: No space left on device' >&2; exit 28", "ENOSPC (No space left on device): hsm: No space"),
        ("echo 'Broken pipe' >&2; exit 32", "EPIPE (Broken pipe)\n"),
    ],
)
def test_a_request_that_fails_is_not_told_as_a_look(site: Site, tmp_path: Path, does: str, says: str) -> None:
    broken = tmp_path / "lfs"
    broken.write_text(f'#!/bin/sh\nif [ "$1" = hsm_restore ]; then {does}; else exec {site.fsx.lfs} "$@"; fi\n')
    broken.chmod(0o755)
    arguments = ("preload", "--backend", "lfs", site.files[0], "--attempts", "1", "--progress", "none")
    done = site.fsxwarm(*arguments, FSXWARM_LFS=str(broken))
    assert done.status == 3
    assert "1 file failed: the request for it failed\n" in done.out
    assert f"  {says}" in done.out
