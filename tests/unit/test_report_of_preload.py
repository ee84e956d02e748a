"""Reports: what is written, that it is whole or not there, and what is read back."""

from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.report import Report, check_report, files_to_retry
from fsxwarm.engine.selection import NOT_ON_LUSTRE
from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.entry import Entry, Trouble
from fsxwarm.model.hsm import Flags
from fsxwarm.model.messages import Finish
from fsxwarm.model.outcome import Outcome, Reason

COLD = Flags.RELEASED | Flags.EXISTS | Flags.ARCHIVED
HEADER = {"version": "1", "started": 0.0, "arguments": []}
NAMES = st.binary(min_size=1, max_size=60).filter(lambda name: b"\0" not in name)


def _finish(path: bytes, outcome: Outcome = Outcome.FAILED, reason: Reason | None = Reason.RESTORE_FAILED) -> Finish:
    entry = Entry(path, 1, 1, 5, 0, 0, 0, 0, 1, 0, 0o100644)
    return Finish(entry, outcome, frozenset({0}), reason, flags=COLD, attempts=3)


async def _written(target: Path, finishes: Iterable[Finish], troubles: Iterable[Trouble] = ()) -> None:
    report = await Report.begin(target, HEADER)
    for finish in finishes:
        report.settled(finish)
    for trouble in troubles:
        report.trouble(trouble)
    await report.end({"exit": 3})
    assert report.problem is None


def _lines(target: Path) -> list[Any]:
    return [json.loads(line) for line in target.read_text().splitlines()]


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def _read(source: Path) -> list[bytes]:
    return [path async for chunk in files_to_retry(source) for path in chunk]


async def test_a_line_tells_what_became_of_a_file_and_what_to_do(tmp_path: Path) -> None:
    target = tmp_path / "report"
    await _written(target, [_finish(b"/fsx/a")])
    header, line, summary = _lines(target)
    assert (header["schema"], header["shard"]) == ("fsxwarm.report/1", "1/1")
    assert line["path"] == "/fsx/a"
    assert (line["outcome"], line["reason"], line["attempts"], line["size"]) == ("failed", "restore_failed", 3, 5)
    assert (line["flags"], line["flags_hex"]) == (["released", "exists", "archived"], "0x0000000d")
    assert "Glacier" in line["todo"]
    assert summary == {"summary": {"exit": 3}}


async def test_nothing_is_there_until_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("the last one")
    report = await Report.begin(target, HEADER)
    for _ in range(5_000):
        report.settled(_finish(b"/fsx/a"))
    assert target.read_text() == "the last one"
    await report.discard()
    assert _names(tmp_path) == ["report"]
    assert target.read_text() == "the last one"


async def test_many_lines_keep_their_order(tmp_path: Path) -> None:
    names = [b"/fsx/%d" % number for number in range(12_345)]
    await _written(tmp_path / "report", map(_finish, names))
    assert await _read(tmp_path / "report") == names


@given(st.lists(NAMES, max_size=20))
async def test_any_name_comes_back(names: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report"
        paths = [b"/" + name for name in names]
        await _written(target, map(_finish, paths))
        assert await check_report(target)
        assert await _read(target) == paths


async def test_only_what_may_become_resident_yet_is_tried_again(tmp_path: Path) -> None:
    target = tmp_path / "report"
    await _written(
        target,
        [
            _finish(b"/fsx/failed"),
            _finish(b"/fsx/blocked", Outcome.BLOCKED, Reason.NO_ROOM),
            _finish(b"/fsx/cancelled", Outcome.CANCELLED, Reason.INTERRUPTED),
            _finish(b"/fsx/vanished", Outcome.VANISHED, Reason.GONE),
        ],
        [
            Trouble(b"/fsx/closed", errno.EACCES),
            Trouble(b"/fsx/missing", errno.ENOENT),
            Trouble(b"/tmp/outside", NOT_ON_LUSTRE),
        ],
    )
    assert await _read(target) == [b"/fsx/failed", b"/fsx/blocked", b"/fsx/cancelled", b"/fsx/closed"]


async def test_an_unfinished_report_says_so_and_gives_what_is_there(tmp_path: Path) -> None:
    target = tmp_path / "report"
    await _written(target, [_finish(b"/fsx/a"), _finish(b"/fsx/b")])
    whole = target.read_bytes()
    header, first, second, _ = whole.splitlines(keepends=True)
    target.write_bytes(header + first + second)
    assert not await check_report(target)
    target.write_bytes(header + first + second[:-20])
    assert not await check_report(target)
    assert await _read(target) == [b"/fsx/a"]


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (b"", 1),
        (b"/fsx/a\n/fsx/b\n", 1),
        (b'{"schema": "fsxwarm.report/2"}\n', 1),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": "/fsx/a", "outcome"\n{"path": "/fsx/b"}\n', 2),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": "/fsx/a"}\n[]\n', 3),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": "relative"}\n', 2),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": 7}\n', 2),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": "/a\\u0000b"}\n', 2),
        (b'{"schema": "fsxwarm.report/1"}\n{"path": "/a", "path_b64": "?"}\n', 2),
        (b'{"schema": "fsxwarm.report/1"}\n{}\n', 2),
        (b"x" * 3_000_000, 1),
        (b'{"schema": "fsxwarm.report/1"}\n' + b"[" * 100_000 + b"\n", 2),
    ],
)
async def test_a_bad_line_is_named(tmp_path: Path, lines: bytes, number: int) -> None:
    source = tmp_path / "report"
    source.write_bytes(lines)
    with pytest.raises(FsxwarmError, match=f"line {number}:") as caught:
        await check_report(source)
    assert caught.value.kind is Kind.USAGE


@given(st.binary(max_size=300))
async def test_no_bytes_break_the_reader(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "report"
        source.write_bytes(b'{"schema": "fsxwarm.report/1"}\n' + data)
        try:
            await check_report(source)
        except FsxwarmError as error:
            assert error.kind is Kind.USAGE  # noqa: PT017 - either it is taken or it is refused
            return
        assert all(path.startswith(b"/") for path in await _read(source))


async def test_there_is_no_report_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path, tmp_path / "nowhere" / "report", tmp_path / "file" / "report", Path("/dev/null")):
        with pytest.raises(FsxwarmError, match="cannot write a report") as caught:
            await Report.begin(target, HEADER)
        assert caught.value.kind is Kind.USAGE
    with pytest.raises(FsxwarmError, match="cannot read the report"):
        await check_report(tmp_path / "missing")
    with pytest.raises(FsxwarmError, match="no regular file"):
        await check_report(Path("/dev/zero"))


async def test_a_link_keeps_pointing_to_the_report(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "latest").symlink_to("reports/today")
    await _written(tmp_path / "latest", [_finish(b"/fsx/a")])
    assert (tmp_path / "latest").is_symlink()
    assert await check_report(tmp_path / "reports" / "today")


async def test_a_report_that_cannot_be_put_in_its_place_is_a_problem_and_no_error(tmp_path: Path) -> None:
    target = tmp_path / "report"
    report = await Report.begin(target, HEADER)
    report.settled(_finish(b"/fsx/a"))
    (target / "in the way").mkdir(parents=True)
    await report.end({"exit": 0})
    assert report.problem is not None
    assert str(target) in report.problem
    assert _names(tmp_path) == ["report"]
