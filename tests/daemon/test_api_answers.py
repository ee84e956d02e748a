from __future__ import annotations

import asyncio
import base64
import json
import subprocess

from daemon.conftest import Face
from daemon.talk import ask
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.engine.overview import Overview, Room, Sample, Slow, Stock
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.job import Event, Failure

PRELOAD = {"kind": "preload", "paths": ["/fsx/a"]}


async def test_a_job_is_taken_on_shown_changed_and_let_go_of(face: Face) -> None:
    taken = await ask(face.path, "POST", "/v1/jobs", PRELOAD)
    assert taken.status == 202
    job = taken.json["id"]
    assert (await ask(face.path, "GET", f"/v1/jobs/{job}")).json == taken.json
    assert [one["id"] for one in (await ask(face.path, "GET", "/v1/jobs")).json["jobs"]] == [job]
    changed = await ask(face.path, "PATCH", f"/v1/jobs/{job}", {"priority": 90})
    assert changed.json["priority"] == 90
    gone = await ask(face.path, "DELETE", f"/v1/jobs/{job}")
    assert gone.json["phase"] == "cancelled"
    assert gone.json["exit"] == 130


async def test_every_wish_reaches_the_core(face: Face) -> None:
    options = {"ready": 0.2, "deadline": 60.0, "fit": True, "order": "largest"}
    wish = {
        **PRELOAD, "files": ["/fsx/l", {"path_b64": "L2ZzeC//"}], "include": ["*.tar"], "exclude": ["x/**"],
        "options": options, "priority": 7, "label": "epoch 0", "slurm_job_id": "12_3",
    }  # fmt: skip
    answer = await ask(face.path, "POST", "/v1/jobs", wish)
    request = face.core.all[answer.json["id"]].request
    assert (request.paths, request.include, request.exclude) == ((b"/fsx/a",), ("*.tar",), ("x/**",))
    assert (request.priority, request.label, request.slurm_job_id) == (7, "epoch 0", "12_3")
    assert (request.options.ready, request.options.deadline, request.options.fit) == (0.2, 60.0, True)
    assert answer.json["listed"] == 2
    assert answer.json["options"]["order"] == "largest"


async def test_names_that_are_no_utf8_come_back_exactly(face: Face) -> None:
    path = b"/fsx/\xff\n"
    answer = await ask(face.path, "POST", "/v1/jobs", {"kind": "preload", "paths": [naming.wish(path)]})
    assert [naming.exact(name) for name in answer.json["paths"]] == [path]
    await ask(face.path, "GET", "/v1/coverage?path=/fsx/%FF%0A")
    assert face.core.asked[-1][0] == path


async def test_a_long_poll_answers_as_soon_as_the_job_has_ended(face: Face) -> None:
    job = (await ask(face.path, "POST", "/v1/jobs", PRELOAD)).json["id"]
    waiting = asyncio.create_task(ask(face.path, "GET", f"/v1/jobs/{job}/wait?timeout=30"))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await face.core.finish(job, Exit.INCOMPLETE)
    assert (await waiting).json["exit"] == 3


async def test_a_long_poll_gives_up_in_time(face: Face) -> None:
    job = (await ask(face.path, "POST", "/v1/jobs", PRELOAD)).json["id"]
    answer = await ask(face.path, "GET", f"/v1/jobs/{job}/wait?timeout=0.01")
    assert (answer.status, answer.json["phase"]) == (200, "queued")


async def test_waiters_hear_of_a_restart(face: Face) -> None:
    job = (await ask(face.path, "POST", "/v1/jobs", PRELOAD)).json["id"]
    waiting = asyncio.create_task(ask(face.path, "GET", f"/v1/jobs/{job}/wait"))
    await asyncio.sleep(0.05)
    await face.core.drain()
    answer = await waiting
    assert (answer.status, answer.kind) == (503, "restarting")


async def test_failures_come_page_by_page(face: Face) -> None:
    job = (await ask(face.path, "POST", "/v1/jobs", PRELOAD)).json["id"]
    face.core.misses[job] = [Failure(n, 1.0, b"/fsx/%d" % n, "failed", "restore_failed") for n in range(1, 6)]
    first = await ask(face.path, "GET", f"/v1/jobs/{job}/failures?limit=3")
    rest = await ask(face.path, "GET", f"/v1/jobs/{job}/failures?limit=3&after={first.json['next']}")
    assert [one["number"] for page in (first, rest) for one in page.json["failures"]] == [1, 2, 3, 4, 5]
    assert rest.json["next"] is None


async def test_leases_are_taken_renewed_and_ended(face: Face) -> None:
    lease = (await ask(face.path, "POST", "/v1/leases", {"path": "/fsx/a", "seconds": 60})).json
    assert (await ask(face.path, "GET", "/v1/leases")).json["leases"] == [lease]
    renewed = await ask(face.path, "PATCH", f"/v1/leases/{lease['id']}", {"seconds": 99})
    assert renewed.json["expires"] == 99
    assert (await ask(face.path, "DELETE", f"/v1/leases/{lease['id']}")).status == 204
    assert (await ask(face.path, "DELETE", f"/v1/leases/{lease['id']}")).kind == "no_such_lease"
    outside = await ask(face.path, "POST", "/v1/leases", {"path": "/etc", "seconds": 60})
    assert (outside.status, outside.kind) == (422, "not_lustre")


async def test_events_are_lines_and_end_when_the_daemon_does(face: Face) -> None:
    listening = asyncio.create_task(ask(face.path, "GET", "/v1/events"))
    await face.core.heard_by(1)
    await ask(face.path, "POST", "/v1/jobs", PRELOAD)
    await face.core.tell(Event(3.0, "trouble", "", {"path": b"/fsx/\xff", "errno": 5}))
    await face.core.drain()
    lines = [json.loads(line) for line in (await listening).body.splitlines()]
    assert [line["kind"] for line in lines] == ["job_queued", "trouble"]
    assert lines[1]["data"] == {"path": "/fsx/\\xff", "path_b64": "L2ZzeC//", "errno": 5}


async def test_a_listener_that_hangs_up_is_forgotten(face: Face) -> None:
    _, writer = await asyncio.open_unix_connection(face.path)
    writer.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    await face.core.heard_by(1)
    writer.close()
    await face.core.heard_by(0)
    assert face.server.gate.count == 0


async def test_curl_works(face: Face) -> None:
    def curl(*arguments: str) -> str:
        command = ["curl", "-s", "--unix-socket", face.path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout

    taken = await asyncio.to_thread(curl, "-d", json.dumps(PRELOAD), "http://localhost/v1/jobs")
    assert json.loads(taken)["phase"] == "queued"
    assert json.loads(await asyncio.to_thread(curl, "http://localhost/v1/health"))["ok"] is True


async def test_the_client_has_it_all(face: Face) -> None:
    def use() -> list[object]:
        with Client(face.path) as client:
            job = client.submit({"kind": "preload", "paths": ["/fsx/a"]})["id"]
            lease = client.lease({"path": "/fsx/a", "seconds": 5.0})["id"]
            seen: list[object] = [
                client.jobs()[0]["id"] == job,
                client.job(job)["phase"],
                client.wait(job, 0.01)["final"],
                client.set_priority(job, 3)["priority"],
                client.cancel(job)["phase"],
                list(client.failures(job)),
                client.renew(lease, 9.0)["expires"],
                len(client.leases()),
                client.release_lease(lease),
                client.coverage(b"/fsx/\xff")["coverage"],
                client.health()["draining"],
            ]
            try:
                client.job("none/../such?x")
            except FsxwarmError as error:
                seen.append(error.kind)
            return seen

    assert await asyncio.to_thread(use) == [
        True, "queued", False, 3, "cancelled", [], 9.0, 1, None, 1.0, False, Kind.NO_SUCH_JOB,
    ]  # fmt: skip


async def test_the_client_counts(face: Face) -> None:
    def use() -> wire.Counted:
        with Client(face.path) as client:
            return client.count({"paths": ["/fsx"], "files": [naming.wish(b"/fsx/\xfe")], "depth": 1, "flags": True})

    counted = await asyncio.to_thread(use)
    assert [naming.exact(folder) for folder in counted["folders"]] == [b"/fsx/\xff"]
    assert counted["folders"][0]["coverage"] == 0.25
    assert counted["flags"]["dirty"] == {"files": 0, "bytes": 0}
    assert counted["missing"]["count"] == 1
    assert (await ask(face.path, "POST", "/v1/coverage", {})).kind == "usage"


async def test_the_client_hears_events(face: Face) -> None:
    def listen() -> list[str]:
        with Client(face.path) as client:
            return [event["kind"] for event in client.events()]

    listening = asyncio.create_task(asyncio.to_thread(listen))
    await face.core.heard_by(1)
    await ask(face.path, "POST", "/v1/jobs", PRELOAD)
    await face.core.drain()
    assert await listening == ["job_queued"]


async def test_the_overview_has_ones_own_jobs_those_that_go_on_first(face: Face) -> None:
    for _ in range(3):
        await ask(face.path, "POST", "/v1/jobs", PRELOAD)
    await face.core.finish("j2")
    mine = Slow(b"/fsx/slow\xff", 10, ("j1",), "in_flight", 7.5, -1, 1)
    face.core.glance = Overview(
        5.0,
        "files/s",
        [mine],
        [Room(b"/fsx", 1, 10, 2, 3, False)],
        [Stock(b"/fsx/s", 1, 2, 3, 4, 5.0)],
        [Sample(1.0, 8, 4, 2, 1)],
    )
    answer = (await ask(face.path, "GET", "/v1/overview")).json
    assert [job["id"] for job in answer["jobs"]] == ["j3", "j1", "j2"]
    assert answer["slowest"][0]["path_b64"] == base64.b64encode(b"/fsx/slow\xff").decode()
    assert answer["slowest"][0]["moved"] is None
    assert answer["rooms"] == [{"path": "/fsx", "free": 1, "total": 10, "low": 2, "high": 3, "dry_run": False}]
    resident, released = {"files": 1, "bytes": 2}, {"files": 3, "bytes": 4}
    assert answer["stocks"] == [{"path": "/fsx/s", "resident": resident, "released": released, "at": 5.0}]
    assert answer["past"] == [{"at": 1.0, "window": 8, "in_flight": 4, "restored_files": 2, "restored_bytes": 1}]
    with Client(face.path) as client:
        assert (await asyncio.to_thread(client.overview)) == answer
