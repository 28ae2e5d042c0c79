"""A webhook edge that runs, a provider that signs, and tasks that wait for news."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
import pytest

from edge.intake import webhook
from tests.py.intake.jobs import Jobs
from tests.py.intake.signing import OTHER_SECRET, SECRET, sign
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async

Serve = Callable[..., Any]


@dataclass
class Edge:
    """A running webhook edge as a provider sees it."""

    url: str
    port: int
    client: httpx.AsyncClient
    told: list[bool]
    stopping: asyncio.Event

    async def deliver(
        self, body: bytes, path: str = "/callbacks/replicate", **signing: Any
    ) -> httpx.Response:
        """Send a rightly signed callback."""
        return await self.client.post(path, content=body, headers=sign(body, **signing))

    @property
    def is_ready(self) -> bool:
        return self.told[-1:] == [True]


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET_PREVIOUS", OTHER_SECRET)
    monkeypatch.setenv("REPLICATE_API_TOKEN", "r8_test")


@asynccontextmanager
async def serving(database_url: str, *, wait: bool = True, **settings: Any) -> AsyncIterator[Edge]:
    """Run the webhook edge in this process until the block ends."""
    port, stopping = free_port(), asyncio.Event()
    told: list[bool] = []
    task = asyncio.create_task(
        webhook.run(
            database_url=database_url,
            listen=f"127.0.0.1:{port}",
            stopping=stopping,
            ready=told.append,
            **{"local": True, **settings},
        )
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=15.0, trust_env=False) as client:
            edge = Edge(url, port, client, told, stopping)
            await eventually_async(lambda: not wait or edge.is_ready or task.done())
            yield edge
    finally:
        stopping.set()
        async with asyncio.timeout(15):
            await task


@pytest.fixture
async def edge(database: str) -> AsyncIterator[Edge]:
    async with serving(database) as running:
        yield running


@dataclass
class Inbox:
    """The table of callbacks, as its owner sees it."""

    session: psycopg.Connection[Any]

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        return self.session.execute(
            f"select {columns} from aivedio.provider_callback_inbox order by id"
        ).fetchall()

    def count(self) -> int:
        return len(self.rows("id"))

    def waits(self) -> bool:
        """Whether a callback is held up by somebody's lock."""
        return bool(
            self.session.execute(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
                " and application_name = 'aivedio-webhook' and datname = current_database()"
            ).fetchone()
        )


@pytest.fixture
def inbox(connect: Callable[..., psycopg.Connection[Any]]) -> Iterator[Inbox]:
    yield Inbox(connect(autocommit=True))


@pytest.fixture
def jobs(connect: Callable[..., psycopg.Connection[Any]]) -> Jobs:
    return Jobs(connect(autocommit=True))


@asynccontextmanager
async def running(main: Callable[..., Awaitable[None]], **settings: Any) -> AsyncIterator[Running]:
    """Run a process's `run` in this process, until ready; stop it when the block ends."""
    process = Running()
    task = asyncio.ensure_future(
        main(stopping=process.stopping, ready=process.told.append, **settings)
    )
    try:
        await eventually_async(lambda: process.is_ready or task.done())
        yield process
    finally:
        process.stopping.set()
        async with asyncio.timeout(20):
            await task


@dataclass
class Running:
    """A process that runs inside the test."""

    told: list[bool] = field(default_factory=list)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_ready(self) -> bool:
        return self.told[-1:] == [True]
