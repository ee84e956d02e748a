"""Prometheus' own programs, and a set of measures in which everything has something to tell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fsxwarm.errors import Exit
from fsxwarm.model.entry import Entry
from fsxwarm.model.measures import (
    CallTally,
    LaneMeasure,
    LinkMeasure,
    Measures,
    RoundMeasure,
    RunMeasure,
    ServiceMeasure,
    SpaceMeasure,
    StockMeasure,
)
from fsxwarm.model.messages import Finish, Say, Word
from fsxwarm.model.meter import Meter
from fsxwarm.model.outcome import Outcome, Reason

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "deploy/prometheus/fsxwarm.rules.yml"
ALERTS = ROOT / "deploy/prometheus/fsxwarm.alerts.yml"
ALERT_CASES = Path(__file__).with_name("alerts.test.yml")
DASHBOARD = ROOT / "deploy/grafana/fsxwarm.json"


def program(name: str) -> str:
    """One of the programs of Debian's package prometheus; without it the test is skipped, but never in CI."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing: CI must have Debian's package prometheus")
        pytest.skip(f"{name} is missing: install Debian's package prometheus")
    return found


def promtool(*arguments: str | Path, text: bytes = b"") -> str:
    """Run promtool, which must be content; what it says."""
    done = subprocess.run(
        [program("promtool"), *arguments], input=text, capture_output=True, check=False, timeout=120, cwd=ROOT
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def entry(size: int = 1000, ino: int = 1) -> Entry:
    return Entry(b"/fsx/a", 7, ino, size, 0, 0, 0, 0, 1, 0, 0o100644)


def busy_meter() -> Meter:
    meter = Meter()
    meter.settled(Finish(entry(), Outcome.RESTORED, frozenset({1}), took=3.0))
    meter.settled(Finish(entry(), Outcome.FAILED, frozenset({1}), Reason.RESTORE_FAILED))
    for word in Word:
        meter.said(Say(word))
    meter.asked(50)
    meter.called("states", 0.02)
    meter.failed("states", 2)
    meter.loop_lag.observe(0.002)
    return meter


def everything() -> Measures:
    """Measures of which no part is empty."""
    return Measures(
        "1.2.3",
        busy_meter(),
        abandoned=1,
        restoring={"/fsx": 10},
        lanes=[LaneMeasure("/fsx", 0, 64, 10, 1, 5)],
        spaces=[SpaceMeasure("/fsx", 10, 100, (4, 50))],
        stocks=[
            StockMeasure("/fsx", "/fsx/a", 5.0, {"resident": 1, "released": 2}, {"resident": 10, "released": 20}, 3, 30,
                         {"dirty": 0, "not_archived": 0, "pinned": 1, "lost": 0}, 0)
        ],
        rounds=[RoundMeasure("/fsx/a", 3600.0, 0.5, 7.0)],
        links=[LinkMeasure("/fsx", "/fsx/a", "AVAILABLE", usable=True)],
        limits={"/fsx": 3e8},
        aws=CallTally({("s3:ListBucket", "ok"): 3}, {"s3:ListBucket": 1}),
        service=ServiceMeasure(
            1.0, False, 0, {("preload", "done"): 3}, {"done": 3}, 0, {"low": (0, 0), "normal": (1, 10), "high": (0, 0)},
            2, {"jobs": (1, 10), "make_room": (0, 0)}, {"/fsx": 0}, {"storing": False}, {"/fsx/a": False},
        ),
        run=RunMeasure(1.0, 3, 30, 0.5, 9.0, Exit.DONE),
    )  # fmt: skip
