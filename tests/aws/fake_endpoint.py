"""FSx, CloudWatch Logs and IAM behind one HTTP address, for boto3 to talk to.

Every request and every answer is checked against botocore's own service model, so that neither side can make up a
field. `trouble` says what goes wrong with the next calls: throttling, any error code, slowness, a cut connection.
What it does not know: tags, pagination of file systems beyond `page`, other file systems' types.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import botocore.session
from botocore.validate import ParamValidator

Json = dict[str, Any]


@dataclass(frozen=True)
class Released:
    """What a release task came to: files that were to be released, how many were, and the paths of those that were not.

    With `failed` the task counts as FAILED, as the real ones do; `deliver` puts its report into S3.
    """

    total: int
    released: int
    failed: list[str] = field(default_factory=list)


_TARGETS = {"AWSSimbaAPIService_v20180301": "fsx", "Logs_20140328": "logs"}
_RUNNING = {"PENDING", "EXECUTING"}
_IAM_ANSWER = (
    '<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult>'
    "<IsTruncated>false</IsTruncated><EvaluationResults><member><EvalActionName>{action}</EvalActionName>"
    "<EvalDecision>{decision}</EvalDecision></member></EvaluationResults></SimulatePrincipalPolicyResult>"
    "</SimulatePrincipalPolicyResponse>"
)
_IAM_ERROR = (
    '<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type>'
    "<Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class RefusalError(Exception):
    """An error that the service answers with."""

    def __init__(self, code: str, message: str = "as the test wants it", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


@dataclass
class Trouble:
    """What goes wrong with the next `times` calls of an operation."""

    operation: str
    code: str = ""
    times: int = 1
    status: int = 400
    seconds: float = 0.0
    cut: bool = False
    after: bool = False
    """Cut only once the work is done: the answer is lost."""


@dataclass
class Account:
    """What the services know. File systems and associations are as the service's API shows them."""

    file_systems: list[Json] = field(default_factory=list)
    associations: list[Json] = field(default_factory=list)
    tasks: list[Json] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    trouble: list[Trouble] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[tuple[str, Json]] = field(default_factory=list)
    denied: set[str] | None = None
    """The actions that IAM, asked, calls denied; None: it may not be asked."""
    page: int = 25
    task_looks: int = 1
    """How often a task is seen executing before it has ended."""
    on_release: Callable[[list[str], int], Released] = lambda _paths, _days: Released(10, 10)
    """What a release task of some paths and days does, at its end."""
    looked: threading.Event = field(default_factory=threading.Event)
    """Set once somebody has looked at a task."""
    deliver: Callable[[str, str], None] = lambda _uri, _text: None
    """Puts a report where a task wants it: an S3 address and its text."""

    def operation(self, service: str, name: str, fields: Json) -> Json:
        self.calls[name] += 1
        self.requests.append((name, fields))
        return getattr(self, f"_{service}_{_snake(name)}")(fields)  # type: ignore[no-any-return]  # one method an operation

    def _pages(self, items: list[Json], fields: Json, name: str) -> Json:
        start = int(fields.get("NextToken", "0").removeprefix("token-"))
        size = min(self.page, fields.get("MaxResults", self.page))
        answer: Json = {name: items[start : start + size]}
        if start + size < len(items):
            answer["NextToken"] = f"token-{start + size}"
        return answer

    def _fsx_describe_file_systems(self, fields: Json) -> Json:
        wanted = fields.get("FileSystemIds")
        found = [fs for fs in self.file_systems if not wanted or fs["FileSystemId"] in wanted]
        if wanted and len(found) < len(wanted):
            raise RefusalError("FileSystemNotFound", f"File system '{wanted[0]}' does not exist.")
        return self._pages(found, fields, "FileSystems")

    def _fsx_describe_data_repository_associations(self, fields: Json) -> Json:
        assert fields["MaxResults"] <= 25
        wanted = next(f["Values"] for f in fields["Filters"] if f["Name"] == "file-system-id")
        found = [one for one in self.associations if one["FileSystemId"] in wanted]
        return self._pages(found, fields, "Associations")

    def _fsx_create_data_repository_task(self, fields: Json) -> Json:
        for task in self.tasks:
            if task["token"] == fields["ClientRequestToken"]:
                return {"DataRepositoryTask": _shown(task)}
        if self._busy(fields["FileSystemId"]):
            raise RefusalError("DataRepositoryTaskExecuting", "An existing data repository task is currently executing")
        if len(fields["Paths"]) > 32:
            raise RefusalError("BadRequest", "at most 32 paths")
        task = {
            "TaskId": f"task-{len(self.tasks):017x}",
            "Lifecycle": "PENDING",
            "Type": fields["Type"],
            "CreationTime": _NOW,
            "FileSystemId": fields["FileSystemId"],
            "Paths": fields["Paths"],
            "Report": fields["Report"],
            "ReleaseConfiguration": fields["ReleaseConfiguration"],
            "token": fields["ClientRequestToken"],
            "looks": self.task_looks,
        }
        self.tasks.append(task)
        return {"DataRepositoryTask": _shown(task)}

    def _busy(self, system: str) -> bool:
        """Whether a task runs on a file system; each time this is asked, it is nearer to its end."""
        running = [one for one in self.tasks if one["FileSystemId"] == system and one["Lifecycle"] in _RUNNING]
        for task in running:
            self._look(task)
        return bool(running)

    def _fsx_describe_data_repository_tasks(self, fields: Json) -> Json:
        self.looked.set()
        found = [task for task in self.tasks if task["TaskId"] in fields["TaskIds"]]
        if len(found) < len(fields["TaskIds"]):
            raise RefusalError("DataRepositoryTaskNotFound", "no such task")
        for task in found:
            if task["Lifecycle"] in _RUNNING:
                self._look(task)
        return {"DataRepositoryTasks": [_shown(task) for task in found]}

    def _look(self, task: Json) -> None:
        """A running task is seen once more: it executes, or has ended."""
        task["looks"] -= 1
        task["Lifecycle"] = "EXECUTING"
        if task["looks"] < 0:
            self._end(task)

    def _end(self, task: Json) -> None:
        days = task["ReleaseConfiguration"]["DurationSinceLastAccess"]["Value"]
        result = self.on_release(task["Paths"], days)
        count = len(result.failed)
        task["Lifecycle"] = "FAILED" if count else "SUCCEEDED"
        task["Status"] = {"TotalCount": result.total, "SucceededCount": result.released, "FailedCount": count}
        if count:
            task["FailureDetails"] = {"Message": f"{count} files could not be released"}
            if task["Report"]["Enabled"]:
                lines = [f"{_csv(path)},failed,NotReleased\n" for path in result.failed]
                self.deliver(f"{task['Report']['Path']}/{task['TaskId']}/failures.csv", "".join(lines))

    def _logs_filter_log_events(self, fields: Json) -> Json:
        found = [
            {key: event[key] for key in ("timestamp", "message")}
            for event in self.events
            if event["group"] == fields["logGroupName"]
            and event["stream"] in fields["logStreamNames"]
            and fields["startTime"] <= event["timestamp"] < fields["endTime"]
            and fields["filterPattern"].strip('"') in event["message"]
        ]
        start = int(fields.get("nextToken", "0"))
        answer: Json = {"events": found[start : start + 100]}
        if start + 100 < len(found):
            answer["nextToken"] = str(start + 100)
        return answer

    def log(self, system: str, message: str, *, at: float | None = None, group: str = "/aws/fsx/lustre") -> None:
        """Let a file system log something, now or at a moment in seconds since the epoch."""
        moment = int((time.time() if at is None else at) * 1000)
        self.events.append({"group": group, "stream": f"datarepo_{system}", "timestamp": moment, "message": message})


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _shown(task: Json) -> Json:
    return {key: value for key, value in task.items() if key not in {"token", "looks"}}


def _csv(path: str) -> str:
    """A path as the service's reports have it (user guide, "Working with task completion reports")."""
    if path[0] in "@+-=":
        path = f'"{path}"'
    quoted = path.replace('"', '""')
    return f'"{quoted}"' if '"' in path or "," in path else path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    account: Account
    models: dict[str, Any]

    def do_POST(self) -> None:
        if "X-Amz-Target" not in self.headers:
            self._iam()
            return
        prefix, _, operation = self.headers["X-Amz-Target"].partition(".")
        service = _TARGETS[prefix]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            trouble = self._trouble(operation)
            cut = trouble is not None and trouble.cut
            if trouble is None or trouble.after or not cut:
                answer, status = self._answer(service, operation, json.loads(body)), 200
            if cut:
                self.close_connection = True
                return
        except RefusalError as refusal:
            answer, status = (
                {"__type": refusal.code, "message": refusal.message, "Message": refusal.message},
                refusal.status,
            )
        self._send(status, "application/x-amz-json-1.1", json.dumps(answer, default=datetime.timestamp).encode())

    def _iam(self) -> None:
        """SimulatePrincipalPolicy, which IAM takes as a form and answers in XML."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        (action,) = form["ActionNames.member.1"]
        if self.account.denied is None:
            self._send(403, "text/xml", _IAM_ERROR.encode())
            return
        decision = "implicitDeny" if action in self.account.denied else "allowed"
        self._send(200, "text/xml", _IAM_ANSWER.format(action=action, decision=decision).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _trouble(self, operation: str) -> Trouble | None:
        for trouble in self.account.trouble:
            if trouble.operation in {operation, "*"} and trouble.times > 0:
                trouble.times -= 1
                threading.Event().wait(trouble.seconds)
                if trouble.code:
                    self.account.calls[f"{operation} refused"] += 1
                    raise RefusalError(trouble.code, status=trouble.status)
                return trouble
        return None

    def _answer(self, service: str, operation: str, fields: Json) -> Json:
        model = self.models[service].operation_model(operation)
        _check(fields, model.input_shape, f"request of {operation}")
        answer = self.account.operation(service, operation, fields)
        _check(answer, model.output_shape, f"answer of {operation}")
        return answer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


def _check(fields: Json, shape: Any, what: str) -> None:
    found = ParamValidator().validate(fields, shape)
    if found.has_errors():
        raise RefusalError("BadRequest", f"{what}: {found.generate_report()}")


@contextmanager
def serve(account: Account) -> Iterator[str]:
    """Serve an account until the block ends; yields the address."""
    session = botocore.session.Session()
    models = {name: session.get_service_model(name) for name in ("fsx", "logs")}
    handler = type("Handler", (_Handler,), {"account": account, "models": models})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def file_system(number: int = 1, **lustre: Any) -> Json:
    """A file system as DescribeFileSystems shows it; `lustre` changes its LustreConfiguration."""
    name = f"fs-{number:017x}"
    top = {key: lustre.pop(key) for key in ("StorageType", "FileSystemTypeVersion", "StorageCapacity") if key in lustre}
    return {
        "FileSystemId": name,
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 1200,
        "StorageType": "SSD",
        "FileSystemTypeVersion": "2.15",
        "ResourceARN": f"arn:aws:fsx:us-east-1:123456789012:file-system/{name}",
        "DNSName": f"{name}.fsx.us-east-1.amazonaws.com",
        "LustreConfiguration": {
            "MountName": f"mnt{number}",
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
            "DataCompressionType": "LZ4",
            "LogConfiguration": {
                "Level": "WARN_ERROR",
                "Destination": "arn:aws:logs:us-east-1:123456789012:log-group:/aws/fsx/lustre",
            },
            "MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 1500},
            **lustre,
        },
        **top,
    }


def association(system: str, folder: str, uri: str, number: int = 1, **more: Any) -> Json:
    """An association as DescribeDataRepositoryAssociations shows it."""
    return {
        "AssociationId": f"dra-{number:017x}",
        "FileSystemId": system,
        "Lifecycle": "AVAILABLE",
        "FileSystemPath": folder,
        "DataRepositoryPath": uri,
        "S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}, "AutoExportPolicy": {"Events": ["NEW"]}},
        **more,
    }
