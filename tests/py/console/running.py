"""A real operators' page on a real database, in the test's own event loop."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import jwt

from edge.console import serve
from edge.gateway.keys import Keys
from tests.py.support.waiting import eventually_async

SECRET = "the secret of the tests' session tokens"
WHO = "ops@example.com"


def token(role: str | None = "act", who: object = WHO, **claims: Any) -> str:
    """Return a session token, as whoever logs operators in would make it."""
    now = int(time.time())
    return jwt.encode(
        {
            "sub": who,
            "tenant": str(uuid.UUID(int=0)),
            "sid": f"s-{uuid.uuid4().hex[:8]}",
            "iat": now,
            "exp": now + 3600,
            **({} if role is None else {"operator": role}),
            **claims,
        },
        claims.pop("secret", SECRET),
        algorithm="HS256",
    )


@dataclass
class Console:
    """A running page and a client of it."""

    url: str
    client: httpx.AsyncClient
    ready: asyncio.Event

    async def look(self, path: str, role: str = "read") -> Any:
        """Return what an operator sees."""
        answer = await self.client.get(f"/api/{path}", headers=bearer(role))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def act(self, name: str, role: str = "act", **body: Any) -> httpx.Response:
        """Do something as an operator."""
        return await self.client.post(f"/api/actions/{name}", headers=bearer(role), json=body)


def bearer(role: str | None = "act", **claims: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {token(role, **claims)}"}


@asynccontextmanager
async def running(database: str, port: int, **settings: Any) -> AsyncIterator[Console]:
    """Run a page inside the block; it need not reach its database."""
    url = f"http://127.0.0.1:{port}"
    stopping, ready = asyncio.Event(), asyncio.Event()

    def report(is_ready: bool) -> None:
        ready.set() if is_ready else ready.clear()

    given = {
        "database_url": database,
        "host": "127.0.0.1",
        "port": port,
        "public_url": url,
        "keys": Keys([SECRET]),
        "secure_cookie": False,
        **settings,
    }
    work = asyncio.create_task(serve.run(**given, stopping=stopping, ready=report))
    async with httpx.AsyncClient(base_url=url, timeout=20.0, trust_env=False) as client:
        console = Console(url, client, ready)

        async def listens() -> bool:
            if work.done():
                work.result()
            try:
                return (await client.get("/static/console.js")).status_code == 200
            except httpx.TransportError:
                return False

        try:
            await eventually_async(listens, 20.0)
            yield console
        finally:
            stopping.set()
            await asyncio.wait_for(work, 20.0)
