"""What the API says of a request that is wrong: where it is and what to write, in words of no library."""

from __future__ import annotations

import pytest

from daemon.conftest import Face
from daemon.talk import ask

GOOD = {"kind": "preload", "paths": ["/fsx/a"]}
A_PATH = 'must be a string or {"path_b64": "…"}'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "the request: must be an object"),
        ({"paths": ["/fsx/a"]}, "kind: is missing"),
        ({**GOOD, "kind": "warm"}, "kind: must be 'preload', 'release' or 'keep_warm'"),
        ({**GOOD, "paths": "/fsx/a"}, "paths: must be a list"),
        ({**GOOD, "paths": [3]}, f"paths[0]: {A_PATH}"),
        ({**GOOD, "paths": ["/fsx/a", None, 3]}, f"paths[1]: {A_PATH} (and 1 more mistake)"),
        ({**GOOD, "paths": ["/" * 200_000]}, "paths[0]: is longer than 131,072 characters"),
        ({**GOOD, "paths": [{"path_b64": 3}]}, f"paths[0]: {A_PATH}"),
        ({**GOOD, "paths": [{}]}, f"paths[0]: {A_PATH}"),
        ({**GOOD, "paths": [{"path": "/fsx"}]}, f"paths[0]: {A_PATH}"),
        ({**GOOD, "paths": [{"path_b64": "!"}]}, "paths[0]: path_b64 is no base64"),
        ({**GOOD, "paths": ["a"]}, "paths[0]: must be an absolute path or an S3 address"),
        ({**GOOD, "options": {"ready": 3}}, "options.ready: must be at most 1"),
        ({**GOOD, "options": {"ready": "x"}}, "options.ready: must be a number"),
        ({**GOOD, "bogus": 1, "priority": "x", "label": 1}, "priority: must be a whole number (and 2 more mistakes)"),
        ({**GOOD, "bogus": 1}, "bogus: there is no such field"),
    ],
)
async def test_a_mistake_is_told_in_plain_words(face: Face, body: object, says: str) -> None:
    answer = await ask(face.path, "POST", "/v1/jobs", body)
    assert (answer.status, answer.kind) == (400, "usage")
    assert answer.json["error"]["message"] == says


async def test_a_parameter_and_what_is_no_json(face: Face) -> None:
    answer = await ask(face.path, "GET", "/v1/jobs?limit=many")
    assert answer.json["error"]["message"] == "limit: must be a whole number"
    answer = await ask(face.path, "POST", "/v1/jobs", b"{")
    assert answer.json["error"]["message"].startswith("the request: is no JSON: EOF")
