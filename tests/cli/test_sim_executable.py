"""The simulated FSx as people and other programs meet it: a server, a folder of files and an executable `lfs`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fsxwarm.sim.launch import SimulatedFsx, start

SimFsx = Callable[..., SimulatedFsx]

PATIENCE = 20.0
MOMENT = 0.3


class Shell:
    """Runs `lfs` in the mounted folder."""

    def __init__(self, fsx: SimulatedFsx) -> None:
        self.fsx = fsx
        self.environ = fsx.environ(os.environ, uid=0)

    def lfs(self, *arguments: str | bytes, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["lfs", *arguments],
            cwd=self.fsx.mount,
            env=self.environ,
            capture_output=True,
            timeout=PATIENCE,
            input=given,
            check=False,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["lfs", *arguments], cwd=self.fsx.mount, env=self.environ)

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.fsx.mount)) for path in self.fsx.mount.rglob("*.bin"))

    def state(self, name: str) -> str:
        return self.lfs("hsm_state", name).stdout.decode().removeprefix(f"{name}: ")[1:11]

    def until(self, name: str, state: str) -> None:
        """Wait, a process after another, until a file is in a state."""
        for _ in range(2000):
            if self.state(name) == state:
                return
        raise AssertionError(f"{name} is {self.state(name)}, not {state}")

    def blocks(self, name: str) -> int:
        return (self.fsx.mount / name).stat().st_blocks


def hangs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(MOMENT)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_restore_gives_blocks_and_a_release_takes_them_and_neither_changes_the_times(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "3", "--size", "64KiB"))
    name = shell.files()[0]
    before = (shell.fsx.mount / name).stat()
    assert (before.st_size, before.st_blocks) == (65536, 0)
    assert shell.lfs("hsm_restore", name).returncode == 0
    shell.until(name, "0x00000009")
    resident = (shell.fsx.mount / name).stat()
    assert resident.st_blocks > 1
    assert shell.lfs("hsm_release", name).returncode == 0
    after = (shell.fsx.mount / name).stat()
    assert after.st_blocks == 0
    assert {(s.st_mtime_ns, s.st_atime_ns, s.st_size) for s in (before, resident, after)} == {
        (before.st_mtime_ns, before.st_atime_ns, 65536)
    }


def test_tiny_and_empty_files_go_and_come_back_with_their_sizes(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "0"))
    for name, size in (("empty.bin", 0), ("tiny.bin", 1)):
        path = shell.fsx.mount / name
        path.write_bytes(b"x" * size)
        shell.fsx.control("flags", paths=[str(path)], flags=0x0D)
        assert shell.blocks(name) == 0
        assert shell.lfs("hsm_restore", name).returncode == 0
        shell.until(name, "0x00000009")
        assert path.stat().st_size == size


def test_a_second_request_hangs_until_the_first_has_ended(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "1"))
    (name,) = shell.files()
    shell.fsx.control("agents", freeze=True)
    assert shell.lfs("hsm_restore", name).returncode == 0
    second = shell.begin("hsm_restore", name)
    assert hangs(second)
    assert b"RESTORE running (0 bytes moved)" in shell.lfs("hsm_action", name).stdout
    shell.fsx.control("agents", freeze=False)
    assert second.wait(PATIENCE) == 0
    assert shell.state(name) == "0x00000009"


def test_on_2_16_a_second_request_is_skipped(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "1", "--version", "2.16"))
    (name,) = shell.files()
    shell.fsx.control("agents", freeze=True)
    assert [shell.lfs("hsm_restore", name).returncode for _ in range(2)] == [0, 0]


def test_killing_a_client_that_hangs_takes_nothing_back(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "2"))
    first, second = shell.files()
    shell.fsx.control("agents", freeze=True)
    shell.lfs("hsm_restore", first)
    hanging = shell.begin("hsm_restore", first, second)
    assert hangs(hanging)
    hanging.kill()
    hanging.wait()
    shell.fsx.control("agents", freeze=False)
    shell.until(second, "0x00000009")


def test_the_servers_end_leaves_no_socket_no_process_and_no_client_behind(tmp_path: Path) -> None:
    folder = tmp_path / "fsx"
    with start(folder, "--files", "1") as fsx:
        shell = Shell(fsx)
        shell.fsx.control("agents", freeze=True)
        shell.lfs("hsm_restore", *shell.files())
        hanging = shell.begin("hsm_restore", *shell.files())
        assert hangs(hanging)
    assert hanging.wait(PATIENCE) == 108
    assert not (folder / "sim.sock").exists()
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if os.fsencode(folder) in _content(path)] == []
    assert Shell(fsx).lfs("--version").returncode == 2


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_restart_goes_on_with_states_and_with_what_was_queued(tmp_path: Path) -> None:
    folder = tmp_path / "fsx"
    with start(folder, "--files", "4") as fsx:
        shell = Shell(fsx)
        resident, pinned, queued, released = shell.files()
        shell.lfs("hsm_restore", resident)
        shell.until(resident, "0x00000009")
        shell.lfs("hsm_set", "--norelease", pinned)
        fid = shell.lfs("path2fid", released).stdout
        fsx.control("agents", freeze=True)
        shell.lfs("hsm_restore", queued)
    with start(folder, "--files", "4") as fsx:
        shell = Shell(fsx)
        assert [shell.state(name) for name in (resident, pinned, released)] == [
            "0x00000009",
            "0x0000001d",
            "0x0000000d",
        ]
        assert shell.lfs("path2fid", released).stdout == fid
        shell.until(queued, "0x00000009")
        assert len(shell.files()) == 4


def test_a_write_behind_the_servers_back_makes_a_file_dirty(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "2", "--size", "64KiB"))
    resident, released = shell.files()
    shell.lfs("hsm_restore", resident)
    shell.until(resident, "0x00000009")
    for name in (resident, released):
        with (shell.fsx.mount / name).open("ab") as file:
            file.write(b"more")
    assert shell.state(resident) == "0x0000000b"
    shell.until(released, "0x0000000b")
    assert (shell.fsx.mount / released).stat().st_size == 65540
    assert shell.lfs("hsm_release", resident).returncode == 1


def test_names_may_move_while_the_file_stays_what_it_is(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "2"))
    first, second = shell.files()
    fid = shell.lfs("path2fid", first).stdout.strip()
    moved = shell.fsx.mount / "moved"
    (shell.fsx.mount / first).rename(moved)
    (shell.fsx.mount / "second name").hardlink_to(moved)
    assert shell.lfs("hsm_restore", "--mntpath", str(shell.fsx.mount), fid).returncode == 0
    shell.until("moved", "0x00000009")
    assert shell.state("second name") == "0x00000009"
    assert shell.blocks("second name") > 1
    gone = shell.lfs("path2fid", second).stdout.strip()
    (shell.fsx.mount / second).unlink()
    missing = shell.lfs("hsm_restore", "--mntpath", str(shell.fsx.mount), gone)
    assert (missing.returncode, missing.stderr[-27:]) == (2, b": No such file or directory\n"[-27:])


def test_a_new_file_in_the_place_of_an_old_one_was_never_archived(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "1"))
    path = shell.fsx.mount / shell.files()[0]
    path.unlink()
    path.write_bytes(b"new")
    assert shell.state(shell.files()[0]) == "0x00000000"


def test_archive_then_release_then_restore(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "0"))
    (shell.fsx.mount / "a.bin").write_bytes(b"x" * 100_000)
    assert shell.lfs("hsm_archive", "a.bin").returncode == 0
    shell.until("a.bin", "0x00000009")
    assert shell.lfs("hsm_release", "a.bin").returncode == 0
    assert shell.state("a.bin") == "0x0000000d"
    assert shell.lfs("find", ".", "-type", "f", "-L", "released", "-print0").stdout == b"./a.bin\0"


def test_a_file_list_is_read_by_the_client(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "2"))
    names = shell.files()
    done = shell.lfs("hsm_restore", "--filelist", "/dev/stdin", given="\n".join(names).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    for name in names:
        shell.until(name, "0x00000009")


def test_faults_can_be_set_while_it_runs(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "2"))
    bad, good = shell.files()
    shell.fsx.control("fail", paths=[str(shell.fsx.mount / bad)], fault="object missing")
    shell.lfs("hsm_restore", bad, good)
    shell.until(good, "0x00000009")
    assert (shell.state(bad), shell.lfs("hsm_action", bad).stdout) == ("0x0000000d", f"{bad}: NOOP\n".encode())
    shell.fsx.control("break", call="state", fault="eio")
    broken = shell.lfs("hsm_state", good)
    assert (broken.returncode, broken.stderr) == (5, f"can't get hsm state for {good}: Input/output error\n".encode())
    shell.fsx.control("break", call="restore", fault="hang")
    hanging = shell.begin("hsm_restore", bad)
    assert hangs(hanging)
    hanging.kill()
    hanging.wait()
    shell.fsx.control("mend")
    shell.lfs("hsm_restore", bad)
    shell.until(bad, "0x00000009")


def test_what_was_asked_is_counted(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "60", "--mdts", "1"))
    names = shell.files()
    shell.fsx.control("agents", freeze=True)
    shell.lfs("hsm_restore", *names[:50])
    shell.lfs("hsm_state", *names[:10])
    calls, servers = shell.fsx.control("calls"), shell.fsx.control("counters")
    assert calls == {"processes": 2, "requests": 1, "states": 10}
    assert (servers["deepest"], servers["restoring"], servers["state"]) == (50, 50, 10)


def test_a_full_file_system_lets_restores_fail_and_df_tells(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "3", "--size", "1MiB", "--capacity", "4MiB"))
    names = shell.files()
    shell.lfs("hsm_restore", *names[:2])
    for name in names[:2]:
        shell.until(name, "0x00000009")
    table = shell.lfs("df", str(shell.fsx.mount)).stdout.decode()
    rows = [line.split() for line in table.splitlines() if "OST:" in line]
    assert [row[1:5] for row in rows] == [["2048", "1024", "1024", "50%"]] * 2
    big = shell.fsx.mount / "big.bin"
    with big.open("xb") as file:
        file.truncate(2 << 20)
    shell.fsx.control("flags", paths=[str(big)], flags=0x0D)
    shell.lfs("hsm_restore", "big.bin")
    for _ in range(2000):
        if shell.lfs("hsm_action", "big.bin").stdout == b"big.bin: NOOP\n":
            break
    assert shell.state("big.bin") == "0x0000000d"


def test_control_messages_that_make_no_sense_are_refused(sim_fsx: SimFsx) -> None:
    fsx = sim_fsx("--files", "1")
    with pytest.raises(ValueError, match="no such control message"):
        fsx.control("nonsense")
    with pytest.raises(ValueError, match="no-such-fault"):
        fsx.control("fail", fault="no-such-fault", share=1)


def test_odd_folder_names_work(sim_fsx: SimFsx) -> None:
    fsx = sim_fsx("--files", "1", name="a b\\c " + "long" * 40)
    shell = Shell(fsx)
    assert shell.state(shell.files()[0]) == "0x0000000d"
    (line,) = (fsx.folder / "mounts").read_bytes().splitlines()
    source, mount, fstype, *_ = line.split(b" ")
    assert source.startswith(b"sim-")
    assert source.endswith(b"@tcp:/fsx")
    assert fstype == b"lustre"
    assert mount.replace(b"\\040", b" ").replace(b"\\134", b"\\") == os.fsencode(fsx.mount)
    sourced = subprocess.run(
        ["sh", "-c", '. "$1"; command -v lfs; printf %s "$FSXWARM_MOUNTS"', "sh", str(fsx.folder / "env")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sourced.stdout.splitlines() == [str(fsx.lfs), str(fsx.folder / "mounts")]


def test_env_is_there_while_it_listens(tmp_path: Path) -> None:
    env = tmp_path / "fsx" / "env"
    for _ in range(2):
        assert not env.exists()
        with start(tmp_path / "fsx", "--files", "1"):
            assert "FSXWARM_MOUNTS" in env.read_text()
            again = [sys.executable, "-m", "fsxwarm", "sim", str(tmp_path / "fsx")]
            assert subprocess.run(again, capture_output=True, check=False, timeout=60).returncode == 2
            assert env.exists(), "a second one that gives up leaves the first one's alone"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--size", "huge"), "--size"),
        (("--bandwidth", "0"), "--bandwidth"),
        (("--latency", "xms"), "--latency"),
        (("--capacity", "lots"), "--capacity"),
        (("--fail", "200%"), "--fail"),
        (("--version", "2.10"), "--version"),
        (("--mdts", "0"), "--mdts"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: tuple[str, str], says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fsxwarm", "sim", str(tmp_path / "fsx"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "fsx").exists()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-m", "fsxwarm", "sim", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_second_server_on_the_same_folder_is_refused(sim_fsx: SimFsx) -> None:
    shell = Shell(sim_fsx("--files", "1"))
    second = subprocess.run(
        [sys.executable, "-m", "fsxwarm", "sim", str(shell.fsx.folder)], capture_output=True, text=True, check=False
    )
    assert (second.returncode, "already" in second.stderr) == (2, True)
    assert shell.state(shell.files()[0]) == "0x0000000d"


def test_after_a_crash_the_states_are_there_and_the_old_socket_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = tmp_path / "fsx"
    command = [sys.executable, "-m", "fsxwarm", "sim", str(folder), "--files", "1", "--latency", "0ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert any(line.startswith("READY") for line in server.stdout)
        shell = Shell(SimulatedFsx(folder))
        name = shell.files()[0]
        shell.lfs("hsm_restore", name)
        shell.until(name, "0x00000009")
        server.kill()
    assert (folder / "sim.sock").exists()
    with start(folder):
        assert shell.state(name) == "0x00000009"


PYTHON_FOR_ALL = shutil.which("python3", path="/usr/bin:/bin")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.skipif(PYTHON_FOR_ALL is None, reason="nobody else can run this Python")
def test_the_callers_rights_are_those_of_its_process() -> None:
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        with start(Path(top) / "fsx", "--files", "1") as fsx:
            shell = Shell(fsx)
            name = shell.files()[0]
            (fsx.mount / name).chmod(0o600)
            asked = subprocess.run(
                [PYTHON_FOR_ALL or "", "-I", "-S", str(fsx.lfs), "hsm_state", name],
                cwd=fsx.mount,
                env={**shell.environ, "FSXWARM_SIM_UID": "0"},
                user=65534,
                group=65534,
                extra_groups=[],
                capture_output=True,
                check=False,
            )
            assert (asked.returncode, asked.stderr[-19:]) == (13, b": Permission denied\n"[-19:])
            assert shell.state(name) == "0x0000000d"
