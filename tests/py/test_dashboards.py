"""Alert rules and dashboard ask for metrics that exist, by labels that they have."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import REGISTRY

import edge
import relay

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "aivedio.json"
# What a scrape adds, and what a histogram's buckets carry.
ADDED = {"job", "instance", "le"}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    dashboard = json.loads(DASHBOARD.read_text())
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Every series that some process publishes, with its labels."""
    for package in (edge, relay):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # Loads a native client that only RocketMQ 4 needs.
            if "rocketmq4" not in module.name:
                importlib.import_module(module.name)
    series: dict[str, set[str]] = {}
    for collector in list(REGISTRY._collector_to_names):
        labels = set(getattr(collector, "_labelnames", ()))
        for name in REGISTRY._collector_to_names[collector]:
            series[name] = labels
    return series


@pytest.mark.parametrize(
    ("title", "expression"), list(expressions()), ids=lambda value: str(value)[:40]
)
def test_an_expression_is_promql_over_series_that_exist(
    known: dict[str, set[str]], title: str, expression: str
) -> None:
    promql_parser.parse(expression)
    for name, _, matchers in re.findall(r"\b((?:aivedio|process)_\w+)(\{([^}]*)\})?", expression):
        assert name in known, name
        used = set(re.findall(r"(\w+)(?:=|!)", matchers))
        assert used <= known[name] | ADDED, f"{name} has no label of {used}"


def test_labels_in_texts_are_those_of_the_expression() -> None:
    for rule in rules():
        texts = " ".join(rule["annotations"].values())
        for label in re.findall(r"\$labels\.(\w+)", texts):
            assert re.search(rf"by \([^)]*\b{label}\b", rule["expr"]), f"{rule['alert']}: {label}"
    for panel in panels():
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                grouped = re.search(rf"by \([^)]*\b{label}\b", target["expr"])
                assert grouped or label in ADDED, f"{panel['title']}: {label}"


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"]


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
