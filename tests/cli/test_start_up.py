"""What a command loads and starts before it works: nothing that it does not need. No clock is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.machine import Site
from fsxwarm.cli.commands import COMMANDS, load

WATCHED = """
import sys
children = []
sys.addaudithook(lambda event, of: children.append(of[1]) if event == "subprocess.Popen" else None)
from fsxwarm.cli.main import run
status = run(sys.argv[1:])
print("LOADED", *sorted(sys.modules), file=sys.stderr)
for child in children:
    print("STARTED", *child, file=sys.stderr)
sys.exit(status)
"""
NEVER = {"aiohttp", "boto3", "botocore", "urllib3", "structlog", "fsxwarm.daemon", "fsxwarm.sim"}
"""What only the daemon, AWS and the simulator need."""
RARELY = NEVER | {"prometheus_client", "sqlite3", "fsxwarm.metrics.exposition", "fsxwarm.engine.preflight"}
WARMING = {
    "fsxwarm.engine.report", "fsxwarm.engine.warm", "fsxwarm.lustre.servers", "fsxwarm.model.job",
    "fsxwarm.model.measures", "fsxwarm.model.messages", "fsxwarm.model.window",
}  # fmt: skip
"""What only commands need that warm."""
ASKING = {"http.client", "fsxwarm.cli.asking", "fsxwarm.cli.counting", "fsxwarm.client.client"}
"""What is needed only where a daemon answers."""
AT_WORK = RARELY | {"asyncio", "aiofiles", "pydantic", "fsxwarm.app", "fsxwarm.engine", "fsxwarm.lustre"}


def watched(*arguments: str | Path, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WATCHED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environ)


def loaded(*arguments: str | Path, environ: dict[str, str] | None = None) -> tuple[int, set[str]]:
    done = watched(*arguments, environ=environ)
    said = [line for line in done.stderr.splitlines() if line.startswith("LOADED ")]
    return done.returncode, set(said[-1].split()[1:])


def started(*arguments: str | Path, environ: dict[str, str]) -> tuple[int, list[str]]:
    """Exit status, and the programs that the command started, helpers by their own name."""
    done = watched(*arguments, environ=environ)
    said = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("STARTED ")]
    programs = [next((word for word in line if word.endswith(".py")), line[0]) for line in said]
    return done.returncode, sorted(Path(program).name for program in programs)


def test_help_loads_no_command() -> None:
    status, modules = loaded("--help")
    assert (status, modules & AT_WORK) == (0, set())


@pytest.mark.parametrize("command", ["preload", "plan", "status", "associations", "jobs", "top", "page", "slurm"])
def test_a_commands_help_loads_nothing_of_daemon_and_aws(command: str) -> None:
    status, modules = loaded(command, "--help")
    assert (status, modules & NEVER) == (0, set())


def test_status_of_a_file_loads_little_else(site: Site) -> None:
    status, modules = loaded("status", site.files[0], environ=site.environ)
    assert (status, modules & (RARELY | WARMING | ASKING | {"aiofiles"})) == (0, set())


def test_status_of_a_file_starts_one_helper_that_stats_and_one_that_asks_lustre(site: Site) -> None:
    assert started("status", site.files[0], environ=site.environ) == (0, ["helper.py", "native_helper.py"])


def test_status_of_a_resident_file_starts_one_helper(site: Site) -> None:
    site.restore(site.files[0])
    assert started("status", site.files[0], environ=site.environ) == (0, ["helper.py"])


def test_preload_and_release_load_nothing_of_a_daemon_where_there_is_none(site: Site) -> None:
    for command in (("preload",), ("release", "--yes")):
        status, modules = loaded(*command, site.files[0], environ=site.environ)
        assert (status, modules & (ASKING | {"fsxwarm.engine.jobs", "fsxwarm.engine.service"})) == (0, set())


def test_preload_by_a_daemon_loads_nothing_that_warms_here(site: Site) -> None:
    status, modules = loaded("preload", "--daemon", site.files[0], environ=site.environ)
    assert (status, modules & {"fsxwarm.cli.preload_run", "fsxwarm.engine.explain"}) == (5, set())


def test_preload_loads_no_aws_where_there_is_none(site: Site) -> None:
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/no", "AWS_SHARED_CREDENTIALS_FILE": "/no"}
    status, modules = loaded("preload", site.data, environ=site.environ | nowhere)
    assert (status, modules & (NEVER | {"prometheus_client"})) == (0, set())


@pytest.mark.parametrize(
    "arguments", [("status", "/nowhere"), ("preload", "/nowhere"), ("preload", "/usr/lib/python3")]
)
def test_a_path_that_is_no_good_needs_nothing(arguments: tuple[str, ...]) -> None:
    status, modules = loaded(*arguments)
    assert status in {2, 5}
    assert modules & NEVER == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    """Also that each can be loaded by its name."""
    said = load(name).help
    assert " ".join(said.split("\n\n")[0].split()) == COMMANDS[name]


STOPPED = """
import runpy, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == stopped:
            raise KeyboardInterrupt
stopped = sys.argv.pop(1)
sys.meta_path.insert(0, Stop())
runpy.run_module("fsxwarm", run_name="__main__", alter_sys=True)
"""
"""Ctrl-C just as a module is loaded."""


@pytest.mark.parametrize("module", ["fsxwarm.cli.main", "typer", "fsxwarm.errors", "fsxwarm.cli.status", "fsxwarm.app"])
def test_ctrl_c_while_it_loads_is_one_line_at_most_and_its_own_status(module: str) -> None:
    command = [sys.executable, "-c", STOPPED, module, "status", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr in {"", "fsxwarm: interrupted\n"}
