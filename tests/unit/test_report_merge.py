"""The reports of several shards as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fsxwarm.cli.merge_view import merged_document
from fsxwarm.engine.merge import Merged, ShardReport, read_report
from fsxwarm.engine.report import SCHEMA
from fsxwarm.errors import Exit, FsxwarmError, Kind
from fsxwarm.model.outcome import Outcome
from fsxwarm.model.shard import Shard
from fsxwarm.model.tally import Tally

LINE = {"outcome": "failed", "reason": "restore_failed", "size": 10, "errno": 0}


def header(shard: str, *, started: float = 100.0, arguments: Sequence[str] = ("preload", "/fsx")) -> dict[str, Any]:
    return {"schema": SCHEMA, "shard": shard, "started": started, "arguments": [*arguments, "--shard", shard]}


def summary(code: int = 0, files: int = 4, **more: Any) -> dict[str, Any]:
    counts = {"found": {"files": files, "bytes": 10 * files}, "outcomes": {"restored": {"files": 3, "bytes": 30}}}
    return {"summary": {"exit": code, "ended": 160.0, **counts, **more}}


async def read(folder: Path, *lines: object, name: str = "report") -> ShardReport:
    source = folder / name
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return await read_report(source)


async def test_sums_and_reasons_of_all_shards(tmp_path: Path) -> None:
    merged = Merged(
        [
            await read(tmp_path, header("2/2"), {**LINE, "path": "/fsx/b"}, summary(3, files=4)),
            await read(tmp_path, header("1/2"), {**LINE, "path": "/fsx/a"}, {**LINE, "path": "/fsx/c"}, summary(3)),
        ]
    )
    assert merged.found == Tally(8, 80)
    assert merged.outcomes[Outcome.RESTORED] == Tally(6, 60)
    left = merged.left[Outcome.FAILED, "restore_failed"]
    assert (left.tally, left.first) == (Tally(3, 30), [b"/fsx/a", b"/fsx/c", b"/fsx/b"])
    assert (merged.missing, merged.unfinished, merged.alike, merged.exit) == ([], [], True, Exit.INCOMPLETE)


async def test_errors_are_counted_over_all_shards(tmp_path: Path) -> None:
    broken = {**LINE, "reason": "io_error", "errno": 5}
    merged = Merged(
        [
            await read(tmp_path, header("1/2"), {**broken, "path": "/fsx/a"}, summary(3)),
            await read(tmp_path, header("2/2"), {**broken, "path": "/fsx/b"}, {**broken, "errno": 0, "path": "/fsx/c"},
                       summary(3)),
        ]
    )  # fmt: skip
    assert merged.left[Outcome.FAILED, "io_error"].errnos == {5: 2}
    assert merged_document(merged)["cold"][0]["errnos"] == {"EIO": 2}
    bad = [header("1/1"), {**broken, "errno": "5", "path": "/fsx/a"}, summary(3)]
    with pytest.raises(FsxwarmError, match="no count"):
        await read(tmp_path, *bad)


@pytest.mark.parametrize(
    ("codes", "together"),
    [((0, 0), 0), ((0, 3), 3), ((4, 3), 4), ((6, 4), 6), ((5, 6), 5), ((130, 5), 130)],
)
async def test_the_gravest_status_is_the_status_of_all(tmp_path: Path, codes: tuple[int, int], together: int) -> None:
    reports = [await read(tmp_path, header(f"{n}/2"), summary(code)) for n, code in enumerate(codes, start=1)]
    assert Merged(reports).exit == together


async def test_missing_and_unfinished_shards_are_named(tmp_path: Path) -> None:
    merged = Merged(
        [
            await read(tmp_path, header("4/5"), summary()),
            await read(tmp_path, header("2/5"), {**LINE, "path": "/fsx/a"}),
            await read(tmp_path, header("3/5"), summary(), {**LINE, "path": "/fsx/a"}),
        ]
    )
    assert merged.missing == [Shard(1, 5), Shard(5, 5)]
    assert merged.unfinished == [Shard(2, 5), Shard(3, 5)]
    assert (merged.exit, merged.found) == (Exit.INCOMPLETE, Tally(4, 40))


async def test_stopped_shards_are_to_be_run_again_and_failed_files_are_not(tmp_path: Path) -> None:
    codes = (0, 3, 4, 5, 6, 130)
    reports = [await read(tmp_path, header(f"{n}/7"), summary(code)) for n, code in enumerate(codes, start=1)]
    assert [shard.index for shard in Merged(reports).to_run_again] == [7, 3, 4, 5, 6]


async def test_the_latest_report_of_a_shard_counts(tmp_path: Path) -> None:
    merged = Merged(
        [
            await read(tmp_path, header("1/1", started=200.0), summary(0)),
            await read(tmp_path, header("1/1", started=100.0), summary(3), name="old"),
        ]
    )
    assert (merged.exit, merged.superseded) == (Exit.DONE, [tmp_path / "old"])


async def test_what_every_shard_could_not_read_counts_once(tmp_path: Path) -> None:
    closed = {"outcome": "unreadable", "path": "/fsx/closed", "reason": None, "errno": 13}
    gone = {"outcome": "missing", "path": "/fsx/gone", "reason": None, "errno": 2}
    reports = [await read(tmp_path, header(f"{n}/3"), closed, gone, summary(3)) for n in (1, 2, 3)]
    assert Merged(reports).unread == {"unreadable": [b"/fsx/closed"], "missing": [b"/fsx/gone"], "outside": []}


async def test_shards_of_different_runs_are_told_apart(tmp_path: Path) -> None:
    one = await read(tmp_path, header("1/2"), summary())
    with pytest.raises(FsxwarmError, match=r"shard 2/3.*shard 1/2") as caught:
        Merged([one, await read(tmp_path, header("2/3"), summary())])
    assert caught.value.kind is Kind.USAGE
    assert not Merged([one, await read(tmp_path, header("2/2", arguments=("preload", "/other")), summary())]).alike


async def test_a_shard_that_gave_up_says_why(tmp_path: Path) -> None:
    report = await read(tmp_path, header("1/1"), {"summary": {"exit": 5, "error": "no lfs"}})
    assert (report.exit, report.error, report.found) == (Exit.CANNOT, "no lfs", Tally())


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([{"schema": SCHEMA}], 1),
        ([header("1/1") | {"shard": "auto"}], 1),
        ([header("1/1") | {"started": "then"}], 1),
        ([header("1/1"), {"path": "/fsx/a"}], 2),
        ([header("1/1"), {**LINE, "path": "/fsx/a", "outcome": "odd"}], 2),
        ([header("1/1"), {**LINE, "path": "/fsx/a", "size": "big"}], 2),
        ([header("1/1"), {**LINE, "path": "/fsx/a", "size": -1}], 2),
        ([header("1/1"), {"summary": []}], 2),
        ([header("1/1"), {"summary": {"exit": 99}}], 2),
        ([header("1/1"), summary(found=7)], 2),
    ],
)
async def test_a_line_that_no_report_has_is_named(tmp_path: Path, lines: list[Any], number: int) -> None:
    with pytest.raises(FsxwarmError, match=f"line {number}:") as caught:
        await read(tmp_path, *lines)
    assert caught.value.kind is Kind.USAGE
