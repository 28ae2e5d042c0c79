"""Sixty-four clients do everything to a few hot tasks: no deadlock, and every invariant holds."""

from __future__ import annotations

import pytest

from tests.py.conftest import Connect
from tests.py.convergence.crowd import Crowd
from tests.py.convergence.invariants import broken
from tests.py.convergence.payloads import prepare
from tests.py.support.sessions import value

CAME_THROUGH = frozenset({"create: applied", "submit: applied", "billing: reserve"})


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seconds",
    [pytest.param(8.0, id="short"), pytest.param(60.0, id="a minute", marks=pytest.mark.long)],
)
def test_a_crowd(database: str, connect: Connect, seconds: float) -> None:
    session = connect(autocommit=True)
    prepare(session)
    crowd = Crowd(database, 64)
    crowd.run(seconds, CAME_THROUGH)
    assert crowd.wrong == []
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    assert value(session, deadlocks) == 0
    assert broken(session) == {}
    assert crowd.answers.keys() >= CAME_THROUGH
