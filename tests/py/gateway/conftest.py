"""A real gateway on a real PostgreSQL and a real Valkey, in the test's own event loop."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt
import psycopg
import pytest
import redis.asyncio
import uvloop
from httpx_sse import EventSource, ServerSentEvent
from psycopg.rows import dict_row

from edge.gateway import frames, lookout, serve
from edge.gateway.keys import Keys
from tests.py.support.waiting import eventually_async

SECRET = "the secret of the tests' session tokens"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    # The loop that the process runs on: transports differ in when they stall.
    return {"uvloop": uvloop.new_event_loop}


@dataclass(frozen=True)
class Person:
    """A user with a session that may use some projects."""

    projects: tuple[uuid.UUID, ...]
    tenant: uuid.UUID = field(default_factory=uuid.uuid4)
    user: uuid.UUID = field(default_factory=uuid.uuid4)
    session: str = field(default_factory=lambda: f"s-{uuid.uuid4().hex[:8]}")

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        return jwt.encode(
            {
                "sub": str(self.user),
                "tenant": str(self.tenant),
                "projects": [str(project) for project in self.projects],
                "sid": self.session,
                "iat": now,
                "exp": now + 3600,
                **claims,
            },
            SECRET,
            algorithm="HS256",
        )

    def bearer(self, **claims: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(**claims)}"}


class Reader:
    """An SSE client that checks the chain as a browser does."""

    def __init__(self, response: httpx.Response) -> None:
        self._events = EventSource(response).aiter_sse()
        self.cursor: int | None = None
        self.ids: list[int] = []
        self.versions: dict[str, int] = {}
        self.statuses: dict[str, str] = {}

    async def next(self, within: float = 10.0) -> ServerSentEvent:
        async with asyncio.timeout(within):
            event = await anext(self._events)
        data = json.loads(event.data or "null")
        if event.event in ("ready", "reset"):
            assert event.id == str(data["cursor"])
            self.cursor = data["cursor"]
        elif event.event == "task.status":
            assert data["prev"] == self.cursor, "a hole in the chain"
            self.cursor = int(event.id)
            self.ids.append(self.cursor)
            self.versions[data["task_id"]] = data["task_version"]
            self.statuses[data["task_id"]] = data["status"]
        return event

    async def word(self, within: float = 15.0) -> str:
        """Return the next word about the database; events before it are taken in."""
        while (event := await self.next(within)).event != "status":
            pass
        word: str = json.loads(event.data)["database"]
        return word

    async def until(self, event_id: int, within: float = 10.0) -> None:
        async with asyncio.timeout(within):
            while self.cursor is None or self.cursor < event_id:
                await self.next(within)


@dataclass
class Gateway:
    """A running gateway and the servers behind it."""

    url: str
    database: str
    redis_url: str
    stopping: asyncio.Event
    ended: asyncio.Task[None]
    client: httpx.AsyncClient
    database_id: uuid.UUID

    async def call(self, function: str, **arguments: Any) -> dict[str, Any]:
        """Call a stored function as the superuser."""
        names = ", ".join(f"p_{name} => %({name})s" for name in arguments)
        async with await psycopg.AsyncConnection.connect(
            self.database, autocommit=True, row_factory=dict_row
        ) as connection:
            cursor = await connection.execute(
                f"select * from aivedio.{function}({names})", arguments
            )
            row = await cursor.fetchone()
            assert row is not None
            return row

    async def sql(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        async with await psycopg.AsyncConnection.connect(
            self.database, autocommit=True
        ) as connection:
            cursor = await connection.execute(query, arguments)
            return await cursor.fetchall() if cursor.description else []

    async def create_task(self, person: Person, project: uuid.UUID | None = None) -> dict[str, Any]:
        """Create a task, which is one event."""
        return await self.call(
            "create_task",
            tenant=person.tenant,
            project=project or person.projects[0],
            user=person.user,
            provider="replicate",
            model="some/model",
            input=psycopg.types.json.Jsonb({"prompt": "a cat"}),
        )

    async def head(self, project: uuid.UUID) -> int:
        rows = await self.sql(
            "select last_event_id from aivedio.project_streams where project_id = %s", project
        )
        return int(rows[0][0]) if rows else 0

    async def publish(self, *event_ids: int) -> None:
        """Publish stored events as the dispatcher does, in the order given."""
        rows = await self.sql(
            """select event_id, project_id, prev_event_id, task_id, task_version,
                      event_type, public_payload
               from aivedio.task_events where event_id = any (%s)""",
            list(event_ids),
        )
        stored = {row[0]: row for row in rows}
        async with redis.asyncio.Redis.from_url(self.redis_url) as client:
            for event_id in event_ids:
                number, project, prev, task, version, kind, payload = stored[event_id]
                body = {
                    "event_id": number,
                    "prev_event_id": prev,
                    "event_type": kind,
                    "aggregate_id": str(task),
                    "aggregate_version": version,
                    "project_id": str(project),
                    "public_payload": payload,
                }
                await client.publish(f"aivedio:{self.database_id}:events", frames.encode(body))

    @asynccontextmanager
    async def follow(
        self,
        project: uuid.UUID,
        headers: dict[str, str],
        *,
        cursor: int | None = None,
        query: str = "",
    ) -> AsyncIterator[Reader]:
        if cursor is not None:
            headers = {**headers, "last-event-id": str(cursor)}
        async with self.client.stream(
            "GET", f"/projects/{project}/events{query}", headers=headers
        ) as response:
            if response.status_code != 200:
                await response.aread()
            assert response.status_code == 200, response.text
            yield Reader(response)


async def stream_token(gateway: Gateway, person: Person, **claims: Any) -> dict[str, str]:
    answer = await gateway.client.post(
        f"/projects/{person.projects[0]}/stream-tokens", headers=person.bearer(**claims)
    )
    assert answer.status_code == 201, answer.text
    found: dict[str, str] = answer.json()
    return found


StartGateway = Callable[..., Coroutine[Any, Any, Gateway]]


@pytest.fixture
async def start_gateway(
    database: str,
    valkey: str,
    free_port: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[StartGateway]:
    """Return a function that starts one more gateway on the test's database and Valkey."""
    # A machine that is busy for seconds is no outage, unless the test is about one.
    monkeypatch.setattr(lookout, "AWAY_S", 60.0)
    async with AsyncExitStack() as running:

        async def start(**settings: Any) -> Gateway:
            port = free_port()
            url = f"http://127.0.0.1:{port}"
            stopping, ready = asyncio.Event(), asyncio.Event()

            def report(is_ready: bool) -> None:
                ready.set() if is_ready else ready.clear()

            given = {
                "database_url": database,
                "redis_url": valkey,
                "host": "127.0.0.1",
                "port": port,
                "public_url": url,
                "keys": Keys([SECRET]),
                "local": True,
                "drain_seconds": 0.0,
                **settings,
            }
            work = asyncio.create_task(serve.run(**given, stopping=stopping, ready=report))
            client = httpx.AsyncClient(base_url=url, timeout=20.0, trust_env=False)
            await running.enter_async_context(client)

            async def end() -> None:
                stopping.set()
                await asyncio.wait_for(work, 20.0)

            running.push_async_callback(end)
            await eventually_async(lambda: ready.is_set() or (work.done() and work.result()), 20.0)
            gateway = Gateway(
                url, database, given["redis_url"], stopping, work, client, uuid.UUID(int=0)
            )
            gateway.database_id = (await gateway.sql("select aivedio.database_id()"))[0][0]
            return gateway

        yield start
    gc.unfreeze()


@pytest.fixture
async def gateway(start_gateway: StartGateway) -> Gateway:
    return await start_gateway()


@pytest.fixture
def person() -> Person:
    return Person(projects=(uuid.uuid4(),))
