"""A tiny real HTTP server that answers raw bytes, as rudely as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Writer = asyncio.StreamWriter
Behave = Callable[["Request", Writer], Awaitable[None]]


@dataclass
class Request:
    """One request as it came off the wire."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Remembers its requests and answers each with `behave`."""

    behave: Behave
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *fields = head.decode("latin-1").strip().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (text.partition(":") for text in fields)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(line, headers, body)
                self.requests.append(request)
                await self.behave(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def answer(body: bytes = b"{}", status: int = 200, headers: dict[str, str] | None = None) -> Behave:
    """Return a behaviour: always this answer."""

    async def behave(_: Request, writer: Writer) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{extra}\r\n".encode() + body
        )

    return behave


@asynccontextmanager
async def serving(behave: Behave) -> AsyncIterator[Server]:
    """Serve on a free port for the length of the block; ends connections that still hang."""
    server = Server(behave)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await server.serve(reader, writer)
        tasks.discard(task)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
