"""The webhook edge when things break: never 2xx without a committed row, and back by itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import orjson
import psycopg
import pytest

from edge.intake import accepting, http_limits, jwks, receive, webhook
from tests.py.intake.conftest import Edge, Inbox, serving
from tests.py.intake.signing import sign
from tests.py.support.clusters import Cluster
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async
from tests.py.support.wire import Wire, wire

BODY = orjson.dumps({"id": "p1", "status": "processing"})


@asynccontextmanager
async def wired(database: str, cluster: Cluster) -> AsyncIterator[tuple[Wire, str]]:
    """Lay a wire before the test's database; yield it and the address at its near end."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    async with wire("127.0.0.1", cluster.port) as laid:
        yield laid, f"postgresql://postgres@127.0.0.1:{laid.port}/{name}"


async def test_database_down_and_back(database: str, cluster: Cluster, inbox: Inbox) -> None:
    """W16: 503 while it is away, ready again without a restart, nothing lost in between."""
    async with wired(database, cluster) as (laid, address), serving(address) as edge:
        assert (await edge.deliver(BODY, event_id="before")).status_code == 204

        await laid.cut()
        refused = await edge.deliver(BODY, event_id="during")
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["code"] == "unavailable"
        await eventually_async(lambda: edge.told[-1] is False)

        laid.mend()
        await eventually_async(lambda: edge.is_ready, timeout=10.0)
        assert (await edge.deliver(BODY, event_id="during")).status_code == 204
    assert inbox.rows("dedup_key") == [("before",), ("during",)]


async def test_sessions_that_died_unnoticed_cost_no_callback(
    database: str, edge: Edge, inbox: Inbox
) -> None:
    """After a failover every pooled session is dead, and the first call of each would fail."""
    assert (await edge.deliver(BODY, event_id="one")).status_code == 204
    inbox.session.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'aivedio-webhook' and datname = current_database()"
    )
    assert (await edge.deliver(BODY, event_id="two")).status_code == 204


async def test_a_database_that_hangs_is_answered_for_in_time(
    database: str, cluster: Cluster, inbox: Inbox
) -> None:
    """W26: well within the 10 s that providers wait."""
    async with wired(database, cluster) as (laid, address), serving(address) as edge:
        assert (await edge.deliver(BODY, event_id="before")).status_code == 204
        laid.hold()
        began = time.monotonic()
        answer = await edge.deliver(BODY, event_id="during")
        assert answer.status_code == 503
        assert time.monotonic() - began < 8.0
        laid.mend()
        await eventually_async(lambda: edge.is_ready, timeout=20.0)
        assert (await edge.deliver(BODY, event_id="during")).status_code == 204
    assert inbox.rows("dedup_key") == [("before",), ("during",)]


async def test_a_start_without_a_database_refuses_and_then_serves(
    database: str, cluster: Cluster
) -> None:
    async with wired(database, cluster) as (laid, address):
        await laid.cut()
        async with serving(address, wait=False) as edge:

            async def answers() -> int:
                try:
                    return (await edge.deliver(BODY)).status_code
                except httpx.ConnectError:
                    return 0

            assert await eventually_async(answers) == 503
            laid.mend()
            await eventually_async(lambda: edge.is_ready, timeout=10.0)
            assert (await edge.deliver(BODY)).status_code == 204


async def test_a_slow_database_is_not_waited_for_longer_than_the_statement_may_take(
    edge: Edge, inbox: Inbox, database: str
) -> None:
    with psycopg.connect(database) as locker:
        locker.execute("lock table aivedio.provider_callback_inbox in exclusive mode")
        began = time.monotonic()
        answer = await edge.deliver(BODY)
        assert answer.status_code == 503
        assert time.monotonic() - began < 5.0
    assert (await edge.deliver(BODY)).status_code == 204
    assert inbox.count() == 1


async def test_a_full_queue_is_503_and_drains(
    database: str, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pool exhausted: every commit is under way, and no more may wait."""
    original = accepting.Accepting.__init__

    def small(self: accepting.Accepting, *arguments: object, **settings: object) -> None:
        original(self, *arguments, **{**settings, "max_waiting": 3})  # type: ignore[arg-type]

    monkeypatch.setattr(accepting.Accepting, "__init__", small)
    async with serving(database) as edge:
        with psycopg.connect(database) as locker:
            locker.execute("lock table aivedio.provider_callback_inbox in exclusive mode")
            sent = [asyncio.create_task(edge.deliver(BODY, event_id=f"q{n}")) for n in range(12)]
            await eventually_async(lambda: sum(task.done() for task in sent) >= 8)
            locker.rollback()
            answers = await asyncio.gather(*sent)
        statuses = [answer.status_code for answer in answers]
        assert set(statuses) == {204, 503}
        assert statuses.count(503) >= 8
        assert edge.is_ready
    assert inbox.count() == statuses.count(204)


@contextmanager
def process(address: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the webhook edge as the process that it is in production."""
    environment = {
        **os.environ,
        "AIVEDIO_DATABASE_URL": address,
        "AIVEDIO_WEBHOOK_LISTEN": f"127.0.0.1:{port}",
        "AIVEDIO_LOCAL": "1",
    }
    running = subprocess.Popen(
        [sys.executable, "-m", "edge.cli.app", "webhook"],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield running
    finally:
        running.kill()
        running.wait(10)


async def delivered(url: str, event_id: str = "msg_1") -> int:
    """Deliver once; 0 means that no answer came."""
    async with httpx.AsyncClient(timeout=15, trust_env=False) as client:
        try:
            answer = await client.post(
                f"{url}/callbacks/replicate", content=BODY, headers=sign(BODY, event_id=event_id)
            )
        except httpx.TransportError:
            return 0
    return answer.status_code


async def test_killed_after_the_commit_and_before_the_answer(
    database: str, cluster: Cluster, inbox: Inbox
) -> None:
    """W14: the row is there, the provider knows nothing and sends again: one row, one effect."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with wired(database, cluster) as (laid, address):
        with process(address, port) as first:
            await eventually_async(lambda: _stores(url, "warm"), timeout=30.0)
            with psycopg.connect(database) as locker:
                locker.execute("lock table aivedio.provider_callback_inbox in exclusive mode")
                waiting = asyncio.create_task(delivered(url))
                await eventually_async(lambda: inbox.waits())
                laid.hold(requests=False, answers=True)
            await eventually_async(lambda: ("msg_1",) in inbox.rows("dedup_key"))
            assert not waiting.done()
            first.send_signal(signal.SIGKILL)
            assert await waiting == 0
        laid.mend()
        with process(address, port):
            await eventually_async(lambda: _stores(url, "msg_1"), timeout=30.0)
    assert inbox.rows("dedup_key") == [("warm",), ("msg_1",)]


async def test_sigterm_ends_the_process_with_status_0(database: str, cluster: Cluster) -> None:
    port = free_port()
    async with wired(database, cluster) as (_, address):
        with process(address, port) as running:
            await eventually_async(lambda: _stores(f"http://127.0.0.1:{port}", "a"), timeout=30.0)
            running.send_signal(signal.SIGTERM)
            status = await asyncio.to_thread(running.wait, 15)
    assert status == 0


async def _stores(url: str, event_id: str) -> bool:
    return await delivered(url, event_id) == 204


def test_the_limits_leave_a_provider_its_answer_within_ten_seconds() -> None:
    assert receive.BODY_SECONDS + jwks.TIMEOUT + webhook.ANSWER_WITHIN < 10
    assert receive.BODY_SECONDS < http_limits.CallbackProtocol.body_within_s
    assert webhook.STATEMENT_TIMEOUT + webhook.ACQUIRE_TIMEOUT < webhook.ANSWER_WITHIN
