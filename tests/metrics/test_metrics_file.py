"""`preload --metrics-file`, as node_exporter will read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.machine import Site
from fsxwarm.sim import launch
from metrics.tools import promtool


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with launch.start(tmp_path / "fsx", "--files", "36", "--size", "100KB", "--latency", "0s") as fsx:
        yield Site(fsx)


def values(path: Path) -> dict[str, float]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_a_run_leaves_its_numbers_behind(site: Site, tmp_path: Path) -> None:
    bad = site.files[3]
    site.fsx.control("fail", paths=[str(bad)], fault="object missing")
    path = tmp_path / "nightly.prom"
    done = site.fsxwarm("preload", site.data, "--metrics-file", path, "--attempts", "1")
    assert done.status == 3
    told = values(path)
    count = len(site.files)
    assert told['fsxwarm_settled_files_total{outcome="failed",run="nightly"}'] == 1
    assert told['fsxwarm_settled_files_total{outcome="restored",run="nightly"}'] == count - 1
    assert told['fsxwarm_failed_files_total{reason="restore_failed",run="nightly"}'] == 1
    assert told['fsxwarm_restored_bytes_total{run="nightly"}'] == (count - 1) * 100_000
    assert told['fsxwarm_scanned_files_total{run="nightly"}'] == count
    assert told['fsxwarm_requested_files_total{run="nightly"}'] == count
    assert told['fsxwarm_run_exit_status{run="nightly"}'] == 3
    assert told['fsxwarm_run_found_files{run="nightly"}'] == count
    assert told['fsxwarm_run_coverage_ratio{run="nightly"}'] == pytest.approx(1 - 1 / count)
    began, ended = (told[f'fsxwarm_run_{name}_timestamp_seconds{{run="nightly"}}'] for name in ("start", "end"))
    assert began < ended < began + 120
    assert promtool("check", "metrics", text=path.read_bytes()) == ""
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir() if "nightly" in one.name] == ["nightly.prom"]


def test_the_file_before_is_replaced_whole(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "nightly.prom"
    path.write_text("left_over 1\n" * 10_000)
    assert site.fsxwarm("preload", site.data, "--metrics-file", path).status == 0
    assert "left_over" not in path.read_text()


def test_a_deadline_that_passes_is_told(site: Site, tmp_path: Path) -> None:
    site.fsx.control("coordinator", seconds=600.0)
    path = tmp_path / "nightly.prom"
    assert site.fsxwarm("preload", site.data, "--metrics-file", path, "--deadline", "1s").status == 4
    told = values(path)
    assert told['fsxwarm_run_exit_status{run="nightly"}'] == 4
    assert told['fsxwarm_settled_files_total{outcome="cancelled",run="nightly"}'] == len(site.files)


def test_a_name_that_nobody_would_read_is_refused(site: Site, tmp_path: Path) -> None:
    done = site.fsxwarm("preload", site.data, "--metrics-file", tmp_path / "nightly.txt")
    assert done.status == 2
    assert "node_exporter reads files in .prom alone" in done.err
    assert "Traceback" not in done.err
    assert all(site.released(path) for path in site.files)


def test_a_folder_that_is_not_there_is_told_before_anything_is_asked_for(site: Site, tmp_path: Path) -> None:
    done = site.fsxwarm("preload", site.data, "--metrics-file", tmp_path / "none" / "nightly.prom")
    assert done.status == 2
    assert done.err.count("cannot write") == 1
    assert all(site.released(path) for path in site.files)


def test_a_dry_run_has_no_metrics(site: Site, tmp_path: Path) -> None:
    done = site.fsxwarm("preload", site.data, "--dry-run", "--metrics-file", tmp_path / "nightly.prom")
    assert done.status == 2
    assert not (tmp_path / "nightly.prom").exists()
