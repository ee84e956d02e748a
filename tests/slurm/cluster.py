"""A real Slurm on loopback, without systemd: munged, slurmctld and four slurmd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from slurm.munge import Munge, munged

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "setpriv")
USER = "games"
"""An ordinary user that every Debian has; his group has his name."""
NODES = ("n1", "n2", "n3", "n4")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_STARTS_WITHIN = 60.0
_ENDS_WITHIN = 60.0
_LOOK_EVERY = 0.1
"""Slurm tells nobody when a job or node changes: whoever wants to know asks, now and then."""

_CONF = """\
ClusterName=fsxwarmtest
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=slurm
MailProg=/bin/true
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=15
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/log/slurmctld.pid
SlurmdPidFile={folder}/log/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=100000,batch_sched_delay=0,default_queue_depth=1000
ReturnToService=2
SlurmdTimeout=60
PrologEpilogTimeout=60
BatchStartTimeout=60
KillWait=5
MinJobAge=600
{extra}
"""


@dataclass
class Cluster:
    """A running Slurm in `folder`. `environ` is what its clients run with; its daemons have nothing but a PATH."""

    folder: Path
    munge: Munge
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        return self.folder / "etc" / "slurm.conf"

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": _PATH, "SLURM_CONF": str(self.conf), "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - nobody writes there

    def run(
        self, *command: str | Path, user: str | None = None, environ: Mapping[str, str] | None = None, stdin: str = "",
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command as a user (None: as root) with the cluster's configuration."""
        words = [str(word) for word in command]
        if user is not None:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *words]
        done = subprocess.run(
            words, env=self.environ | dict(environ or {}), input=stdin, capture_output=True, text=True, check=False,
            timeout=120, cwd="/tmp",  # noqa: S108 - a folder that is on every node
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def sbatch(self, script: str, *options: str, user: str = USER) -> str:
        """Submit a batch script; the job's id."""
        output = self.folder / "out" / "%j"
        done = self.run("sbatch", "--parsable", f"--output={output}", *options, user=user, stdin=script)
        return done.stdout.strip()

    def output(self, job: str) -> str:
        """What a batch job has printed."""
        return (self.folder / "out" / job).read_text()

    def job(self, job: str) -> dict[str, str]:
        """A job's fields, as scontrol shows them."""
        shown = self.run("scontrol", "--oneliner", "show", "job", job).stdout
        return dict(word.partition("=")[::2] for word in shown.split() if "=" in word)

    def wait(self, job: str, *states: str, seconds: float = _ENDS_WITHIN) -> dict[str, str]:
        """Wait until a job is in one of these states."""
        return self.until(job, lambda shown: shown["JobState"] in states, seconds=seconds)

    def until(self, job: str, is_so: object, *, seconds: float = _ENDS_WITHIN) -> dict[str, str]:
        """Wait until something holds for a job's fields."""
        assert callable(is_so)
        until = time.monotonic() + seconds
        while not is_so(shown := self._shown(job)):
            if time.monotonic() > until:
                raise AssertionError(f"job {job} is {shown}\n{self.logs()}")
            time.sleep(_LOOK_EVERY)
        return shown

    def _shown(self, job: str) -> dict[str, str]:
        """A job's fields; while slurmctld starts, its jobs are not there yet."""
        try:
            return self.job(job)
        except AssertionError:
            return {"JobState": "", "Reason": ""}

    def states(self) -> dict[str, str]:
        """Each node's state."""
        shown = self.run("sinfo", "-N", "-h", "-o", "%N %T").stdout
        return dict(line.split() for line in shown.splitlines())

    def logs(self) -> str:
        """The ends of the logs."""
        logs = sorted((self.folder / "log").glob("*.log"))
        return "\n".join(f"== {log.name}\n" + "\n".join(log.read_text().splitlines()[-40:]) for log in logs)

    def start(self, name: str) -> None:
        """Start `slurmctld`, or the slurmd of a node."""
        command = ["slurmctld", "-D"] if name == "slurmctld" else ["slurmd", "-D", "-N", name]
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                [*command, "-f", str(self.conf)], env={"PATH": _PATH}, stdout=out, stderr=out, cwd="/"
            )

    def kill(self, name: str) -> None:
        """Kill -9 it."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End all: slurmd first."""
        self.run("scancel", "--user=root", check=False)
        self.run("scancel", f"--user={USER}", check=False)
        for name in (*NODES, "slurmctld"):
            process = self.processes.pop(name, None)
            if process is not None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def await_nodes(self) -> None:
        """Wait until all nodes are idle."""
        until = time.monotonic() + _STARTS_WITHIN
        while True:
            done = self.run("sinfo", "-N", "-h", "-o", "%T", check=False)
            if done.returncode == 0 and set(done.stdout.split()) == {"idle"}:
                return
            if time.monotonic() > until:
                raise AssertionError(f"the nodes do not come up: {done.stdout}{done.stderr}\n{self.logs()}")
            time.sleep(_LOOK_EVERY)


def missing() -> list[str]:
    """The programs that a real Slurm needs and this machine lacks."""
    if os.geteuid() != 0:
        return ["root's rights"]
    return [program for program in PROGRAMS if shutil.which(program, path=_PATH) is None]


def lacking(*things: str) -> NoReturn:
    """Skip the test for want of something; fail it in CI, where all is there."""
    told = f"not without {', '.join(things)}: run as root with slurmctld slurmd slurm-client munge faketime lua5.4"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


@contextmanager
def slurm(
    *extra: str, etc: Mapping[str, str] | None = None, folders: Mapping[str, Path] | None = None, cpus: int = 16
) -> Iterator[Cluster]:
    """Start a cluster. `extra`: lines of slurm.conf; `{etc}` in them is the folder with `etc`'s files and `folders`."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        with ExitStack() as stack:
            munge = stack.enter_context(munged(folder / "munge"))
            cluster = Cluster(folder, munge)
            for name, source in (folders or {}).items():
                shutil.copytree(source, folder / "etc" / name)
            _prepare(cluster, extra, etc or {}, cpus)
            stack.callback(cluster.stop)
            for name in ("slurmctld", *NODES):
                cluster.start(name)
            cluster.await_nodes()
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(cluster: Cluster, extra: Sequence[str], etc: Mapping[str, str], cpus: int) -> None:
    folder = cluster.folder
    folder.chmod(0o755)
    for name in ("state", "log", "etc", "out", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(exist_ok=True)
    for name in ("state", "log"):
        shutil.chown(folder / name, "slurm", "slurm")
    shutil.chown(folder / "out", USER, USER)
    for name, text in etc.items():
        (folder / "etc" / name).write_text(text)
        (folder / "etc" / name).chmod(0o755)
    port, *ports = free_ports(1 + len(NODES))
    lines = [line.replace("{etc}", str(folder / "etc")) for line in extra]
    lines += [
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={its} CPUs={cpus} RealMemory=4000"
        for node, its in zip(NODES, ports, strict=True)
    ]
    lines.append(f"PartitionName=gpu Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES")
    lines.append(f"PartitionName=cpu Nodes={NODES[0]} MaxTime=INFINITE State=UP OverSubscribe=YES")
    text = _CONF.format(port=port, munge=cluster.munge.socket, folder=folder, extra="\n".join(lines))
    cluster.conf.write_text(text)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at just now."""
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in socks]
