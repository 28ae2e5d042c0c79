"""WebSocket clients for tests: a well-behaved one of another hand, and one that speaks by hand."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.py.gateway.conftest import Gateway, Person

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Socket:
    """A client that checks the chain as a browser does."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.cursor: int | None = None
        self.events: list[dict[str, Any]] = []

    async def next(self, within: float = 10.0) -> dict[str, Any]:
        async with asyncio.timeout(within):
            said: dict[str, Any] = json.loads(await self.connection.recv(decode=True))
        if said["type"] in ("ready", "reset"):
            self.cursor = said["cursor"]
        elif said["type"] == "task.status":
            assert said["prev"] == self.cursor, "a hole in the chain"
            self.cursor = said["event_id"]
            self.events.append(said)
        return said

    async def until(self, event_id: int) -> None:
        while self.cursor is None or self.cursor < event_id:
            await self.next()

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Say something and return the reply; what comes before it is taken in."""
        await self.connection.send(json.dumps(request))
        while (said := await self.next())["type"] != "reply":
            pass
        return said


def address(gateway: Gateway, project: uuid.UUID, query: str = "") -> str:
    return f"{gateway.url.replace('http', 'ws', 1)}/projects/{project}/ws{query}"


@asynccontextmanager
async def talking(
    gateway: Gateway,
    person: Person,
    query: str = "",
    headers: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Socket]:
    async with connect(
        address(gateway, person.projects[0], query),
        additional_headers=person.bearer() if headers is None else headers,
        proxy=None,
        **options,
    ) as connection:
        yield Socket(connection)


def handshake(project: uuid.UUID, person: Person, *more: str) -> str:
    """Return a handshake's request, for who speaks by hand."""
    lines = [
        f"GET /projects/{project}/ws HTTP/1.1",
        "Host: localhost",
        f"Authorization: {person.bearer()['authorization']}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
        *more,
        "",
        "",
    ]
    return "\n".join(lines)


async def frame_from(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one frame of the server: its opcode and its payload."""
    first, second = await reader.readexactly(2)
    assert first & 0x80 and not second & 0x80, "the server neither fragments nor masks"
    size = second
    if size == 126:
        size = int.from_bytes(await reader.readexactly(2))
    return first & 0x0F, await reader.readexactly(size)
