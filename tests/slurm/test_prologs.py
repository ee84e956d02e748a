"""The prologs and epilogs on a real Slurm: jobs find their data, and no node is ever drained."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slurm.cluster import NODES
from slurm.site import HOOKS, UID, Site, site

SCRIPT = "#!/bin/sh\necho ran\n"
BOTH = (
    "PrologFlags=Alloc",
    "Prolog={etc}/fsxwarm/prolog.sh",
    "Epilog={etc}/fsxwarm/epilog.sh",
    "PrologSlurmctld={etc}/fsxwarm/prologctld.sh",
    "EpilogSlurmctld={etc}/fsxwarm/epilogctld.sh",
)


@pytest.fixture(scope="module")
def machine(real_slurm: None) -> Iterator[Site]:  # noqa: ARG001 - it skips
    with site(*BOTH) as one:
        yield one


@pytest.fixture(autouse=True)
def no_node_drained(machine: Site) -> Iterator[None]:
    yield
    assert set(machine.cluster.states()) == set(NODES)
    assert not [state for state in machine.cluster.states().values() if "drain" in state or "down" in state]


def ran(machine: Site, job: str) -> None:
    assert machine.cluster.wait(job, "COMPLETED", "FAILED", "CANCELLED")["JobState"] == "COMPLETED"
    assert machine.cluster.output(job) == "ran\n"


def hook(machine: Site, name: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a hook as slurmd does: without PATH, HOME or anything else."""
    return subprocess.run([machine.hooks / name], env=environ, capture_output=True, check=False, timeout=60)


def job_of(comment: str) -> dict[str, str]:
    return {"SLURM_JOB_ID": "99", "SLURM_JOB_UID": str(UID), "SLURM_JOB_COMMENT": comment}


def test_a_job_on_four_nodes_finds_its_data_warmed_once(machine: Site) -> None:
    data = machine.data("four")
    job = machine.cluster.sbatch(SCRIPT, "-N4", f"--comment=fsxwarm:preload={data}")

    ran(machine, job)
    assert machine.released(data) == 0
    warmed = [one for one in machine.jobs() if one["slurm_job_id"] == job]
    assert [(one["owner"], one["phase"]) for one in warmed] == [(UID, "done")]
    machine.until(lambda: machine.leases(job) == [])


def test_the_data_is_kept_while_the_job_runs(machine: Site) -> None:
    data = machine.data("kept")
    job = machine.cluster.sbatch("#!/bin/sh\nsleep 300\n", f"--comment=fsxwarm:preload={data}")
    machine.cluster.wait(job, "RUNNING")
    machine.until(lambda: machine.leases(job) == [str(data)])

    machine.cluster.run("scancel", job)
    machine.until(lambda: machine.leases(job) == [])


def test_space_is_given_back_when_the_job_asks_for_it(machine: Site) -> None:
    data = machine.data("back")
    ran(machine, machine.cluster.sbatch(SCRIPT, f"--comment=fsxwarm:preload={data} release=after"))

    machine.until(lambda: machine.released(data) == 4)


@pytest.mark.parametrize(
    "comment", ["fsxwarm:perload=/x", "fsxwarm:preload=/no/such/path", "fsxwarm:", "other", "'\"$(id)`"]
)
def test_whatever_the_comment_says_the_job_runs(machine: Site, comment: str) -> None:
    ran(machine, machine.cluster.sbatch(SCRIPT, f"--comment={comment}"))


def test_without_a_comment_nothing_is_asked(machine: Site) -> None:
    before = len(machine.jobs())
    ran(machine, machine.cluster.sbatch(SCRIPT))
    assert len(machine.jobs()) == before


def test_without_a_daemon_the_job_runs(machine: Site) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    try:
        conf.write_text(kept.replace(str(machine.address), "127.0.0.1:1"))
        ran(machine, machine.cluster.sbatch(SCRIPT, "-N2", "--comment=fsxwarm:preload=/x"))
    finally:
        conf.write_text(kept)


def test_a_prolog_waits_no_longer_than_it_may(machine: Site) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    data = machine.data("slow")
    machine.hold_restores(hold=True)
    try:
        conf.write_text(f"{kept}seconds=8\n")
        began = time.monotonic()
        done = hook(machine, "prolog.sh", **job_of(f"fsxwarm:preload={data}"))
        assert time.monotonic() - began < 12
        assert done.returncode == 0
        assert b"begins without all of its data: job" in done.stderr

        conf.write_text(f"{kept}seconds=2\nstrict=1\n")
        assert hook(machine, "prolog.sh", **job_of(f"fsxwarm:preload={data}")).returncode == 1
    finally:
        conf.write_text(kept)
        machine.hold_restores(hold=False)
    assert hook(machine, "epilog.sh", **job_of(f"fsxwarm:preload={data}")).returncode == 0


def test_a_hook_does_not_wait_for_what_hangs(machine: Site, tmp_path: Path) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    hanging = tmp_path / "munge"
    hanging.write_text("#!/bin/sh\ntrap '' TERM\nexec sleep 600\n")
    hanging.chmod(0o755)
    try:
        conf.write_text(f"{kept}seconds=2\nPATH={tmp_path}:/usr/bin:/bin\n")
        began = time.monotonic()
        done = hook(machine, "prolog.sh", **job_of("fsxwarm:preload=/x"))
        assert (done.returncode, time.monotonic() - began < 8) == (0, True)
        assert b"no answer within 1 s" in done.stderr
    finally:
        conf.write_text(kept)


@contextmanager
def impostor(answers: Callable[[bytes], bytes]) -> Iterator[str]:
    """Something else than the daemon that answers requests; its address."""

    class Talk(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = answers(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name for it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


READY = b'{"to": "fsxwarm", "nonce": "nnnnnnnnnnnnnnnn", "status": 200}\n{"state": "ready", "message": "all"}'


@pytest.mark.parametrize(
    ("maker", "answer", "said"),
    [
        ("", b"", "no daemon of fsxwarm"),
        ("", b'{"state": "ready", "message": "all"}', "no daemon of fsxwarm"),
        ("", b"MUNGE:rubbish", "cannot be read"),
        ("", b"\0\xff" * 100, "no daemon of fsxwarm"),
        ("", b'{"error": {"kind": "no_permission", "message": "a \\"b\\" $(id) `id`"}}', 'as it is: a "b" $(id) `id`'),
        ("root", READY, "not for this request"),
        ("games", READY, "not for this request"),
    ],
)
def test_what_answers_falsely_is_not_believed(machine: Site, maker: str, answer: bytes, said: str) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    if maker:
        answer = machine.cluster.munge.credential(answer, user=None if maker == "root" else maker)
    try:
        with impostor(lambda _: answer) as address:
            conf.write_text(f"{kept}daemon={address}\n")
            done = hook(machine, "prolog.sh", **job_of("fsxwarm:preload=/x"))
        assert done.returncode == 0
        assert said in done.stderr.decode()
    finally:
        conf.write_text(kept)


def test_an_answer_to_the_very_request_is_believed_of_root_alone(machine: Site) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    munge = machine.cluster.munge
    try:
        for maker, said in ((None, "job 99: all"), ("games", f"not the daemon's, but of uid {UID}")):

            def answers(request: bytes, maker: str | None = maker) -> bytes:
                nonce = json.loads(munge.opened(request).partition(b"\n")[0])["nonce"]
                return munge.credential(READY.replace(b"n" * 16, nonce.encode()), user=maker)

            with impostor(answers) as address:
                conf.write_text(f"{kept}daemon={address}\n")
                done = hook(machine, "prolog.sh", **job_of("fsxwarm:preload=/x"))
            assert (done.returncode, said in done.stderr.decode()) == (0, True), done.stderr
    finally:
        conf.write_text(kept)


@pytest.mark.parametrize("broken", ["if then (", "exit 7", "seconds=many", "PATH=/nonexistent"])
@pytest.mark.parametrize("name", ["prolog.sh", "epilog.sh", "prologctld.sh", "epilogctld.sh"])
def test_a_broken_configuration_drains_nothing(machine: Site, name: str, broken: str) -> None:
    conf = machine.hooks / "fsxwarm.conf"
    kept = conf.read_text()
    try:
        conf.write_text(f"{kept}{broken}\n")
        assert hook(machine, name, **job_of("fsxwarm:preload=/x")).returncode == 0
    finally:
        conf.write_text(kept)


def test_a_hook_that_asks_nothing_costs_nothing(machine: Site) -> None:
    began = time.monotonic()
    assert hook(machine, "prolog.sh", SLURM_JOB_ID="1", SLURM_JOB_UID="5").returncode == 0
    assert time.monotonic() - began < 1


def test_the_shipped_files_are_sound() -> None:
    for script in HOOKS.glob("*.sh"):
        done = subprocess.run(["sh", "-n", script], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_job_whose_data_is_warm_is_hardly_delayed(machine: Site) -> None:
    data = machine.data("quick")
    took = []
    for _ in range(8):
        began = time.perf_counter()
        assert hook(machine, "prolog.sh", **job_of(f"fsxwarm:preload={data}")).returncode == 0
        took.append(time.perf_counter() - began)
    assert min(took[1:]) < 0.15  # the best: others use this machine too
    assert machine.released(data) == 0
