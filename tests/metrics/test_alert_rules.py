"""Rules and alerts, as promtool sees them, and that their cases are about what the daemon really tells."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from fsxwarm.metrics.table import TABLE, Type
from metrics.tools import ALERT_CASES, ALERTS, RULES, promtool

SCRAPED = {"job", "instance"}


def _rules(path: Any) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


ALERT_RULES = _rules(ALERTS)
RECORDED = {rule["record"] for rule in _rules(RULES)}
CASES = yaml.safe_load(ALERT_CASES.read_text())["tests"]
SERIES = [series["series"] for case in CASES for series in case["input_series"]]
KNOWN = {
    "up": SCRAPED,
    **{row.name: SCRAPED | set(row.labels) for row in TABLE},
    **{f"{row.name}_bucket": SCRAPED | set(row.labels) | {"le"} for row in TABLE if row.type is Type.HISTOGRAM},
}


def test_promtool_takes_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", "--lint=all", "--lint-fatal", RULES, ALERTS)


def test_alerts_fire_when_they_should_and_keep_quiet_when_they_should() -> None:
    assert "SUCCESS" in promtool("test", "rules", ALERT_CASES)


@pytest.mark.parametrize("series", SERIES)
def test_the_cases_have_the_label_sets_of_a_scrape(series: str) -> None:
    name, _, labels = series.partition("{")
    assert set(re.findall(r"(\w+)=\"", labels)) == KNOWN[name]


@pytest.mark.parametrize("rule", ALERT_RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_how_bad_it_is_what_it_means_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert "`" in rule["annotations"]["runbook"] or "see " in rule["annotations"]["runbook"]


@pytest.mark.parametrize("rule", ALERT_RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_has_a_case_that_fires_and_one_that_does_not(rule: dict[str, Any]) -> None:
    about = f'ALERTS{{alertname="{rule["alert"]}", alertstate="firing"}}'
    fires = quiet = False
    for case in CASES:
        instances = {tuple(re.findall(r'(\w+="[^"]*")', series["series"])) for series in case["input_series"]}
        for check in case["promql_expr_test"]:
            if check["expr"] == about:
                fires |= bool(check["exp_samples"])
                quiet |= len(check["exp_samples"]) < len(instances)
    assert fires
    assert quiet


@pytest.mark.parametrize(
    "rule", [*_rules(RULES), *ALERT_RULES], ids=lambda rule: str(rule.get("alert", rule.get("record")))
)
def test_a_rule_asks_for_nothing_that_does_not_exist(rule: dict[str, Any]) -> None:
    names = set(re.findall(r"(?:\w+:)?fsxwarm[\w:]*", re.sub(r'"[^"]*"', "", rule["expr"])))
    assert names <= KNOWN.keys() | RECORDED
