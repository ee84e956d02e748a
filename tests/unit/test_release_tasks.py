"""What release tasks of FSx are made of: days, paths, reports."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.release_task import Unreleased, in_tasks, inner_path, outermost, read_report, whole_days


@pytest.mark.parametrize(("seconds", "days"), [(0, 0), (86400, 1), (7 * 86400, 7), (43200, None), (86401, None)])
def test_only_whole_days_count(seconds: float, days: int | None) -> None:
    assert whole_days(seconds) == days


@pytest.mark.parametrize(
    ("path", "mount", "below", "inner"),
    [
        (b"/fsx/train/a", b"/fsx", "", "train/a"),
        (b"/fsx", b"/fsx", "", "/"),
        (b"/fsx/a", b"/fsx", "/team", "team/a"),
        (b"/fsx", b"/fsx", "/team/x", "team/x"),
        (b"/a", b"/", "", "a"),
    ],
)
def test_paths_are_named_from_the_root_of_the_file_system(path: bytes, mount: bytes, below: str, inner: str) -> None:
    assert inner_path(path, mount, below) == inner


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"a\rb", "a\u2028b".encode(), b"x" * 5000])
def test_names_that_cannot_be_sent_are_refused(name: bytes) -> None:
    with pytest.raises(ValueError, match="its "):
        inner_path(b"/fsx/" + name, b"/fsx", "")


def test_what_lies_in_another_path_is_named_once() -> None:
    assert outermost(["b", "a/x", "a", "b", "a/y/z", "ab"]) == ["b", "a", "ab"]
    assert outermost(["a", "/", "b"]) == ["/"]


def test_a_task_takes_32_paths() -> None:
    names = [f"f{number}" for number in range(70)]
    tasks = in_tasks(names)
    assert [len(task) for task in tasks] == [32, 32, 6]
    assert [name for task in tasks for name in task] == names


def test_a_report_is_read_as_the_user_guide_writes_it() -> None:
    text = (
        "myRestrictedFile,failed,S3AccessDenied\n"
        '"""@filename.txt""",failed,A\n'
        "'-name',failed,B\n"
        '"file,name.txt",failed,C\n'
        '"file""name.txt",failed,D\n'
        "cut off,fai"
    )
    assert read_report(text) == [
        Unreleased("myRestrictedFile", "S3AccessDenied"),
        Unreleased("@filename.txt", "A"),
        Unreleased("-name", "B"),
        Unreleased("file,name.txt", "C"),
        Unreleased('file"name.txt', "D"),
    ]
    assert read_report("") == []
    assert read_report("a,failed,X\nb,failed,LONGER_WO", whole=False) == [Unreleased("a", "X")]


@given(st.text())
def test_a_garbled_report_is_no_error(text: str) -> None:
    assert all(isinstance(one, Unreleased) for one in read_report(text))
    assert read_report(f'a,failed,X\n"{"y" * 140_000}{text}') == [Unreleased("a", "X")]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)))
def test_what_was_written_is_read(names: list[str]) -> None:
    plain = [name for name in names if name[0] not in "\"'"]
    out = io.StringIO()
    csv.writer(out).writerows([name, "failed", "X"] for name in plain)
    assert [one.path for one in read_report(out.getvalue())] == plain
