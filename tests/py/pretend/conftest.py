"""A running pretend provider, and somebody who takes its callbacks."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edge.pretend import provider
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async

TOKEN = "r8_token"
SECRET = "whsec_" + base64.b64encode(b"a key of twenty-four byte").decode()


@dataclass
class Received:
    """One callback as it came off the wire."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = orjson.loads(self.body)
        return parsed

    @property
    def status(self) -> str:
        return str(self.json["status"])

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """Takes callbacks and answers with `answers`, in order, then with 204 for ever."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    seen: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: Request) -> Response:
        body = await request.body()
        self.received.append(Received(request.url.path, dict(request.headers), body))
        status = self.answers.pop(0) if self.answers else 204
        headers = {"location": f"{self.url}/elsewhere"} if status == 307 else None
        return Response(status_code=status, headers=headers)

    def statuses(self) -> list[str]:
        return [callback.status for callback in self.received]


class Server(uvicorn.Server):
    """A server in the test's own event loop."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        serving = asyncio.create_task(self._serve())
        await eventually_async(lambda: self.started)
        try:
            yield
        finally:
            self.should_exit = True
            await serving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    port = free_port()
    receiver.url = f"http://127.0.0.1:{port}"
    app = Starlette(routes=[Route("/{path:path}", receiver.take, methods=["POST", "GET"])])
    config = uvicorn.Config(app, port=port, log_config=None, lifespan="off")
    async with Server(config).running():
        yield receiver


@dataclass
class Provider:
    """The running provider and a client that may use it."""

    url: str
    http: httpx.AsyncClient

    async def create(
        self,
        pretend: dict[str, Any] | None = None,
        webhook: str | None = None,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        body: dict[str, Any] = {"version": "pretend/film", "input": {"prompt": "a red kite"}}
        if pretend is not None:
            body["input"]["pretend"] = {"queue_s": 0.02, "run_s": 0.1, "steps": 4, **pretend}
        if webhook is not None:
            body["webhook"] = webhook
            body["webhook_events_filter"] = ["start", "output", "logs", "completed"]
        return await self.http.post("/v1/predictions", json=body | fields, headers=headers)

    async def make(self, pretend: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        response = await self.create(pretend, **fields)
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made

    async def poll(self, job: str) -> httpx.Response:
        return await self.http.get(f"/v1/predictions/{job}")

    async def status(self, job: str) -> str:
        response = await self.poll(job)
        return str(response.json()["status"]) if response.status_code == 200 else ""

    async def ends(self, job: str, status: str) -> dict[str, Any]:
        """Wait until a poll says `status` and return that answer."""

        answer: dict[str, Any] = {}

        async def ended() -> bool:
            nonlocal answer
            response = await self.poll(job)
            answer = response.json() if response.status_code == 200 else {}
            return answer.get("status") == status

        await until(ended, what=f"{job} is {status}")
        return answer

    async def faults(self) -> dict[str, int]:
        response = await self.http.get("/pretend/report")
        counts: dict[str, int] = response.json()["faults"]
        return counts

    async def jobs(self, key: str) -> list[dict[str, Any]]:
        response = await self.http.get("/pretend/jobs", params={"key": key})
        described: list[dict[str, Any]] = response.json()["jobs"]
        return described

    async def over(self, key: str) -> dict[str, Any]:
        """Wait until the newest job of a key is over, callbacks and all, and return it."""

        described: list[dict[str, Any]] = []

        async def over() -> bool:
            nonlocal described
            described = await self.jobs(key)
            return bool(described) and described[-1]["over"] is True

        await until(over, what=f"job {key} is over")
        return described[-1]


async def until(
    check: Callable[[], bool | Awaitable[bool]], what: str = "", timeout: float = 10
) -> None:
    """Wait until the check says yes."""
    await eventually_async(check, timeout=timeout, what=what)


@asynccontextmanager
async def running(
    speed: float = 1.0,
    max_jobs: int = 1000,
    dialect: str = "replicate",
    endpoint: str | None = None,
    token: str = TOKEN,
) -> AsyncIterator[Provider]:
    """Run the provider in this event loop."""
    port = free_port()
    stopping, listening = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(
        provider.run(
            host="127.0.0.1",
            port=port,
            token=token,
            secret=SECRET,
            dialect=dialect,
            endpoint=endpoint,
            speed=speed,
            max_jobs=max_jobs,
            stopping=stopping,
            ready=lambda _: listening.set(),
        )
    )
    await eventually_async(lambda: listening.is_set() or serving.done())
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(
            base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=20
        ) as client:
            yield Provider(url, client)
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await serving


@pytest.fixture
async def pretend() -> AsyncIterator[Provider]:
    async with running() as provider:
        yield provider
