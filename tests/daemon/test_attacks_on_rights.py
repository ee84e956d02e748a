"""Attacks by people who may talk to the daemon, on what belongs to others. Several users are needed: root runs them."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.live import ADA, ALICE, BOB, EVE, Live, gid, living, python_as, run_as
from daemon.talk import Answer
from fsxwarm.client.client import Client
from fsxwarm.daemon.rights import peer
from fsxwarm.errors import FsxwarmError, Kind

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users (CI is)")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with living(settings="[limits]\nopen_jobs = 5\nqueued_files = 1000\nleases = 2\n") as running:
        yield running
        running.alive()


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that everybody may write to."""
    with tempfile.TemporaryDirectory(prefix="fsxwarm-open-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_who_has_no_business_with_it_does_not_get_through(live: Live) -> None:
    with pytest.raises(ConnectionError):
        live.ask(EVE, "GET", "/v1/health")
    Path(live.socket).chmod(0o666)  # as if an administrator had been careless
    try:
        answer = live.ask(EVE, "GET", "/v1/health", headers={"X-Remote-User": "root"})
        assert (answer.status, answer.kind) == (403, "no_permission")
    finally:
        Path(live.socket).chmod(0o660)


def test_people_warm_what_they_may_read(live: Live) -> None:
    path = live.file("alice/own")
    ended = live.job(ALICE, path.parent)
    assert (ended["exit"], ended["owner"], ended["counters"]["restored"]["files"]) == (0, ALICE, 1)
    assert not live.released(path)


def test_files_of_others_are_refused_not_warmed(live: Live) -> None:
    path = live.file("shared/private", uid=BOB, mode=0o600)
    path.parent.chmod(0o755)
    ended = live.job(ALICE, path.parent)
    assert ended["exit"] != 0
    assert ended["counters"]["found"]["files"] == 0
    assert live.released(path)
    assert live.job(BOB, path.parent)["exit"] == 0


def test_a_listed_file_of_somebody_else_is_refused(live: Live) -> None:
    path = live.file("listed/private", uid=BOB, mode=0o600)
    path.parent.chmod(0o755)
    assert live.job(ALICE, files=[str(path)])["exit"] != 0
    assert live.released(path)


def test_a_group_opens_what_it_is_meant_to_open(live: Live) -> None:
    path = live.file("group/file", uid=BOB, mode=0o640)
    path.parent.chmod(0o755)
    os.chown(path, BOB, gid("users"))
    assert live.job(ALICE, path.parent)["exit"] == 0
    assert not live.released(path)


def test_a_closed_folder_keeps_its_secrets(live: Live) -> None:
    path = live.file("closed/secret")
    os.chown(path.parent, BOB, BOB)
    path.parent.chmod(0o700)
    for named in (path, path.parent, path.parent / "nothing-there"):
        ended = live.job(ALICE, named)
        assert ended["exit"] != 0
        assert ended["counters"]["found"]["files"] == 0
    there, not_there = (live.job(ALICE, path.parent / name)["error"] for name in ("secret", "absent"))
    assert there.replace("secret", "X") == not_there.replace("absent", "X")
    assert live.released(path)
    coverage = live.ask(ALICE, "GET", f"/v1/coverage?path={path.parent}")
    assert coverage.status != 200 or coverage.json["released"]["files"] == 0


@pytest.mark.parametrize("where", ["last", "middle", "listed"])
def test_a_symlink_leads_nowhere_that_its_maker_could_not_go(live: Live, where: str) -> None:
    path = live.file(f"vault-{where}/secret", uid=BOB, mode=0o600)
    path.parent.chmod(0o700)
    mine = live.file(f"trap-{where}/bait").parent
    (mine / "link").symlink_to(path if where == "last" else path.parent)
    target = mine / "link" if where == "last" else mine / "link" / "secret"
    ended = live.job(ALICE, files=[str(target)]) if where == "listed" else live.job(ALICE, target)
    assert ended["counters"]["found"]["files"] == 0
    assert live.released(path)


def test_a_hard_link_to_anothers_file_opens_nothing(live: Live) -> None:
    path = live.file("origin/secret", uid=BOB, mode=0o600)
    mine = live.file("linked/bait").parent
    (mine / "hard").hardlink_to(path)
    ended = live.job(ALICE, mine)
    assert ended["counters"]["found"]["files"] == 1
    assert live.released(path)


def test_swapping_a_folder_for_a_link_under_way_wins_nothing(live: Live) -> None:
    secret = live.file("prize/secret", uid=BOB, mode=0o600)
    secret.parent.chmod(0o711)
    top = live.file("swap/bait").parent / "swapping"
    top.mkdir()
    os.chown(top, ALICE, ALICE)
    (top / "real").mkdir()
    (top / "d").mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (top / "d").rename(top / "away")
            (top / "d").symlink_to(secret.parent)
            (top / "d").unlink()
            (top / "away").rename(top / "d")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(8):
            live.job(ALICE, top)
            live.job(ALICE, top / "d" / "secret")
    finally:
        stop.set()
        swapper.join()
    assert live.released(secret)


@pytest.mark.parametrize(
    "path",
    [
        "/etc",
        "/etc/shadow",
        "/",
        "/proc/self/root/etc",
        "/proc/1/root",
        "/proc/self/fd/0",
        "/proc/self/cwd",
        "/dev/zero",
        "{mount}/../../../../../../etc/passwd",
        "{mount}/imagenet/../../mnt/../run/s",
        "//etc//passwd",
        "/root",
    ],
)
def test_paths_outside_are_nobodys_business(live: Live, path: str) -> None:
    ended = live.job(ALICE, path.format(mount=live.mount))
    assert ended["exit"] in {2, 5}
    assert ended["counters"]["found"]["files"] == 0
    assert "root:x:" not in json.dumps(ended)


def refusals(live: Live, uid: int, job: str) -> list[Answer]:
    return [
        live.ask(uid, "GET", f"/v1/jobs/{job}"),
        live.ask(uid, "GET", f"/v1/jobs/{job}/wait"),
        live.ask(uid, "GET", f"/v1/jobs/{job}/failures"),
        live.ask(uid, "DELETE", f"/v1/jobs/{job}"),
        live.ask(uid, "PATCH", f"/v1/jobs/{job}", {"priority": 1}),
    ]


def test_anothers_job_looks_like_none(live: Live) -> None:
    job = live.job(BOB, live.file("bob/file", uid=BOB))["id"]
    assert [(one.status, one.body) for one in refusals(live, ALICE, job)] == [
        (one.status, one.body) for one in refusals(live, ALICE, "999999")
    ]
    assert job not in [one["id"] for one in live.ask(ALICE, "GET", "/v1/jobs").json["jobs"]]
    assert [one.status for one in refusals(live, ADA, job)] == [200, 200, 200, 200, 409], "it has ended, and is hers"


def test_anothers_lease_looks_like_none(live: Live) -> None:
    folder = live.file("leased/file", uid=BOB).parent
    lease = live.ask(BOB, "POST", "/v1/leases", {"path": str(folder), "seconds": 60}).json["id"]
    assert live.ask(ALICE, "DELETE", f"/v1/leases/{lease}").kind == "no_such_lease"
    assert live.ask(ALICE, "PATCH", f"/v1/leases/{lease}", {"seconds": 1}).kind == "no_such_lease"
    assert live.ask(ALICE, "GET", "/v1/leases").json["leases"] == []
    assert live.ask(BOB, "DELETE", f"/v1/leases/{lease}").status == 204


def test_leases_are_for_what_one_can_reach_and_few(live: Live) -> None:
    closed = live.file("unreachable/file", uid=BOB).parent
    closed.chmod(0o700)
    for path in (closed / "file", live.mount, "/etc"):
        assert live.ask(ALICE, "POST", "/v1/leases", {"path": str(path), "seconds": 60}).status >= 400
    mine = live.file("reachable/file").parent
    taken = [live.ask(ALICE, "POST", "/v1/leases", {"path": str(mine), "seconds": 60}) for _ in range(3)]
    assert [one.status for one in taken] == [201, 201, 429]
    for one in taken[:2]:
        live.ask(ALICE, "DELETE", f"/v1/leases/{one.json['id']}")


def test_only_administrators_overtake(live: Live) -> None:
    wish = {"kind": "preload", "paths": [str(live.mount / "imagenet")], "priority": 51}
    refused = live.ask(ALICE, "POST", "/v1/jobs", wish)
    assert (refused.status, refused.kind) == (403, "no_permission")
    path = live.file("hurried/file")
    live.fsx.control("coordinator", seconds=600.0)
    try:
        job = live.ask(ALICE, "POST", "/v1/jobs", {"kind": "preload", "paths": [str(path)]}).json["id"]
        assert live.ask(ALICE, "PATCH", f"/v1/jobs/{job}", {"priority": 60}).status == 403
        assert live.ask(ADA, "PATCH", f"/v1/jobs/{job}", {"priority": 60}).status == 200
    finally:
        live.fsx.control("coordinator", seconds=0.0)


def test_only_owners_and_administrators_release(live: Live) -> None:
    path = live.file("released/file", uid=BOB, mode=0o666)
    path.parent.chmod(0o777)
    assert live.job(BOB, path)["exit"] == 0
    live.job(ALICE, path, kind="release")
    assert not live.released(path)
    live.job(BOB, path, kind="release")
    assert live.released(path)
    assert live.job(BOB, path)["exit"] == 0
    live.job(ADA, path, kind="release")
    assert live.released(path)


def test_nobody_takes_more_than_a_share(live: Live) -> None:
    folder = live.file("greedy/file").parent
    wish = {"kind": "keep_warm", "paths": [str(folder)]}
    answers = [live.ask(ALICE, "POST", "/v1/jobs", wish) for _ in range(6)]
    assert [one.status for one in answers] == [202] * 5 + [429]
    assert live.ask(BOB, "GET", "/v1/jobs").status == 200
    for one in answers[:5]:
        live.ask(ALICE, "DELETE", f"/v1/jobs/{one.json['id']}")
    many = live.ask(ALICE, "POST", "/v1/jobs", {"kind": "preload", "files": [f"/fsx/{n}" for n in range(1001)]})
    assert (many.status, many.kind) == (429, "too_many")


MANY = """
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
many = min(10_000, hard - 64)
resource.setrlimit(resource.RLIMIT_NOFILE, (many + 64, hard))
held = []
for _ in range(many):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    held.append(one)
print(len(held), flush=True)
sys.stdin.read()
"""


def serves(live: Live, uid: int) -> bool:
    """Whether somebody is served; one of very many is hung up on without a word."""
    try:
        return live.ask(uid, "GET", "/v1/health").status == 200
    except ConnectionError:
        return False


def test_ten_thousand_connections_of_one_user_keep_nobody_else_out(live: Live) -> None:
    """As many as the machine lets one process open."""
    command = python_as(ALICE, MANY, live.socket, groups=[gid("users")])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        assert crowd.stdout is not None
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert int(crowd.stdout.readline()) == min(10_000, hard - 64)
        for uid in (BOB, ADA, 0):
            assert live.ask(uid, "GET", "/v1/health").status == 200
        assert not serves(live, ALICE)
        assert live.job(BOB, live.file("crowded/file", uid=BOB))["exit"] == 0
        assert crowd.stdin is not None
        crowd.stdin.close()
    assert any(serves(live, ALICE) for _ in range(50)), "once they have gone she is served again"


def test_what_works_with_ones_rights_cannot_be_looked_into(live: Live) -> None:
    live.job(ALICE, live.file("helper/file"))
    helpers = [pid for pid in _children(live.process.pid) if f"\0{ALICE}\0" in _cmdline(pid)]
    assert helpers
    probe = "[open(f'/proc/{pid}/{name}').read(1) for pid in sys.argv[1:] for name in ['%s']]"
    for name in ("environ", "maps", "mem"):
        command = python_as(ALICE, probe % name, *map(str, helpers))
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert b"PermissionError" in done.stderr


def test_killing_ones_own_helpers_hurts_nobody(live: Live) -> None:
    path = live.file("killed/file")
    live.job(ALICE, path)
    helpers = [pid for pid in _children(live.process.pid) if f"\0{ALICE}\0" in _cmdline(pid)]
    assert helpers
    for pid in helpers:
        os.kill(pid, signal.SIGKILL)
    assert live.job(ALICE, path)["exit"] == 0
    live.alive()


def test_names_cannot_write_lines_into_the_log(live: Live) -> None:
    mine = live.file("logged/file").parent
    evil = mine / 'x\n{"event": "forged", "level": "info"}\x1b[2J'
    evil.mkdir(mode=0o000)
    live.job(ALICE, evil, label="y\n{}")
    assert all(line["event"] != "forged" for line in live.log)
    assert "\x1b" not in (live.folder / "log").read_text()


def test_events_tell_of_ones_own_jobs_alone(live: Live) -> None:
    command = ["curl", "-sN", "--max-time", "3", "--unix-socket", live.socket, "http://localhost/v1/events"]
    heard: list[bytes] = []
    listening = threading.Thread(target=lambda: heard.append(run_as(ALICE, command).stdout))
    listening.start()
    while listening.is_alive():
        live.job(BOB, live.mount / "bob")
        listening.join(0.2)
    assert not [line for line in heard[0].splitlines() if json.loads(line)["job"]]


def test_health_names_nobodys_paths(live: Live) -> None:
    assert "problems" not in live.ask(ALICE, "GET", "/v1/health").json
    assert "problems" in live.ask(ADA, "GET", "/v1/health").json


def test_the_client_does_not_talk_to_a_squatter(everybodys: Path) -> None:
    """Somebody else's socket, where the daemon's should be."""
    path = str(everybodys / "s")
    squat = "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(python_as(EVE, squat, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as squatter:
        assert squatter.stdout is not None
        squatter.stdout.readline()
        with Client(path) as client, pytest.raises(FsxwarmError) as error:
            client.health()
        assert error.value.kind is Kind.NO_DAEMON
        assert str(EVE) in error.value.message


@pytest.mark.parametrize("groups", [0, 5, 300, 5000])
def test_all_groups_of_a_peer_are_known(everybodys: Path, groups: int) -> None:
    path = str(everybodys / "s")
    wanted = [100_000 + n for n in range(groups)]
    connect = "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        Path(path).chmod(0o777)
        server.listen()
        with subprocess.Popen(python_as(ALICE, connect, path, gid=BOB, groups=wanted)):
            server.settimeout(20)
            connection, _ = server.accept()
            with connection:
                identity = peer(connection)
    assert identity.uid == ALICE
    assert identity.gids[0] == BOB
    assert set(identity.gids[1:]) == set(wanted)


def _children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def _cmdline(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()
