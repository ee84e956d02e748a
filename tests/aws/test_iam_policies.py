"""The policies in deploy/iam allow what the code calls, and nothing else."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from fsxwarm.model import actions

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "deploy" / "iam"
FREE = {actions.WHO, actions.SIMULATE}
"""Needs no permission; and is asked, but never needed."""


def _allowed(name: str) -> set[str]:
    policy = json.loads((POLICIES / f"{name}.json").read_text())
    return {action for statement in policy["Statement"] for action in statement["Action"]}


def _called() -> dict[str, str]:
    """The operations that the adapter calls, with the action that each names."""
    found: dict[str, str] = {}
    for source in (ROOT / "src" / "fsxwarm" / "aws").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "call":
                service, operation, action = node.args
                assert isinstance(service, ast.Constant)
                assert isinstance(operation, ast.Constant)
                assert isinstance(action, ast.Attribute)
                found[f"{service.value}.{operation.value}"] = getattr(actions, action.attr)
    return found


def test_every_call_names_an_action_that_the_policies_allow() -> None:
    called = _called()
    assert len(called) >= 9
    assert set(called.values()) - FREE == _allowed("tasks")
    assert set(called.values()) == set(actions.FEATURES)


def test_each_policy_adds_to_the_one_before() -> None:
    assert _allowed("thaw") - _allowed("read-only") == {actions.RESTORE_OBJECT}
    assert _allowed("tasks") - _allowed("thaw") == {actions.CREATE_TASK, actions.DESCRIBE_TASKS}


def test_the_readme_has_each_action_with_its_policy_and_feature() -> None:
    table = [
        line for line in (POLICIES / "README.md").read_text().splitlines() if line.startswith("| `") and ":" in line
    ]
    policies = ["read-only", "thaw", "tasks"]
    expected = []
    for action, feature in actions.FEATURES.items():
        if action not in FREE:
            first = next(name for name in policies if action in _allowed(name))
            expected.append(f"| `{action}` | `{first}.json` | {feature} |")
    assert table == expected


def test_buckets_are_the_only_place_where_objects_may_be_touched() -> None:
    for name in ("read-only", "thaw", "tasks"):
        for statement in json.loads((POLICIES / f"{name}.json").read_text())["Statement"]:
            if any(action.startswith("s3:") for action in statement["Action"]):
                assert statement["Resource"].startswith("arn:aws:s3:::BUCKET")


def test_nothing_else_of_aws_is_reached() -> None:
    users = [
        path.name
        for path in (ROOT / "src" / "fsxwarm").rglob("*.py")
        if any(word in path.read_text() for word in ("import boto3", "from boto3", "import botocore", "from botocore"))
    ]
    assert users == ["calls.py"]
