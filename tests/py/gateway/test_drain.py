"""How a gateway stops: as a process of its own, told by SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.py.gateway.conftest import SECRET, Person, Reader
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async


@asynccontextmanager
async def process(
    database: str, cluster: Cluster, valkey: str, port: int, drain: float
) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    environment = {
        **os.environ,
        "AIVEDIO_DATABASE_URL": cluster.url(str(conninfo_to_dict(database)["dbname"])),
        "AIVEDIO_REDIS_URL": valkey,
        "AIVEDIO_GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "AIVEDIO_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "AIVEDIO_JWT_SECRET": SECRET,
        "AIVEDIO_LOCAL": "1",
        "AIVEDIO_DRAIN_SECONDS": str(drain),
        "AIVEDIO_ADMIN_PORT": str(port + 1),
        "AIVEDIO_MOST_STREAMS_OF_DEVICE": "50",
    }
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edge.cli.app", "gateway",
        env=environment, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=20.0, trust_env=False, limits=limits
    ) as client:
        try:
            await eventually_async(lambda: is_ready(client, port + 1), 30.0)
            yield gateway, client
        finally:
            if gateway.returncode is None:
                gateway.kill()
            assert gateway.stderr
            await gateway.stderr.read()
            await gateway.wait()


async def is_ready(client: httpx.AsyncClient, admin: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{admin}/ready")).status_code == 200
    except httpx.TransportError:
        return False


async def test_streams_are_sent_away_one_by_one_and_newcomers_elsewhere(
    database: str, cluster: Cluster, valkey: str, free_port: Callable[[], int], person: Person
) -> None:
    """G14: spread over the window, each told when to come back; then exit 0."""
    (project,) = person.projects
    ended: list[float] = []
    retries: list[int | None] = []
    port = free_port()
    async with process(database, cluster, valkey, port, 1.5) as (gateway, client):

        async def follow() -> None:
            async with client.stream(
                "GET", f"/projects/{project}/events", headers=person.bearer()
            ) as response:
                reader = Reader(response)
                await reader.next()
                opened.release()
                retry = None
                try:
                    while True:
                        retry = (await reader.next(within=20.0)).retry
                except StopAsyncIteration:  # the end of the body, not a cut connection
                    ended.append(time.monotonic())
                    retries.append(retry)

        opened = asyncio.Semaphore(0)
        followers = [asyncio.create_task(follow()) for _ in range(40)]
        async with asyncio.timeout(30):
            for _ in followers:
                await opened.acquire()
        told = time.monotonic()
        gateway.send_signal(signal.SIGTERM)
        await eventually_async(lambda: not_ready(client, port + 1), 5.0)
        # A load balancer has not noticed yet: who comes now is served.
        late = await client.get(f"/projects/{project}/tasks", headers=person.bearer())
        assert late.status_code == 200
        await asyncio.gather(*followers)
        assert await asyncio.wait_for(gateway.wait(), 15.0) == 0
    assert min(ended) - told > 1.4
    assert max(ended) - min(ended) > 0.7, "spread over the window"
    assert all(retry is not None and 200 <= retry <= 4000 for retry in retries)
    assert len(set(retries)) > 20, "and so is their return"


async def not_ready(client: httpx.AsyncClient, admin: int) -> bool:
    return (await client.get(f"http://127.0.0.1:{admin}/ready")).status_code == 503


async def test_an_idle_gateway_stops_at_once(
    database: str, cluster: Cluster, valkey: str, free_port: Callable[[], int]
) -> None:
    async with process(database, cluster, valkey, free_port(), 0.0) as (gateway, _):
        started = time.monotonic()
        gateway.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(gateway.wait(), 10.0) == 0
        assert time.monotonic() - started < 3.0


async def test_a_killed_gateways_readers_go_on_at_another(
    database: str, cluster: Cluster, valkey: str, free_port: Callable[[], int], person: Person
) -> None:
    (project,) = person.projects
    port = free_port()
    seen: list[int] = []
    with psycopg.connect(database, autocommit=True) as connection:

        def create() -> int:
            row = connection.execute(
                "select event_id from aivedio.create_task(%s, %s, %s, 'replicate', 'm', '{}')",
                [person.tenant, project, person.user],
            ).fetchone()
            assert row
            return int(row[0])

        made = [create()]
        for _ in range(2):
            async with (
                process(database, cluster, valkey, port, 0.0) as (gateway, client),
                client.stream(
                    "GET",
                    f"/projects/{project}/events",
                    headers={**person.bearer(), "last-event-id": str(seen[-1] if seen else 0)},
                ) as response,
            ):
                reader = Reader(response)
                await reader.until(made[-1])
                seen += reader.ids
                gateway.kill()
                made.append(create())
    assert seen == made[:2]
