"""
A year goes by, a day at a time: what is kept stays bounded, and what is asked costs the same.

Cost is counted in pages that a call touches, which no load of the machine changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, rows, value

PROJECTS = 50
TABLES = ("task_events", "outbox_events", "observations")
BEGIN = "2026-01-01 00:00:00+00"

# One day's changes of all projects, as the writer leaves them once the relay has caught up.
A_DAY = """
with drawn as materialized (
  select
    number, nextval('aivedio.task_event_ids') as id,
    fixture.id('p' || number %% %(projects)s) as project_id
  from generate_series(1, %(events)s) as number
),
chained as materialized (
  select
    drawn.id, task.id as task_id, task.tenant_id, task.project_id, task.current_attempt_id,
    coalesce(
      lag(drawn.id) over (partition by drawn.project_id order by drawn.id), stream.last_event_id
    ) as prev,
    task.version + row_number() over (partition by drawn.project_id order by drawn.id) as version,
    %(day)s::timestamptz + drawn.number * interval '1 day' / (%(events)s + 1) as at
  from drawn
  join aivedio.generation_tasks as task on task.project_id = drawn.project_id
  join aivedio.project_streams as stream on stream.project_id = drawn.project_id
),
events as (
  insert into aivedio.task_events (
    event_id, prev_event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type,
    public_payload, source, created_at
  )
  select id, prev, tenant_id, project_id, task_id, current_attempt_id, version,
    'task.progress.changed', '{"status": "running"}', 'webhook', at
  from chained
),
outbox as (
  insert into aivedio.outbox_events (
    id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, publish_status, shard,
    created_at, published_at
  )
  select nextval('aivedio.outbox_ids'), 'task', task_id, version, 'task.progress.changed',
    '{"status": "running"}', 'published', id %% 8, at, at
  from chained
),
observations as (
  insert into aivedio.observations (
    id, judged_at, received_at, tenant_id, project_id, task_id, attempt_id, provider, source,
    verdict, event_id
  )
  select nextval('aivedio.observation_ids'), at, at, tenant_id, project_id, task_id,
    current_attempt_id, 'replicate', 'webhook', 'applied', id
  from chained
),
heads as (
  update aivedio.project_streams as stream
  set last_event_id = head.id
  from (select project_id, max(id) as id from chained group by project_id) as head
  where stream.project_id = head.project_id
)
update aivedio.generation_tasks as task
set version = head.version
from (select task_id, max(version) as version from chained group by task_id) as head
where task.id = head.task_id
"""
COUNT = "select count(*) from pg_inherits where inhparent = %s::text::regclass"
ANALYZE = "analyze " + ", ".join(f"aivedio.{table}" for table in TABLES)


@pytest.mark.parametrize(
    ("days", "events"),
    [
        pytest.param(75, 1_000, id="a season"),
        pytest.param(365, 27_400, id="a year", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_old_tables_never_grow(connect: Connect, days: int, events: int) -> None:
    session, relay = connect(autocommit=True), connect(autocommit=True)
    rows(relay, "select aivedio.own_shard(1::smallint)")
    rows(session, "select fixture.job('t' || n, 'running', 'p' || n) from generate_series(0, 49) n")
    rows(
        session,
        "update aivedio.settings set value = '60' where name = 'retention_days_observations'",
    )
    costs: list[dict[str, int]] = []
    for day in range(days):
        now = value(session, "select %s::timestamptz + make_interval(days => %s)", BEGIN, day + 1)
        session.execute("select set_config('aivedio.now', %s, false)", [str(now)])
        midnight = value(session, "select %s::timestamptz - interval '1 day'", now)
        session.execute(A_DAY.encode(), {"projects": PROJECTS, "events": events, "day": midnight})
        _upkeep(session)
        if day in (30, days - 1):
            session.execute(ANALYZE.encode())
            costs.append(_costs(session, relay))

    # Kept: the days of retention, the present one, three ahead, and what a round is about to drop.
    kept = [value(session, COUNT, f"aivedio.{table}") for table in TABLES]
    assert [count <= most for count, most in zip(kept, (37, 10, 67), strict=True)] == [True] * 3
    early, late = costs
    assert late.keys() == early.keys()
    assert {call: cost for call, cost in late.items() if cost > early[call] * 1.5 + 50} == {}
    broken = "select count(*) from aivedio.alarms where kind in ('stream_broken', 'version_twice')"
    assert value(session, broken) == 0


def _upkeep(session: Connection) -> None:
    for table in TABLES:
        for _ in range(100):
            try:
                answer = value(session, "select aivedio.upkeep(%s) ->> 'result'", table)
            except psycopg.errors.LockNotAvailable:
                continue  # a vacuum is at work: upkeep comes again, too
            if answer in ("nothing", "kept"):
                break
    while value(session, "select (aivedio.upkeep('streams') ->> 'result')::integer") >= 2000:
        pass


def _costs(session: Connection, relay: Connection) -> dict[str, int]:
    """Return how many pages each question touches that the pipeline asks all the time."""
    head = "(select last_event_id from aivedio.project_streams where project_id = fixture.id('p1'))"
    behind = f"{head} - 3 * {PROJECTS}"
    calls: dict[str, Callable[[], int]] = {
        "replay": lambda: _pages(
            session, f"select aivedio.read_events_after(fixture.id('p1'), {behind})"
        ),
        "look back": lambda: _pages(
            session, f"select aivedio.read_events_before(fixture.id('p1'), {head}, 20)"
        ),
        "what moved": lambda: _pages(session, f"select * from aivedio.streams_moved({behind})"),
        "outbox": lambda: _pages(relay, "select * from aivedio.read_outbox(1::smallint, 100)"),
        "snapshot": lambda: _pages(
            session,
            "select * from aivedio.list_snapshot(fixture.id('tenant'), fixture.id('p1'))",
        ),
    }
    return {name: call() for name, call in calls.items()}


def _pages(session: Connection, query: str) -> int:
    # The first call also reads the catalog.
    plan: Any = None
    for _ in range(3):
        plan = value(session, f"explain (analyze, buffers, format json) {query}")
    top = plan[0]["Plan"]
    return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])
