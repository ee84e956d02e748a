"""Measures on a real Slurm: delay where all is warm, many jobs for one dataset, and what kill -9 leaves behind.

python tests/slurm/measure.py [delay] [crowd] [kills]       (as root; make slurm)
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from slurm.cluster import NODES, missing
from slurm.site import HOOKS, UID, Site, site

STAGES = {name: (HOOKS / name).read_text() for name in ("burst_buffer.lua", "burst_buffer.conf")}
ALL = (
    "BurstBufferType=burst_buffer/lua",
    "PrologFlags=Alloc",
    "Prolog={etc}/fsxwarm/prolog.sh",
    "Epilog={etc}/fsxwarm/epilog.sh",
    "PrologSlurmctld={etc}/fsxwarm/prologctld.sh",
    "EpilogSlurmctld={etc}/fsxwarm/epilogctld.sh",
)
_NO_BUFFERS = 6
"""Bytes of slurmctld's file of burst buffers when there are none."""
DELAY = 0.150
"""Seconds that a job may wait for a hook when all of its paths were found warm within the last minute."""


def delay(calls: int = 40) -> bool:
    """How long a Prolog takes where all is warm."""
    with site() as machine:
        data = machine.data("warm")
        took = []
        for number in range(calls + 1):
            environ = {
                "SLURM_JOB_ID": str(1000 + number),
                "SLURM_JOB_UID": str(UID),
                "SLURM_JOB_COMMENT": f"fsxwarm:preload={data}",
            }
            began = time.perf_counter()
            subprocess.run([machine.hooks / "prolog.sh"], env=environ, check=True, capture_output=True, timeout=60)
            took.append(time.perf_counter() - began)
        cold, warm = took[0], sorted(took[1:])
        median, worst = statistics.median(warm), warm[int(len(warm) * 0.95)]
        print(f"delay of a Prolog: cold {cold * 1000:.0f} ms; warm {median * 1000:.0f} ms, 95 % {worst * 1000:.0f} ms")
        return worst < DELAY


def crowd(jobs: int = 200) -> bool:
    """Many jobs at once for the same dataset: it is warmed once, and all run."""
    with site(*ALL, etc=STAGES, files=120) as machine:
        data = machine.data("crowd", files=100)
        began = time.monotonic()
        text = f"#!/bin/sh\n#FSXWARM preload={data}\ntrue\n"
        ids = [machine.cluster.sbatch(text) for _ in range(jobs)]
        submitted = time.monotonic() - began
        for job in ids:
            machine.cluster.wait(job, "COMPLETED", "FAILED", "CANCELLED", seconds=300)
        states = [machine.cluster.job(job)["JobState"] for job in ids]
        items = machine.daemon.fsx.control("counters")["items"]
        done = states.count("COMPLETED")
        print(
            f"{jobs} jobs for one dataset of 100 files: submitted in {submitted:.1f} s, {done} completed after"
            f" {time.monotonic() - began:.1f} s; FSx was asked for {items} files"
        )
        return done == jobs and items == 100 and sound(machine)


def kills(points: int = 30, victim: str | None = None) -> bool:
    """Kill -9 of daemon, slurmctld or a slurmd while jobs are staged in, begin, run and end."""
    good = True
    with site(*ALL, etc=STAGES, files=points * 8 + 20) as machine:
        victims: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
            ("daemon", machine.kill_daemon, machine.start_daemon),
            *(
                (
                    name,
                    lambda name=name: machine.cluster.kill(name),  # type: ignore[misc]  # bound now
                    lambda name=name: machine.cluster.start(name),  # type: ignore[misc]  # the same
                )
                for name in ("slurmctld", NODES[0])
            ),
        ]
        victims = [one for one in victims if victim in (None, one[0])]
        for point in range(points):
            name, kill, start = victims[point % len(victims)]
            after = 5.0 * (point + 0.5) / points
            good &= one_kill(machine, point, name, after, kill, start)
        return good and sound(machine)


def one_kill(
    machine: Site, point: int, name: str, after: float, kill: Callable[[], None], start: Callable[[], None]
) -> bool:
    """One point: two jobs, the one staged in, the other warmed by its prologs; both run in the end."""
    folders = [machine.data(f"kill{point}{kind}") for kind in "ab"]
    machine.hold_restores(hold=True)
    ids = [
        machine.cluster.sbatch(f"#!/bin/sh\n#FSXWARM preload={folders[0]}\nsleep 1\n", "--requeue", "-w", NODES[0]),
        machine.cluster.sbatch(
            "#!/bin/sh\nsleep 1\n", "--requeue", "-w", NODES[0], f"--comment=fsxwarm:preload={folders[1]}"
        ),
    ]
    submitted = time.time()
    if name == "slurmctld":
        machine.until(lambda: written_down(machine, submitted), seconds=90)
    thaw = threading.Timer(1.5, machine.hold_restores, kwargs={"hold": False})
    thaw.start()
    time.sleep(after)
    kill()
    time.sleep(0.5)
    start()
    thaw.join()
    machine.until(lambda: machine.cluster.run("scontrol", "ping", check=False).returncode == 0)
    lost = []
    for job in ids:
        try:
            machine.cluster.wait(job, "COMPLETED", seconds=150)
        except AssertionError as error:
            lost.append(str(error).splitlines()[0][:400])
    cold = sum(machine.released(folder) for folder in folders)
    print(
        f"kill -9 {name:<9} after {after:3.1f} s: " + ("; ".join(lost) or "both jobs ran") + f", {cold} files cold",
        flush=True,
    )
    return not lost


def written_down(machine: Site, submitted: float) -> bool:
    """Whether slurmctld has written down its jobs, and that one is being staged in.

    It promises nothing of what it has not. Measured with 22.05: killed within seconds of a job's launch it comes back
    without knowing of it, may launch it again, and drains the node for a "Duplicate jobid", without any hook too. A job
    that was written down as being staged in, when its burst buffer was not yet (which may take half a minute), stays
    pending for ever.
    """
    state = machine.cluster.folder / "state"
    jobs, buffers = state / "job_state", state / "burst_buffer_lua_state"
    return (
        jobs.exists()
        and jobs.stat().st_mtime > submitted
        and buffers.exists()
        and buffers.stat().st_mtime > submitted
        and buffers.stat().st_size > _NO_BUFFERS
    )


def sound(machine: Site) -> bool:
    """Whether no node is drained or down."""
    states = machine.cluster.states()
    print(f"nodes: {', '.join(f'{node} {state}' for node, state in sorted(states.items()))}")
    return len(states) == len(NODES) and not any("drain" in state or "down" in state for state in states.values())


MEASURES = {"delay": delay, "crowd": crowd, "kills": kills}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measures", nargs="*", choices=[*MEASURES, []], help="which; all by default")
    parser.add_argument("--points", type=int, default=30, help="of kills")
    parser.add_argument("--victim", choices=["daemon", "slurmctld", NODES[0]], help="of kills; all in turn by default")
    arguments = parser.parse_args()
    if lacking := missing():
        sys.exit(f"no real Slurm here: {', '.join(lacking)} missing")
    results = {
        name: kills(arguments.points, arguments.victim) if name == "kills" else MEASURES[name]()
        for name in arguments.measures or MEASURES
    }
    sys.exit(
        0 if all(results.values()) else f"not good: {', '.join(name for name, good in results.items() if not good)}"
    )
