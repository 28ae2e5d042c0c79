"""The upkeep process calls every step, repeats what got something done, and outlives failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from edge.operate import upkeep
from tests.py.conftest import Connect, ConnectAsync
from tests.py.support.sessions import value
from tests.py.support.waiting import eventually_async


@asynccontextmanager
async def running(conninfo: str, every: float = 60.0) -> AsyncIterator[list[bool]]:
    stopping = asyncio.Event()
    readiness: list[bool] = []
    work = asyncio.create_task(
        upkeep.run(conninfo, stopping=stopping, ready=readiness.append, every=every)
    )
    try:
        yield readiness
    finally:
        stopping.set()
        await asyncio.wait_for(work, 10)


async def test_it_is_ready_after_one_round_and_stops_at_once(database: str) -> None:
    async with running(database) as readiness:
        await eventually_async(lambda: readiness)
        assert readiness == [True]


async def test_partitions_are_made_ahead_of_their_sequence(database: str, connect: Connect) -> None:
    admin = connect(autocommit=True)
    ahead = (
        "select count(*) from aivedio._partitions('task_events') as range"
        " where range.low > aivedio._last_id('task_events')"
    )
    admin.execute("select setval('aivedio.task_event_ids', 300000000)")
    assert value(admin, ahead) == 0
    async with running(database) as readiness:
        await eventually_async(lambda: readiness)
    assert value(admin, ahead) == 3


async def test_what_lies_behind_and_is_empty_goes(database: str, connect: Connect) -> None:
    admin = connect(autocommit=True)
    admin.execute("select setval('aivedio.outbox_ids', 300000000)")
    behind = (
        "select count(*) from aivedio._partitions('outbox_events') as range"
        " where range.high <= aivedio._last_id('outbox_events')"
    )
    assert value(admin, behind) == 3
    # A round does a bounded number of steps.
    async with running(database, every=0.05):
        await eventually_async(lambda: value(admin, behind) == 0)


async def test_a_table_that_is_busy_keeps_no_other_step_from_its_turn(
    database: str, connect: Connect, connect_async: ConnectAsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = connect(autocommit=True)
    admin.execute("select setval('aivedio.task_event_ids', 900000000)")
    admin.execute("select setval('aivedio.outbox_ids', 900000000)")
    holder = await connect_async()
    await holder.execute("lock table aivedio.task_events in share update exclusive mode")
    outbox = "select to_regclass('aivedio.outbox_events_p900000000') is not null"
    async with running(database, every=0.2) as readiness:
        await eventually_async(lambda: False in readiness)
        await eventually_async(lambda: admin.execute(outbox).fetchone() == (True,))
        await holder.rollback()
        await eventually_async(lambda: readiness and readiness[-1], 20)


async def test_only_one_of_many_does_the_work(database: str, connect_async: ConnectAsync) -> None:
    holder = await connect_async()
    await holder.execute("select pg_advisory_xact_lock(hashtext('aivedio_upkeep'), 0)")
    async with running(database) as readiness:
        await eventually_async(lambda: readiness)
        assert readiness == [True]
