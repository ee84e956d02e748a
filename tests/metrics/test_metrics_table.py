"""The table of metrics: names as Prometheus wants them, each told where there is something to tell, README current."""

from __future__ import annotations

import re

import pytest

from fsxwarm.metrics import table
from fsxwarm.metrics.exposition import Exposition
from fsxwarm.metrics.table import TABLE, Type
from fsxwarm.model.measures import Measures
from fsxwarm.model.meter import Meter
from metrics.tools import ROOT, everything, promtool


def text(measures: Measures) -> str:
    return Exposition(lambda: measures).text().decode()


def test_promtool_finds_nothing_to_complain_of() -> None:
    assert promtool("check", "metrics", text=text(everything()).encode()) == ""


def test_each_metric_is_told_with_just_the_labels_of_its_row() -> None:
    told: dict[str, set[str]] = {}
    for line in text(everything()).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{") if "{" in line else line.partition(" ")
            labels = set(re.findall(r'(\w+)="', rest)) if "{" in line else set()
            told.setdefault(re.sub(r"_(bucket|count|sum)$", "", name), set()).update(labels - {"le"})
    assert told == {row.name: set(row.labels) for row in TABLE}


def test_each_metric_has_its_type_and_one_meaning() -> None:
    lines = text(everything()).splitlines()
    for row in TABLE:
        assert lines.count(f"# TYPE {row.name} {row.type.value}") == 1
        assert len([line for line in lines if line.startswith(f"# HELP {row.name} ")]) == 1


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.name))
def test_a_name_says_what_its_type_and_unit_are(row: table.Metric) -> None:
    assert re.fullmatch(r"fsxwarm(_[a-z]+)+", row.name)
    assert row.name.endswith("_total") == (row.type is Type.COUNTER)
    assert row.type is not Type.HISTOGRAM or row.name.endswith("_seconds")
    assert "time" not in row.name.split("_")
    assert row.meaning[0].isupper() or row.meaning[0] == "1"
    assert not row.meaning.endswith(".")


def test_what_a_process_has_nothing_to_say_of_is_left_out() -> None:
    told = text(Measures("1", Meter()))
    assert "fsxwarm_requests_total 0.0" in told
    for part in ("inventory", "_jobs", "filesystem", "association", "run_", "loop_lag"):
        assert part not in told


def test_the_readme_has_the_table() -> None:
    rows = [
        f"| `{one.name}` | {one.type.value} | {', '.join(f'`{label}`' for label in one.labels)} | {one.meaning} |\n"
        for one in TABLE
    ]
    head = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
    assert f"{head}{''.join(rows)}\n</details>" in (ROOT / "README.md").read_text()


def test_a_label_may_hold_any_name() -> None:
    measures = everything()
    odd = Measures(
        "1", measures.meter, limits={'/fsx/a "quoted"\\\n\udcffpath'.encode("utf-8", "backslashreplace").decode(): 1.0}
    )
    assert promtool("check", "metrics", text=text(odd).encode()) == ""


def test_open_metrics_for_those_who_ask_for_it_and_plain_text_for_all_others() -> None:
    exposition = Exposition(everything)
    for accept in ("", "*/*", "text/html", "text/plain;version=0.0.4", "application/openmetrics-textile", "\x00;;,,"):
        body, content_type = exposition.answer(accept)
        assert content_type == "text/plain; version=0.0.4; charset=utf-8"
        assert b"# EOF" not in body
    for accept in (
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        "text/plain, APPLICATION/openmetrics-text",
    ):
        body, content_type = exposition.answer(accept)
        assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert body.endswith(b"# EOF\n")
        assert b"# TYPE fsxwarm_requests counter" in body
