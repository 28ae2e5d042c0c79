"""
Random histories: after each step every row equals what the model says of it.

What is held besides: the version counts the events, the chain of each project has no hole, an end
stays but for a new attempt, an adoption or a declared correction, no attempt is submitted twice, no
ledger is settled and refunded, nothing stays reserved, no running job is forgotten.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.py.conftest import Connection
from tests.py.convergence.machine import Histories
from tests.py.convergence.things import BEHIND_PROVIDER

SHORT = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(SHORT, max_examples=1500, stateful_step_count=80, derandomize=False)

STATUSES = (
    *("created", "submitting", "submitted", "queued", "running", "provider_status_unknown"),
    *("cancel_requested", *sorted(BEHIND_PROVIDER)),
)
PLACES = (
    *(f"{status}, {seen}: " for status in STATUSES for seen in ("queued", "running", "succeeded")),
    *(f"{status}, {seen}: " for status in STATUSES for seen in ("failed", "canceled", None)),
    *("an old attempt, succeeded: ", "an old attempt, running: ", "failed, succeeded: applied"),
    *("cancel: applied", "cancel: duplicate", "cancel: refused"),
    *("start: applied", "start: duplicate", "start: refused"),
    *("adopt: applied", "adopt: duplicate", "adopt: refused"),
    *("record: applied", "record: duplicate", "record: refused", "record: conflict"),
    *("submission: applied", "submission: conflict", "submission: duplicate"),
    *("poll: stale_attempt", "poll: conflict", "report: stale_lease", "report: after_terminal"),
    *("billing message: settle", "billing message: refund", "billing message: refused"),
    *("case conflict", "case stale_success", "case submit_unknown", "case overdue"),
    *("case not_found", "case mapping", "case orphan", "case billing"),
)


@pytest.mark.timeout(1500)
def test_every_history_goes_as_the_model_says(session: Connection) -> None:
    live(session, SHORT)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(4))
def test_thousands_of_histories_go_as_the_model_says(session: Connection, part: int) -> None:
    visited = live(session, LONG)
    assert [p for p in PLACES if not any(v.startswith(p) for v in visited)] == []


def live(session: Connection, how: settings) -> Counter[str]:
    """Run histories on a session and answer what they met, and how often."""
    visited: Counter[str] = Counter()
    machine = type("Histories", (Histories,), {"session": session, "visited": visited})
    run_state_machine_as_test(machine, settings=how)
    return visited
