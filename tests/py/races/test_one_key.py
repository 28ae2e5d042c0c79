"""The same request sent twice at once makes one task."""

from __future__ import annotations

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Running, rows, value

pytestmark = pytest.mark.both_versions

CREATE = """
select task_id, verdict
from aivedio.create_task(
  fixture.id(%s), fixture.id('project'), fixture.id('user'), 'replicate', 'lumen/video-1',
  %s::jsonb, 'key-1'
)
"""


def test_the_second_gets_the_first_ones_task(connect: Connect, database: str) -> None:
    first, second = (connect(role="aivedio_app") for _ in range(2))
    ((task, verdict),) = rows(first, CREATE, "tenant", '{"prompt": "a"}')
    assert verdict == "applied"
    again = Running(second, CREATE, "tenant", '{"prompt": "a"}')
    again.is_blocked(database)
    first.commit()
    assert again.result() == [(task, "duplicate")]
    second.commit()
    watcher = connect(autocommit=True)
    for table in ("generation_tasks", "task_attempts", "task_events", "outbox_events"):
        assert value(watcher, f"select count(*) from aivedio.{table}") == 1


def test_the_second_makes_it_when_the_first_fails(connect: Connect, database: str) -> None:
    first, second = (connect(role="aivedio_app") for _ in range(2))
    rows(first, CREATE, "tenant", "{}")
    again = Running(second, CREATE, "tenant", "{}")
    again.is_blocked(database)
    first.rollback()
    assert again.result()[0][1] == "applied"


def test_another_request_under_the_key_is_refused(connect: Connect, database: str) -> None:
    first, second = (connect(role="aivedio_app") for _ in range(2))
    rows(first, CREATE, "tenant", '{"prompt": "a"}')
    other = Running(second, CREATE, "tenant", '{"prompt": "b"}')
    other.is_blocked(database)
    first.commit()
    with pytest.raises(psycopg.Error) as refused:
        other.result()
    assert refused.value.sqlstate == "VC410"


def test_two_tenants_cannot_both_have_a_project(connect: Connect, database: str) -> None:
    first, second = (connect(role="aivedio_app") for _ in range(2))
    rows(first, CREATE, "tenant", "{}")
    foreign = Running(second, CREATE, "another tenant", "{}")
    foreign.is_blocked(database)
    first.commit()
    with pytest.raises(psycopg.Error) as refused:
        foreign.result()
    assert refused.value.sqlstate == "VC404"
