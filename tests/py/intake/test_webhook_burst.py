"""A burst of callbacks, and what may break in the middle of one: nothing is lost, nothing twice."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from edge.intake import accepting
from tests.py.intake.bursts import Burst
from tests.py.intake.conftest import serving
from tests.py.intake.jobs import Jobs
from tests.py.intake.test_webhook_faults import process
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async
from tests.py.support.wire import wire

# What a commit promises must survive the server's own crash.
CRASH_SAFE = {"synchronous_commit": "on"}


async def test_more_than_may_wait_comes_in_by_repetition(
    database: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = accepting.Accepting.__init__

    def small(self: accepting.Accepting, *arguments: object, **settings: object) -> None:
        # Fewer than there are senders, so that some are refused whatever the machine's speed.
        original(self, *arguments, **{**settings, "max_waiting": 8, "max_rows": 8})  # type: ignore[arg-type]

    monkeypatch.setattr(accepting.Accepting, "__init__", small)
    burst = Burst.about(jobs, 30, each=10)
    async with serving(database) as edge:
        await burst.send(edge.url, connections=100)
    assert burst.refused > 0
    assert burst.unanswered == 0
    burst.check()


async def test_the_edge_is_killed_in_a_burst(database: str, cluster: Cluster, jobs: Jobs) -> None:
    """W14: every 2xx is in the inbox, the rest comes in by repetition, nothing has two effects."""
    burst = Burst.about(jobs, 30)
    port = free_port()
    address = cluster.url(str(psycopg.conninfo.conninfo_to_dict(database)["dbname"]))
    sending = asyncio.create_task(burst.send(f"http://127.0.0.1:{port}"))
    try:
        for portion in (50, 250):
            with process(address, port) as running:
                await eventually_async(partial(has_stored, burst, portion), timeout=60.0)
                running.send_signal(signal.SIGKILL)
                await asyncio.to_thread(running.wait, 10)
            # Nobody was told success for what is not there.
            assert burst.acknowledged <= burst.stored()
        assert not sending.done()
        with process(address, port):
            await sending
    finally:
        sending.cancel()
    assert burst.unanswered > 0
    burst.check()


def has_stored(burst: Burst, many: int) -> bool:
    return len(burst.stored()) >= many


@pytest.fixture
def mortal(run: Run) -> Iterator[Cluster]:
    """A server of the test's own, which it may crash."""
    cluster = run.start_cluster(f"mortal-{uuid.uuid4().hex[:8]}", settings=CRASH_SAFE)
    with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
        connection.execute("create database mortal")
    schema.apply(cluster.conninfo("mortal"))
    yield cluster


async def test_the_database_crashes_in_a_burst_and_comes_back(mortal: Cluster) -> None:
    """W16: what was acknowledged survived, the rest comes in by repetition, nothing twice."""
    address = mortal.conninfo("mortal")
    with psycopg.connect(address, autocommit=True) as session:
        burst = Burst.about(Jobs(session), 30)
    async with wire("127.0.0.1", mortal.port) as laid:
        async with serving(f"postgresql://postgres@127.0.0.1:{laid.port}/mortal") as edge:
            sending = asyncio.create_task(burst.send(edge.url))
            try:
                await eventually_async(lambda: len(burst.acknowledged) >= 50, timeout=60.0)
                await _crash(mortal, edge_away=laid.cut())
                await eventually_async(lambda: burst.refused > 0, timeout=60.0)
                await eventually_async(lambda: _answers(address), timeout=60.0)
                acknowledged = set(burst.acknowledged)
                with psycopg.connect(address, autocommit=True) as session:
                    burst.jobs = Jobs(session)
                    assert acknowledged <= burst.stored()
                assert not sending.done()
                laid.mend()
                await sending
            finally:
                sending.cancel()
    with psycopg.connect(address, autocommit=True) as session:
        burst.jobs = Jobs(session)
        burst.check()


async def _crash(cluster: Cluster, edge_away: Coroutine[Any, Any, None]) -> None:
    """Kill one of the server's processes: it ends all others at once and recovers from its log."""
    with psycopg.connect(cluster.conninfo("mortal"), autocommit=True) as session:
        row = session.execute(
            "select pid from pg_stat_activity where application_name = 'aivedio-webhook'"
            " and backend_type = 'client backend' limit 1"
        ).fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
        await edge_away
        await eventually_async(lambda: _is_over(session), timeout=60.0)


def _is_over(session: psycopg.Connection[Any]) -> bool:
    try:
        session.execute("select 1")
    except psycopg.OperationalError:
        return True
    return False


def _answers(address: str) -> bool:
    try:
        with psycopg.connect(address, connect_timeout=5):
            return True
    except psycopg.OperationalError:
        return False
