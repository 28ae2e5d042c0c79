"""What the database says is waiting is what Prometheus is told."""

from __future__ import annotations

import asyncio

from prometheus_client import REGISTRY

from edge import database as door
from edge.operate import gauges
from tests.py.conftest import Connect
from tests.py.support.sessions import rows, value
from tests.py.support.waiting import eventually_async


def sample(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_every_stage_is_shown_and_what_is_over_goes(database: str, connect: Connect) -> None:
    session = connect(autocommit=True)
    rows(session, "select fixture.job('a', 'queued')")
    for number in (1, 2):
        rows(session, f"select aivedio.accept_callbacks(array[fixture.delivery('e{number}', 'a')])")
    rows(session, "select aivedio._open_circuit('replicate', 'default', 'auth')")
    rows(
        session,
        "select aivedio._raise_alarm('flood', subject) from unnest('{a,b}'::text[]) subject",
    )
    gauges.publish(value(session, "select aivedio.pipeline_status()"))
    assert sample("aivedio_backlog", stage="inbox") == 2
    assert sample("aivedio_backlog", stage="bus_media") == 0
    oldest = sample("aivedio_backlog_oldest_seconds", stage="inbox")
    assert oldest is not None
    assert oldest > 0
    assert sample("aivedio_tasks", status="queued") == 1
    assert sample("aivedio_alarms", kind="flood") == 2
    assert sample("aivedio_circuits_open", credential="replicate:default") == 1

    rows(session, "select aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")
    rows(session, "select aivedio.reset_circuit('replicate', 'default', 'ops', 'paid')")
    gauges.publish(value(session, "select aivedio.pipeline_status()"))
    assert sample("aivedio_backlog", stage="inbox") == 0
    assert sample("aivedio_backlog_oldest_seconds", stage="inbox") == 0
    assert sample("aivedio_tasks", status="queued") is None
    assert sample("aivedio_tasks", status="running") == 1
    assert sample("aivedio_circuits_open", credential="replicate:default") is None


async def test_they_are_read_again_and_again(database: str) -> None:
    stopping = asyncio.Event()

    def read_at() -> float | None:
        return sample("aivedio_status_read_seconds")

    async with door.connect(database, role="aivedio_operator", max_size=1) as db:
        before = read_at()
        reading = asyncio.create_task(gauges.run(db, stopping, every=0.05))
        await eventually_async(lambda: read_at() != before)
        first = read_at()
        await eventually_async(lambda: read_at() != first)
        stopping.set()
        await asyncio.wait_for(reading, 10)


async def test_a_database_that_is_away_leaves_the_last_values() -> None:
    stopping = asyncio.Event()
    gauges.TASKS.labels("queued").set(7)
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    async with door.connect(nowhere, role="aivedio_operator", acquire_timeout=0.1) as db:
        reading = asyncio.create_task(gauges.run(db, stopping, every=0.05))
        await asyncio.sleep(0)
        stopping.set()
        await asyncio.wait_for(reading, 10)
    assert sample("aivedio_tasks", status="queued") == 7
