from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fsxwarm import configfile
from fsxwarm.errors import FsxwarmError, Kind


def refusal(text: str, **environ: str) -> str:
    with pytest.raises(FsxwarmError) as error:
        configfile.parse(tomllib.loads(text), environ, "config.toml")
    assert error.value.kind is Kind.USAGE
    assert "config.toml" in error.value.message
    return str(error.value)


def test_nothing_has_to_be_set() -> None:
    config = configfile.load({})
    assert config.daemon.socket == "/run/fsxwarm/fsxwarm.sock"
    assert config.make_room == []


def test_what_is_shown_means_the_same() -> None:
    text = """
        [warming]
        window_start = 99
        call_deadline = "2m"
        reserve = "500GB"
        [[keep_warm]]
        paths = ["/fsx/\\"odd\\"\\u0007"]
        every = "2h"
        [[make_room]]
        mount = "/fsx"
        low_free = "5%"
    """
    config = configfile.parse(tomllib.loads(text), {}, "")
    assert config.warming.call_deadline == 120
    assert config.keep_warm[0].every == 7200
    assert configfile.parse(tomllib.loads(configfile.to_toml(config)), {}, "") == config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[deamon]", "unknown key deamon, did you mean daemon?"),
        ("[daemon]\nsokcet = 1", "unknown key daemon.sokcet, did you mean socket?"),
        ("[warming]\nwindow_strat = 1", "unknown key warming.window_strat, did you mean window_start?"),
        ("[[make_room]]\nmount = '/fsx'\nhigh = 3", "unknown key make_room.0.high, did you mean high_free?"),
        ("[limits]\nzzz = 1", "unknown key limits.zzz (known: open_jobs"),
        ("[limits]\nopen_jobs = 0", "limits.open_jobs"),
        ("[limits]\nrequest_size = 'much'", "limits.request_size"),
        ("[daemon]\nsocket = 'run/s'", "daemon.socket: must be an absolute path"),
        ("[warming]\nwindow_start = 0", "warming.window_start"),
        ("[warming]\nwindow_start = 3", "change warming.window_start, warming.window_floor or warming.window_ceiling"),
        ("warming = 3", "warming must be a table"),
        ("daemon = 3", "daemon"),
        ("[[make_room]]\nmount = '/fsx'\nlow_free = '30%'", "must be less than"),
        ("[[keep_warm]]\npaths = []", "keep_warm.0.paths"),
        ("[[keep_warm]]\npaths = ['/fsx']\nevery = '1s'", "keep_warm.0.every"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    assert said in refusal(text)


def test_the_environment_overrides_and_is_named_when_wrong() -> None:
    environ = {"FSXWARM_LIMITS_OPEN_JOBS": "7", "FSXWARM_WINDOW_START": "9", "FSXWARM_INVENTORY_PATHS": "/a:/b"}
    config = configfile.parse({"limits": {"open_jobs": 3}}, environ, "")
    assert (config.limits.open_jobs, config.warming.window_start) == (7, 9)
    assert config.inventory.paths == ["/a", "/b"]
    assert "FSXWARM_LIMITS_OPEN_JOBS" in refusal("", FSXWARM_LIMITS_OPEN_JOBS="many")
    assert "FSXWARM_ATTEMPTS: 'some'" in refusal("", FSXWARM_ATTEMPTS="some")
    assert "change FSXWARM_WINDOW_START, warming.window_floor" in refusal("", FSXWARM_WINDOW_START="3")


def fsxwarm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fsxwarm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_check_and_show(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("[daemon]\ngroup = 'hpc'\n")
    bad.write_text("[daemon]\ngruop = 'hpc'\n")
    assert fsxwarm("config", "check", good).returncode == 0
    done = fsxwarm("config", "check", bad)
    assert done.returncode == 2
    assert "did you mean group?" in done.stderr
    assert tomllib.loads(fsxwarm("config", "show", good).stdout)["daemon"]["group"] == "hpc"
    assert fsxwarm("config", "check", tmp_path / "missing").returncode == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert fsxwarm("config", "check", tmp_path / "binary").returncode == 2
