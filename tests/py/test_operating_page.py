"""docs/operating.md names functions, settings, alerts and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from edge.cli.processes import PROCESSES
from edge.cli.settings import Settings
from edge.operate.upkeep import STEPS
from tests.py.conftest import Connect
from tests.py.support.sessions import rows, value

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operating.md").read_text()
REPAIRS = PAGE.partition("## Repairing")[2].partition("\n## ")[0]
KEPT = PAGE.partition("## What is kept")[2].partition("\n## ")[0]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_variables_alerts_and_processes_exist() -> None:
    assert set(re.findall(r"AIVEDIO_([A-Z_]+)", PAGE)) <= {
        field.upper() for field in Settings.model_fields
    }
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    (group,) = yaml.safe_load(alerts)["groups"]
    assert set(re.findall(r"Aivedio[A-Z]\w+", PAGE)) <= {rule["alert"] for rule in group["rules"]}
    shown = re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE)
    assert set(shown) == {name for name, process in PROCESSES.items() if not process.hidden}


def test_functions_exist_and_operators_may_call_them(database: str, connect: Connect) -> None:
    session = connect(autocommit=True)
    callable_ = {name for (name,) in rows(session, "select name from aivedio.describe('operator')")}
    named = set(re.findall(r"aivedio\.(\w+)\(", PAGE)) | set(
        re.findall(r"`(\w+)(?:\(.*?\))?`", REPAIRS)
    )
    # What is written about beside functions.
    assert named - callable_ <= {"operator_actions", "settings", "start_attempt", "revoke_access"}
    everybody = {name for (name,) in rows(session, "select name from aivedio.describe()")}
    assert named <= everybody | {"operator_actions"}


def test_days_are_those_of_the_settings(database: str, connect: Connect) -> None:
    session = connect(autocommit=True)
    for name, days in re.findall(r"`(retention_days_\w+)`, (\d+) days", KEPT):
        assert (
            value(session, "select value::text from aivedio.settings where name = %s", name) == days
        )


@pytest.mark.parametrize("step", STEPS)
def test_the_steps_for_pg_cron_are_all(step: str) -> None:
    assert f"'{step}'" in PAGE.partition("cron.schedule")[2].partition("\n\n")[0]
