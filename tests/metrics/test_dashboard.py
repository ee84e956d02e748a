"""The dashboard: each of its expressions, asked of a real Prometheus that scraped a daemon over a simulated warm."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aws.fake_endpoint import Account, association, file_system, serve
from daemon.live import Live, Systemd, end, start
from fsxwarm.sim import launch
from metrics.tools import ALERTS, DASHBOARD, RULES, program

DASH = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in DASH["panels"] if panel["type"] != "row"]
EXPRESSIONS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
VARIABLES = {variable["name"]: variable for variable in DASH["templating"]["list"]}


@dataclass
class Prometheus:
    """A running server. `began` is when the daemon's first number was scraped, in seconds since the epoch."""

    address: str
    began: float = 0.0

    def ask(self, what: str, **fields: str) -> Any:
        query = urllib.parse.urlencode(fields)
        address = f"{self.address}/api/v1/{what}?{query}"
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 - the address is ours
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[float]:
        """All that an expression was, at each second since the beginning."""
        times = {"start": str(self.began), "end": str(time.time()), "step": "1"}
        found = self.ask("query_range", query=expression, **times)["result"]
        return [float(value) for series in found for _, value in series["values"]]

    def wait_for(self, expression: str) -> None:
        wait(lambda: bool(self.ask("query", query=expression)["result"]), expression)


def wait(done: Callable[[], bool], what: str) -> None:
    for _ in range(600):
        try:
            if done():
                return
        except OSError:
            pass
        threading.Event().wait(0.1)
    raise AssertionError(f"in vain: {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[Prometheus]:
    """A Prometheus that scrapes a port, and works rules out, each second."""
    folder.mkdir()
    for rules in (RULES, ALERTS):
        text = re.sub(r"interval: \w+", "interval: 1s", rules.read_text())
        (folder / rules.name).write_text(text)
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{RULES.name}, {ALERTS.name}]\n"
        f"scrape_configs: [{{job_name: fsxwarm, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
    )
    port = free_port()
    command = [program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
               f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        server.wait_for("up == 1")
        server.began = time.time()
        yield server
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def warming(folder: Path, port: int) -> Iterator[Live]:
    """A daemon over a simulated FSx that AWS knows, with all that its configuration can have."""
    (folder / "run").mkdir(mode=0o755)
    system = file_system()
    with ExitStack() as stack:
        account = Account([system], [association(system["FileSystemId"], "/archive", "s3://data/archive")])
        endpoint = stack.enter_context(serve(account))
        options = ("--files", "240", "--size", "256KiB", "--latency", "100ms", "--agents", "8", "--fail", "5%")
        fsx = stack.enter_context(launch.start(folder / "fsx", *options))
        mounts = folder / "mounts"
        table = (fsx.folder / "mounts").read_text()
        source = f"{system['DNSName']}@tcp:/{system['LustreConfiguration']['MountName']}"
        mounts.write_text(table.replace(table.split(" ", 1)[0], source, 1))
        config = folder / "config.toml"
        config.write_text(
            f'[daemon]\nsocket = "{folder}/run/s"\nstate = "{folder}/state"\ngroup = "users"\nadmin_group = "adm"\n'
            f'[metrics]\nlisten = "127.0.0.1:{port}"\n'
            f'[inventory]\npaths = ["{fsx.mount}"]\nrate = 100000\n'
            f'[[keep_warm]]\npaths = ["{some_folder(fsx.mount)}"]\n'
            f'[[make_room]]\nmount = "{fsx.mount}"\ndry_run = true\n'
        )
        variables = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
                     "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_FSX": endpoint,
                     "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                     "FSXWARM_MOUNTS": str(mounts), "FSXWARM_ATTEMPTS": "1"}  # fmt: skip
        systemd = Systemd(folder)
        stack.callback(systemd.close)
        process = start(folder, fsx, systemd, variables)
        stack.callback(end, process)
        systemd.wait_for("READY=1")
        yield Live(folder, fsx, systemd, process, config)


def some_folder(mount: Path) -> Path:
    return next(path for path in sorted(mount.iterdir()) if path.is_dir())


@contextmanager
def seen_a_warm() -> Iterator[Prometheus]:
    """A Prometheus that has seen a warm from its begin to its end, with failures."""
    program("prometheus")
    folder = Path(tempfile.mkdtemp(prefix="fsxwarm-dashboard-"))
    folder.chmod(0o755)
    port = free_port()
    try:
        with warming(folder, port) as live, prometheus(folder / "prometheus", port) as server:
            server.wait_for("fsxwarm_inventory_bytes")
            files = [path for path in sorted(live.mount.rglob("*"), reverse=True) if path.is_file()]
            live.lfs("hsm_set", "--lost", next(path for path in files if live.released(path)))
            live.job(0, live.mount / "no-such-folder")
            assert live.job(0, live.mount)["counters"]["failed"]["files"] > 0
            server.wait_for('fsxwarm_jobs_ended_total{exit="incomplete"} > 0')
            server.wait_for("fsxwarm_association_usable")
            server.wait_for('reason:fsxwarm_failed_files:increase15m{reason="restore_failed"} > 0')
            yield server
    finally:
        shutil.rmtree(folder)


def test_what_prometheus_tells_after_a_warm() -> None:
    with seen_a_warm() as server:
        check_that_each_expression_tells_something(server)
        check_that_the_variables_have_something_to_choose_from(server)
        check_that_the_numbers_are_those_of_the_warm(server)
        check_that_rules_are_worked_out_without_an_error(server)


def check_that_each_expression_tells_something(server: Prometheus) -> None:
    silent = []
    for title, expression in EXPRESSIONS:
        query = expression.replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$mount", ".*")
        assert "$" not in query
        if not any(map(math.isfinite, server.values(query))):
            silent.append((title, expression))
    assert not silent


def check_that_the_variables_have_something_to_choose_from(server: Prometheus) -> None:
    for name in ("instance", "mount"):
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", VARIABLES[name]["definition"])
        assert found is not None
        series = server.ask("series", **{"match[]": found[1].replace("$instance", ".*")})
        assert {one[found[2]] for one in series} != set()


def check_that_the_numbers_are_those_of_the_warm(server: Prometheus) -> None:
    def now(expression: str) -> float:
        return float(server.ask("query", query=expression)["result"][0]["value"][1])

    restored = now('fsxwarm_settled_files_total{outcome="restored"}')
    assert restored == now("fsxwarm_restored_bytes_total") / 2**18
    assert 200 < restored < 240
    assert now('sum(fsxwarm_settled_files_total{outcome=~"failed|blocked"})') >= 240 - restored
    assert now('sum(fsxwarm_inventory_files{state=~"resident|released"})') == 240
    assert now("fsxwarm_restore_limit_bytes_per_second") == pytest.approx(250e6 * 1200 * 2**30 / 2**40)


def check_that_rules_are_worked_out_without_an_error(server: Prometheus) -> None:
    groups = server.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    assert sum(len(group["rules"]) for group in groups) > 20


def test_panels_do_not_overlap_and_each_says_what_it_shows() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASH["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    assert all(panel["description"].strip() and panel["title"] for panel in PANELS)
    assert len({panel["id"] for panel in DASH["panels"]}) == len(DASH["panels"])


def test_it_can_be_imported_anywhere() -> None:
    assert {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]} == {"${datasource}"}
    for title, expression in EXPRESSIONS:
        assert '=~"$instance"' in expression or "ALERTS" in expression, title
