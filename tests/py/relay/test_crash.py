"""Processes that die or hang at the worst moment: nothing lost, order kept, repeats known."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

import pytest

from relay import pgmq
from relay.bus import BEAT, Message, Subscription
from tests.py.conftest import Connect
from tests.py.relay.conftest import Writer
from tests.py.relay.test_outbox import _versions
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async


@contextmanager
def process(name: str, url: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of `aivedio`'s processes; it is killed at the end of the block."""
    running = subprocess.Popen(
        [sys.executable, "-m", "edge.cli.app", name],
        env={
            **os.environ,
            "AIVEDIO_DATABASE_URL": url,
            "AIVEDIO_REDIS_URL": "redis://127.0.0.1:1/0",
            **environment,
        },
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            os.kill(running.pid, signal.SIGCONT)
            running.kill()
        running.wait(10)


@pytest.fixture
def url(cluster: Cluster, database: str) -> str:
    """Return the test database's address over TCP."""
    return cluster.url(database.partition("?")[0].rpartition("/")[2])


@pytest.fixture
async def dispatcher_queue(database: str) -> AsyncIterator[Subscription]:
    async with (
        pgmq.connect(database, role=pgmq.CONSUMER) as bus,
        bus.subscribe("dispatcher") as subscription,
    ):
        yield subscription


async def until_published(
    subscription: Subscription, written: dict[UUID, list[int]]
) -> list[Message]:
    """Take messages, beats aside, until every written version of every task has come."""
    got: list[Message] = []
    async with asyncio.timeout(40):
        while _versions(got).keys() != written.keys() or any(
            set(versions) != set(_versions(got)[task]) for task, versions in written.items()
        ):
            batch = await subscription.receive(100, 1.0)
            await subscription.ack(batch)
            got += [one.message for one in batch if one.message.tag != BEAT]
    return got


def owner_pids(connect: Connect) -> list[int]:
    with connect(autocommit=True) as session:
        return [
            pid
            for (pid,) in session.execute(
                "select pid from pg_stat_activity where application_name = 'aivedio-relay-owner'"
                " and datname = current_database() order by backend_start"
            )
        ]


@asynccontextmanager
async def marking_blocked(connect: Connect) -> AsyncIterator[None]:
    """Hold every outbox row, so that a relay stops between sending and marking."""
    with connect() as holder:
        holder.execute("select from aivedio.outbox_events for update")
        yield
        holder.rollback()


async def test_killed_between_send_and_mark_it_repeats_with_the_same_event_id(
    url: str, writer: Writer, connect: Connect, dispatcher_queue: Subscription
) -> None:
    tasks = writer.tasks(6)
    for _ in range(3):
        for task in tasks:
            writer.change(task)
    async with marking_blocked(connect):
        with process("relay", url) as relay:
            await eventually_async(lambda: _sent(connect) == 18, 20)
            await eventually_async(lambda: _is_blocked(connect), 20)
            relay.kill()
            relay.wait(10)
        # The mark must not arrive: it waits in the server, which knows nothing of the kill yet.
        for pid in owner_pids(connect):
            connect(autocommit=True).execute("select pg_terminate_backend(%s)", [pid])
        await eventually_async(lambda: owner_pids(connect) == [], 20)
    assert writer.pending() == 18
    for task in tasks:
        writer.change(task)
    with process("relay", url):
        await eventually_async(lambda: writer.pending() == 0, 20)
        got = await until_published(dispatcher_queue, writer.written)
    assert _versions(got) == writer.written, "first deliveries in order, none lost"
    assert len(got) == 18 + 24
    for task in tasks:
        ids = [
            (one.body["aggregate_version"], one.body["event_id"])
            for one in got
            if one.task_id == task
        ]
        assert len(set(ids)) == 4, "a repeat has the event_id of the first"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
async def test_another_relay_takes_over_within_seconds(
    url: str,
    writer: Writer,
    connect: Connect,
    dispatcher_queue: Subscription,
    ending: signal.Signals,
) -> None:
    # O2, O22: killed, its shards are free at once; hung, after it was silent for too long.
    tasks = writer.tasks(12)
    with process("relay", url) as first:
        for task in tasks:
            writer.change(task)
        await eventually_async(lambda: writer.pending() == 0, 20)
        with process("relay", url) as second:
            await eventually_async(lambda: len(owner_pids(connect)) == 2, 20)
            await eventually_async(lambda: _owned(connect) == [4, 4], 20)
            os.kill(first.pid, ending)
            loop = asyncio.get_running_loop()
            at = loop.time()
            for _ in range(3):
                for task in tasks:
                    writer.change(task)
            await eventually_async(lambda: writer.pending() == 0, 20)
            assert loop.time() - at < 12.0
            assert _owned(connect) == [8]
            if ending == signal.SIGSTOP:
                os.kill(first.pid, signal.SIGCONT)
                # It comes back as a newcomer and gets its part again.
                await eventually_async(lambda: _owned(connect) == [4, 4], 20)
                for task in tasks:
                    writer.change(task)
                await eventually_async(lambda: writer.pending() == 0, 20)
            got = await until_published(dispatcher_queue, writer.written)
            assert second.poll() is None
    assert _versions(got) == writer.written


async def test_relays_stop_cleanly_under_load(
    url: str, writer: Writer, connect: Connect, dispatcher_queue: Subscription
) -> None:
    tasks = writer.tasks(10)
    for _ in range(3):
        with process("relay", url) as relay:
            await eventually_async(lambda: owner_pids(connect) != [], 20)
            for task in tasks * 3:
                writer.change(task)
            relay.terminate()
            assert await asyncio.to_thread(relay.wait, 10) == 0
    with process("relay", url):
        await eventually_async(lambda: writer.pending() == 0, 20)
        got = await until_published(dispatcher_queue, writer.written)
    assert _versions(got) == writer.written
    assert len(got) == 90, "a clean stop repeats nothing"


@pytest.mark.parametrize("name", ["dispatch", "consume"])
async def test_consumers_stop_cleanly(
    url: str, name: str, writer: Writer, connect: Connect
) -> None:
    (task,) = writer.tasks(1)
    writer.change(task, "running")
    with process("relay", url), process(name, url) as consumer:
        await eventually_async(
            lambda: _left(connect, "dispatcher" if name == "dispatch" else "billing") == 0, 20
        )
        consumer.terminate()
        assert await asyncio.to_thread(consumer.wait, 10) == 0


def _sent(connect: Connect) -> int:
    return _count(connect, "pgmq.q_aivedio_dispatcher where headers ->> 'tag' <> 'beat'")


def _left(connect: Connect, group: str) -> int:
    """Return the queue's length once the outbox is empty."""
    pending = _count(connect, "aivedio.outbox_events where publish_status = 'pending'")
    return pending or _count(connect, f"pgmq.q_aivedio_{group} where headers ->> 'tag' <> 'beat'")


def _count(connect: Connect, source: str) -> int:
    with connect(autocommit=True) as session:
        row = session.execute(f"select count(*) from {source}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _is_blocked(connect: Connect) -> bool:
    with connect(autocommit=True) as session:
        return (
            session.execute(
                "select from pg_stat_activity where application_name = 'aivedio-relay-owner'"
                " and datname = current_database() and wait_event_type = 'Lock'"
            ).fetchone()
            is not None
        )


def _owned(connect: Connect) -> list[int]:
    """Return how many shards each owning session has."""
    with connect(autocommit=True) as session:
        rows = session.execute(
            "select count(*) from pg_locks join pg_stat_activity as session using (pid)"
            " where application_name = 'aivedio-relay-owner' and locktype = 'advisory'"
            " and datname = current_database()"
            " and classid = (hashtext('aivedio_outbox_owner')::bigint & 4294967295)::oid"
            " group by pid order by 1"
        ).fetchall()
    return [count for (count,) in rows]
