"""Media and billing: every change has its effect once, whatever is delivered how often."""

from __future__ import annotations

import asyncio

import pytest

from relay import consume, pgmq
from relay.bus import Message
from tests.py.conftest import Connect
from tests.py.relay.conftest import Writer
from tests.py.relay.test_outbox import relaying
from tests.py.support.waiting import eventually_async


async def test_a_group_without_a_consumer_is_refused() -> None:
    with pytest.raises(ValueError, match="audit"):
        await consume.run(
            database_url="postgresql:///",
            groups=["media", "audit"],
            stopping=asyncio.Event(),
            ready=lambda _: None,
        )


@pytest.mark.both_versions
async def test_operations_open_and_credits_book_once(
    database: str, writer: Writer, connect: Connect
) -> None:
    admin = connect(autocommit=True)
    admin.execute("select fixture.job(name) from unnest(array['good', 'bad']) as name")
    good, bad = (
        task
        for (task,) in admin.execute(
            "select fixture.id(name) from unnest(array['good', 'bad']) name"
        )
    )
    for status in ("queued", "running", "provider_succeeded"):
        writer.change(good, status)
        writer.change(bad, "failed" if status == "provider_succeeded" else status)

    stopping = asyncio.Event()
    states: list[bool] = []
    async with (
        pgmq.connect(database, role=pgmq.PUBLISHER) as bus,
        relaying(database, bus),
    ):
        consuming = asyncio.create_task(
            consume.run(
                database_url=database,
                groups=["media", "billing"],
                stopping=stopping,
                ready=states.append,
            )
        )
        await eventually_async(lambda: states and states[-1])
        await eventually_async(lambda: writer.pending() == 0 and _queued(connect) == 0)
        writer.change(good, "ready")
        await eventually_async(lambda: writer.pending() == 0 and _queued(connect) == 0)
        rows = admin.execute(
            "select payload from aivedio.outbox_events order by id desc"
        ).fetchall()
        # Everything once more, newest first: a bus may do that.
        again = [Message(good, body["status"], body) for (body,) in rows]
        await bus.publish(again)
        await bus.publish([Message(good, "provider_succeeded", {"event_id": 1})])
        await eventually_async(lambda: _queued(connect) == 0)
        stopping.set()
        async with asyncio.timeout(10):
            await consuming

    assert admin.execute(
        "select task_id, operation_type from aivedio.media_operations"
    ).fetchall() == [(good, "backhaul")]
    entries = admin.execute(
        "select task_id, ledger_type from aivedio.credit_ledger order by 1, 2"
    ).fetchall()
    assert sorted(entries) == sorted(
        [(good, "reserve"), (good, "settle"), (bad, "reserve"), (bad, "refund")]
    )
    dead = admin.execute("select headers ->> 'error' from pgmq.a_aivedio_media").fetchall()
    assert dead == [("Rejected VC701: message names no task or attempt",)]


def _queued(connect: Connect) -> int:
    with connect(autocommit=True) as session:
        row = session.execute(
            "select (select count(*) from pgmq.q_aivedio_media)"
            " + (select count(*) from pgmq.q_aivedio_billing)"
        ).fetchone()
    assert row is not None
    return int(row[0])
