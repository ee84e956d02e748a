"""Reports of the daemon's jobs: whole, or said not to be, and with the job's own counts and times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from cli.machine import Done
from daemon.live import Live, living
from fsxwarm.cli.job_report import write_report
from fsxwarm.client import wire
from fsxwarm.client.client import Client
from fsxwarm.errors import Exit


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living() as running:
        yield running


class Forgetful(Client):
    """Talks to a daemon that remembers one file of each job."""

    def failures(self, job: str) -> Iterator[wire.Failure]:
        return islice(super().failures(job), 1)


def fsxwarm(live: Live, *arguments: str | Path, stdin: bytes = b"") -> Done:
    environ = {**live.fsx.environ(os.environ), "FSXWARM_CONFIG": str(live.config)}
    command = [sys.executable, "-m", "fsxwarm", *arguments]
    done = subprocess.run(
        command, env=environ, input=stdin, capture_output=True, check=False, timeout=60, cwd=live.mount
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def lines_of(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in report.read_text().splitlines()]


def test_the_summary_has_the_jobs_own_counts_and_times(live: Live, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    path = live.file("counted/file", uid=os.geteuid())
    job = fsxwarm(live, "preload", path, "--files-from", "-", "--json", stdin=b"counted/missing\n").json["job"]
    assert fsxwarm(live, "jobs", "wait", job["id"], "--report", report).status == 3
    header, line, last = lines_of(report)
    summary = last["summary"]
    assert (header["started"], summary["ended"]) == (job["created"], job["ended"])
    assert (line["outcome"], summary["unlisted"]) == ("missing", 0)
    assert (summary["found"]["files"], summary["outcomes"]["restored"]["files"]) == (1, 1)
    merged = fsxwarm(live, "report", "merge", report, "--json")
    assert (merged.json["found"]["files"], merged.json["outcomes"]["restored"]["files"]) == (1, 1)
    assert "not whole" not in merged.err


def test_files_without_a_line_are_counted_and_told_of(live: Live, tmp_path: Path) -> None:
    report, both = tmp_path / "report.jsonl", tmp_path / "both.jsonl"
    job = fsxwarm(live, "preload", "--files-from", "-", "--json", stdin=b"a\nb\nc\n").json["job"]
    with Forgetful(live.socket) as client:
        assert write_report(client, job, Exit(job["exit"]), report, []) is Exit.INCOMPLETE
    assert (len(lines_of(report)), lines_of(report)[-1]["summary"]["unlisted"]) == (3, 2)
    merged = fsxwarm(live, "report", "merge", report, "--json", "--into", both)
    assert (merged.status, merged.json["unlisted"]) == (3, 2)
    for told in (merged, fsxwarm(live, "preload", "--retry-failed", both), fsxwarm(live, "report", "merge", both)):
        assert "is not whole: 2 more files did not become resident and have no line" in told.err


@pytest.mark.parametrize("where", ["--local", "--daemon"])
def test_a_report_without_failures_has_nothing_to_try_again(live: Live, tmp_path: Path, where: str) -> None:
    report, again = tmp_path / "report.jsonl", tmp_path / "again.jsonl"
    report.write_text('{"schema": "fsxwarm.report/1"}\n{"summary": {"exit": 0}}\n')
    done = fsxwarm(live, "preload", where, "--retry-failed", report, "--report", again, "--json")
    assert (done.status, done.json["exit"]) == (0, 0)
    assert f"{report} names no file to try again" in done.err
    header, last = lines_of(again)
    assert (header["schema"], last["summary"]["exit"]) == ("fsxwarm.report/1", 0)


def test_a_cancelled_job_has_its_files_in_the_report(tmp_path: Path) -> None:
    with living("--bandwidth", "1KB") as slow:
        report = tmp_path / "report.jsonl"
        paths = {str(slow.file(f"given-up/{n}", uid=os.geteuid())) for n in range(3)}
        job = fsxwarm(slow, "preload", "--no-wait", "--json", "given-up").json["job"]["id"]
        while slow.ask(0, "GET", f"/v1/jobs/{job}/wait?timeout=1").json["counters"]["found"]["files"] < len(paths):
            pass
        fsxwarm(slow, "jobs", "cancel", job)
        assert fsxwarm(slow, "jobs", "wait", job, "--report", report).status == 130
        _, *lines, last = lines_of(report)
        listed = {line["path"] for line in lines}
        assert listed <= paths
        assert len(listed) + last["summary"]["unlisted"] == 3
        assert {(line["outcome"], line["reason"]) for line in lines} <= {("cancelled", "interrupted")}
